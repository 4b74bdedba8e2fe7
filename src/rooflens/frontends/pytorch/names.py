"""ATen names to op kinds: the one name row per op that this frontend needs. Table in, Row out.

A row says how a call is read: `kernel` runs and moves data, `view` moves nothing, `free` is bookkeeping that no user
would name (allocation, detach), `answer` asks a meta tensor for a value, `alias` may or may not copy.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    kind: str
    how: str = "kernel"
    overwrites: bool = False  # an in-place op that does not read what it writes
    scatters: bool = False  # an indexed in-place store: reads its values, writes as many
    skip: tuple[int, ...] = ()  # positions of tensors that the kernel gets for their shape only


def _rows(how: str, **kinds: str) -> dict[str, Row]:
    return {name: Row(kind=kind, how=how) for kind, names in kinds.items() for name in names.split()}


KERNELS = _rows(
    "kernel",
    # matrix
    conv="conv1d conv2d conv3d convolution _convolution conv_transpose1d conv_transpose2d conv_transpose3d "
    "cudnn_convolution mkldnn_convolution thnn_conv2d slow_conv3d convolution_overrideable",
    conv_backward="convolution_backward",
    linear="linear",
    addmm="addmm baddbmm addbmm addmv",
    matmul="matmul mm bmm mv dot vdot inner _scaled_mm",
    bilinear="bilinear _trilinear",
    attention="scaled_dot_product_attention _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_cudnn_attention _native_multi_head_attention_core",
    lstm="lstm",
    gru="gru",
    rnn="rnn_tanh rnn_relu",
    # arithmetic
    add="add add_ rsub_add logaddexp",
    sub="sub sub_ rsub subtract",
    mul="mul mul_ multiply multiply_ outer ger ldexp",
    div="div div_ true_divide true_divide_ divide floor_divide floor_divide_",
    neg="neg neg_ negative",
    abs="abs abs_ absolute",
    sign="sign sgn sign_",
    round="round round_ floor floor_ ceil ceil_ trunc trunc_ frac nan_to_num nan_to_num_ positive",
    remainder="remainder remainder_ fmod fmod_",
    reciprocal="reciprocal reciprocal_",
    sqrt="sqrt sqrt_",
    rsqrt="rsqrt rsqrt_",
    exp="exp exp_ exp2 expm1 expm1_",
    log="log log_ log2 log10 log1p log1p_ xlogy logit",
    trig="sin sin_ cos cos_ tan sinh cosh asin acos atan atan2 asinh acosh atanh polar angle sinc",
    erf="erf erf_ erfc erfinv erfinv_ special_erf special_expit",
    minmax="maximum minimum fmax fmin",
    compare="eq eq_ ne ne_ lt lt_ le le_ gt gt_ ge ge_ isnan isinf isfinite isneginf isposinf isclose "
    "not_equal greater greater_equal less less_equal isin",
    logical="logical_and logical_or logical_not logical_xor logical_and_ logical_or_ logical_not_ bitwise_and "
    "bitwise_or bitwise_not bitwise_xor bitwise_and_ bitwise_or_ bitwise_not_ __and__ __or__ __xor__ __iand__ __ior__ "
    "__lshift__ __rshift__ bitwise_left_shift bitwise_right_shift",
    where="where",
    masked_fill="masked_fill masked_fill_",
    lerp="lerp lerp_",
    addcmul="addcmul addcmul_",
    addcdiv="addcdiv addcdiv_",
    pow="pow pow_ square float_power square_",
    # activations
    relu="relu relu_ threshold threshold_",
    clamp="clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ clip clip_ hardshrink softshrink",
    relu6="hardtanh hardtanh_ relu6 relu6_",
    leaky_relu="leaky_relu leaky_relu_ rrelu rrelu_with_noise",
    prelu="prelu _prelu_kernel",
    elu="elu elu_ celu celu_ selu selu_",
    sigmoid="sigmoid sigmoid_",
    silu="silu silu_",
    tanh="tanh tanh_",
    hardswish="hardswish hardswish_",
    hardsigmoid="hardsigmoid hardsigmoid_",
    softplus="softplus",
    logsigmoid="log_sigmoid log_sigmoid_forward",
    mish="mish mish_",
    glu="glu",
    gelu="gelu gelu_",
    relu_backward="threshold_backward",
    relu6_backward="hardtanh_backward",
    clamp_backward="clamp_backward hardshrink_backward softshrink_backward",
    leaky_relu_backward="leaky_relu_backward",
    prelu_backward="_prelu_kernel_backward prelu_backward",
    elu_backward="elu_backward",
    sigmoid_backward="sigmoid_backward",
    silu_backward="silu_backward",
    tanh_backward="tanh_backward",
    hardswish_backward="hardswish_backward",
    hardsigmoid_backward="hardsigmoid_backward",
    softplus_backward="softplus_backward",
    logsigmoid_backward="log_sigmoid_backward",
    mish_backward="mish_backward",
    glu_backward="glu_backward",
    gelu_backward="gelu_backward",
    dropout="dropout native_dropout",
    dropout_backward="native_dropout_backward",
    # norms
    layernorm="layer_norm native_layer_norm",
    groupnorm="group_norm native_group_norm instance_norm",
    rmsnorm="rms_norm _fused_rms_norm",
    softmax="softmax _softmax _safe_softmax special_softmax",
    log_softmax="log_softmax _log_softmax special_log_softmax",
    batchnorm_backward="native_batch_norm_backward batch_norm_backward cudnn_batch_norm_backward",
    layernorm_backward="native_layer_norm_backward",
    groupnorm_backward="native_group_norm_backward",
    rmsnorm_backward="_fused_rms_norm_backward",
    softmax_backward="_softmax_backward_data",
    log_softmax_backward="_log_softmax_backward_data",
    # pools and reductions
    maxpool="max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices "
    "max_pool1d_with_indices fractional_max_pool2d",
    avgpool="avg_pool1d avg_pool2d avg_pool3d",
    adaptive_avgpool="adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d",
    adaptive_maxpool="adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
    maxpool_backward="max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
    "adaptive_max_pool2d_backward adaptive_max_pool3d_backward",
    mean="mean mean_",
    sum="sum nansum trace einsum_sum",
    prod="prod",
    extremum="max min amax amin argmax argmin aminmax any all median count_nonzero nanmedian",
    var="var std var_mean std_mean",
    vector_norm="norm linalg_vector_norm linalg_norm _weight_norm_interface dist cosine_similarity _weight_norm",
    logsumexp="logsumexp",
    cumulative="cumsum cumsum_ cumprod cummax cummin logcumsumexp",
    sort="sort argsort topk kthvalue unique_dim _unique2 unique_consecutive msort",
    nll_loss="nll_loss_forward nll_loss2d_forward",
    nll_loss_backward="nll_loss_backward nll_loss2d_backward",
    mse_loss="mse_loss l1_loss smooth_l1_loss huber_loss",
    bce_loss="binary_cross_entropy binary_cross_entropy_with_logits kl_div",
    fft="_fft_r2c _fft_c2c _fft_c2r fft_rfft2 fft_irfft2 fft_fft2 fft_ifft2 fft_rfft fft_irfft fft_fft fft_ifft "
    "fft_rfftn fft_irfftn fft_fftn fft_ifftn stft",
    # moves
    copy="clone copy copy_ _unsafe_copy pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle "
    "constant_copy flip rot90 unfold_copy im2col col2im diag_embed index_fill index_fill_ masked_scatter masked_scatter_ "
    "masked_select nonzero nonzero_numpy argwhere bucketize searchsorted cdist _cdist_forward histc bincount "
    "index_copy scatter_functional unfold_backward view_as_complex_copy complex slice_scatter select_scatter "
    "select_backward slice_backward diagonal_backward _reshape_copy reshape_copy take_along_dim",
    cast="_to_copy type_as_copy",
    concat="cat stack concat concatenate hstack vstack dstack meshgrid_copy block_diag column_stack",
    pad="constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d reflection_pad2d_backward replication_pad2d_backward _pad_circular reflection_pad1d_backward",
    roll="roll",
    repeat="repeat repeat_interleave tile",
    resize_nearest="upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d",
    resize_bilinear="upsample_linear1d upsample_bilinear2d upsample_trilinear3d _upsample_bilinear2d_aa",
    resize_bicubic="upsample_bicubic2d _upsample_bicubic2d_aa",
    resize_backward="upsample_nearest2d_backward upsample_bilinear2d_backward upsample_bicubic2d_backward "
    "upsample_nearest1d_backward upsample_linear1d_backward _upsample_nearest_exact2d_backward "
    "upsample_nearest3d_backward upsample_trilinear3d_backward _upsample_bilinear2d_aa_backward "
    "_upsample_bicubic2d_aa_backward",
    grid_sample="grid_sampler grid_sampler_2d grid_sampler_3d grid_sampler_2d_backward affine_grid_generator "
    "affine_grid_generator_backward",
    one_hot="one_hot",
    tri="tril triu tril_ triu_",
    gather="index index_select gather take _unsafe_index",
    embedding="embedding embedding_bag _embedding_bag",
)

SPECIAL = {
    "max_pool2d_with_indices_backward": Row(kind="maxpool_backward", skip=(1,)),
    "max_pool3d_with_indices_backward": Row(kind="maxpool_backward", skip=(1,)),
    "avg_pool2d_backward": Row(kind="avgpool_backward", skip=(1,)),
    "avg_pool3d_backward": Row(kind="avgpool_backward", skip=(1,)),
    "_adaptive_avg_pool2d_backward": Row(kind="adaptive_avgpool_backward", skip=(1,)),
    "_adaptive_avg_pool3d_backward": Row(kind="adaptive_avgpool_backward", skip=(1,)),
    "embedding_dense_backward": Row(kind="embedding_backward"),
    "zero_": Row(kind="fill", overwrites=True),
    "fill_": Row(kind="fill", overwrites=True),
    "copy_": Row(kind="copy", overwrites=True),
    "uniform_": Row(kind="random", overwrites=True),
    "normal_": Row(kind="random", overwrites=True),
    "bernoulli_": Row(kind="random", overwrites=True),
    "exponential_": Row(kind="random", overwrites=True),
    "random_": Row(kind="random", overwrites=True),
    "trunc_normal_": Row(kind="random", overwrites=True),
    "index_put_": Row(kind="scatter", scatters=True),
    "_index_put_impl_": Row(kind="scatter", scatters=True),
    "index_copy_": Row(kind="scatter", scatters=True),
    "scatter_": Row(kind="scatter", scatters=True),
    "index_add_": Row(kind="scatter_add", scatters=True),
    "scatter_add_": Row(kind="scatter_add", scatters=True),
    "scatter_reduce_": Row(kind="scatter_add", scatters=True),
    **{name: Row(kind="copy") for name in ("scatter", "index_put", "scatter_add", "index_add", "scatter_reduce")},
    **{name: Row(kind="batchnorm") for name in (
        "batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "_batch_norm_with_update",
        "_batch_norm_no_update", "miopen_batch_norm")},
    **{name: Row(kind="fill") for name in (
        "zeros", "ones", "full", "arange", "linspace", "eye", "zeros_like", "ones_like", "full_like", "new_zeros",
        "new_ones", "new_full", "tril_indices", "triu_indices", "logspace", "hann_window", "hamming_window")},
    **{name: Row(kind="random") for name in (
        "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "bernoulli", "normal", "multinomial",
        "randint_like")},
}  # fmt: skip

VIEWS = _rows(
    "view",
    flatten="flatten",
    view="view _unsafe_view unflatten view_as squeeze squeeze_ unsqueeze unsqueeze_ _reshape_alias reshape_as "
    "view_as_real view_as_complex ravel real imag atleast_1d atleast_2d atleast_3d conj _conj resolve_conj resolve_neg "
    "_conj_physical unfold as_strided diagonal alias_view",
    transpose="transpose transpose_ t t_ permute mT mH T H numpy_T matrix_H swapaxes swapdims movedim moveaxis adjoint",
    slice="slice select narrow lift",
    expand="expand expand_as broadcast_to",
    split="split split_with_sizes chunk unbind tensor_split unsafe_split unsafe_split_with_sizes unsafe_chunk hsplit "
    "vsplit dsplit broadcast_tensors meshgrid",
)

ALIASES = _rows(
    "alias", view="reshape", copy="contiguous", cast="to type_as _autocast_to_reduced_precision _autocast_to_full_precision"
)
FREE = _rows(
    "free",
    identity="empty empty_like new_empty empty_strided new_empty_strided empty_permuted detach detach_ alias lift_fresh "
    "lift_fresh_copy scalar_tensor requires_grad_ set_ resize_ record_stream is_same_size sym_size sym_stride sym_numel "
    "sym_storage_offset _assert_async _assert_scalar _assert_tensor_metadata is_pinned _has_compatible_shallow_copy_type "
    "_version _fw_primal _make_dual is_complex is_floating_point result_type can_cast retain_grad output_nr _backward "
    "size stride numel dim storage_offset is_contiguous",
)
ANSWERS = _rows("answer", identity="item _local_scalar_dense is_nonzero equal")
ROWS: dict[str, Row] = {**KERNELS, **SPECIAL, **VIEWS, **ALIASES, **FREE, **ANSWERS}

# Composite calls that are one op for us: in training they are met above autograd, or it would take them apart.
WHOLE = ("linear", "dropout", "scaled_dot_product_attention", "rms_norm", "lstm.input", "gru.input", "rnn_tanh.input",
         "rnn_relu.input")  # fmt: skip
