"""ATen names to op kinds: the one name row per op that this frontend needs. Table in, Row out.

A row says how a call is read: `kernel` runs and moves data, `view` moves nothing, `free` is bookkeeping that no user
would name (allocation, detach), `answer` asks a meta tensor for a value, `alias` may or may not copy. Names that are not
here are taken apart by torch's own composite rules, and are opaque where there is none.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    kind: str
    how: str = "kernel"
    overwrites: bool = False  # an in-place op that does not read what it writes
    scatters: bool = False  # an indexed in-place store: reads its values and indices
    skip: tuple[int, ...] = ()  # positions of tensors that the kernel gets for their shape only


def _rows(how: str, **kinds: str) -> dict[str, Row]:
    return {name: Row(kind=kind, how=how) for kind, names in kinds.items() for name in names.split()}


KERNELS = _rows(
    "kernel",
    # matrix
    conv="conv1d conv2d conv3d convolution _convolution conv_transpose1d conv_transpose2d conv_transpose3d",
    conv_steps="conv_tbc",
    conv_backward="convolution_backward",
    linear="linear",
    addmm="addmm addmm_ baddbmm baddbmm_ addbmm addbmm_ addmv addmv_ _addmm_activation",
    matmul="matmul mm bmm mv dot vdot inner _scaled_mm _int_mm _weight_int8pack_mm _weight_int4pack_mm "
    "_weight_int4pack_mm_for_cpu _scaled_mm_v2 affine_grid_generator",
    grouped_mm="_grouped_mm _scaled_grouped_mm",
    bilinear="bilinear",
    trilinear="_trilinear",
    attention="scaled_dot_product_attention _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_cudnn_attention",
    lstm="lstm",
    gru="gru",
    rnn="rnn_tanh rnn_relu",
    # arithmetic
    add="add add_",
    sub="sub sub_ rsub subtract subtract_",
    mul="mul mul_ multiply multiply_ outer ger ldexp ldexp_ deg2rad deg2rad_ rad2deg rad2deg_",
    div="div div_ true_divide true_divide_ divide divide_ floor_divide floor_divide_",
    neg="neg neg_ negative negative_ conj_physical conj_physical_ _conj_physical",
    abs="abs abs_ absolute absolute_",
    sign="sign sgn sign_ sgn_ signbit copysign copysign_ heaviside heaviside_ nextafter nextafter_",
    round="round round_ floor floor_ ceil ceil_ trunc trunc_ fix frac frac_",
    remainder="remainder remainder_ fmod fmod_",
    reciprocal="reciprocal reciprocal_",
    sqrt="sqrt sqrt_",
    rsqrt="rsqrt rsqrt_",
    exp="exp exp_ exp2 exp2_ expm1 expm1_ special_exp2 special_expm1",
    log="log log_ log2 log2_ log10 log10_ log1p log1p_ special_log1p",
    xlogy="xlogy xlogy_ special_xlogy special_xlog1py special_entr",
    logaddexp="logaddexp logaddexp2",
    logit="logit logit_ special_logit",
    trig="sin sin_ cos cos_ tan tan_ sinh sinh_ cosh cosh_ asin acos atan atan2 asinh acosh atanh angle sinc sinc_ "
    "asin_ acos_ atan_ atan2_ asinh_ acosh_ atanh_ arctan2 lgamma lgamma_ digamma digamma_ polygamma polygamma_ "
    "mvlgamma mvlgamma_ i0 i0_ special_i0e special_i1 special_i1e special_gammaln special_ndtr special_ndtri "
    "special_log_ndtr igamma igammac igamma_ igammac_ special_bessel_j0 special_bessel_j1 special_bessel_y0 "
    "special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 "
    "special_modified_bessel_k1 special_zeta",
    hypot="hypot hypot_",
    polar="polar",
    erf="erf erf_ erfc erfc_ erfinv erfinv_ special_erf special_erfc special_erfinv special_erfcx",
    minmax="maximum minimum fmax fmin",
    compare="eq eq_ ne ne_ lt lt_ le le_ gt gt_ ge ge_ isnan isinf isfinite isneginf isposinf isclose not_equal greater "
    "greater_equal less less_equal isin",
    logical="logical_and logical_or logical_not logical_xor logical_and_ logical_or_ logical_not_ logical_xor_ "
    "bitwise_and bitwise_or bitwise_not bitwise_xor bitwise_and_ bitwise_or_ bitwise_not_ bitwise_xor_ __and__ __or__ "
    "__xor__ __iand__ __ior__ __ixor__ __lshift__ __rshift__ __ilshift__ __irshift__ "
    "bitwise_left_shift bitwise_right_shift bitwise_left_shift_ bitwise_right_shift_",
    where="where",
    masked_fill="masked_fill masked_fill_",
    lerp="lerp lerp_",
    addcmul="addcmul addcmul_ addr addr_",
    addcdiv="addcdiv addcdiv_",
    pow="pow pow_ square square_ float_power",
    cross="linalg_cross cross",
    # activations
    relu="relu relu_ threshold threshold_",
    clamp="clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ clip clip_ hardshrink softshrink nan_to_num "
    "nan_to_num_",
    relu6="hardtanh hardtanh_ relu6 relu6_",
    leaky_relu="leaky_relu leaky_relu_ rrelu rrelu_ rrelu_with_noise",
    prelu="prelu _prelu_kernel",
    elu="elu elu_ celu celu_ selu selu_",
    sigmoid="sigmoid sigmoid_ special_expit",
    silu="silu silu_",
    tanh="tanh tanh_",
    hardswish="hardswish hardswish_",
    hardsigmoid="hardsigmoid hardsigmoid_",
    softplus="softplus",
    logsigmoid="log_sigmoid log_sigmoid_forward",
    mish="mish mish_",
    glu="glu",
    gelu="gelu gelu_",
    fake_quantize="fake_quantize_per_tensor_affine fake_quantize_per_channel_affine "
    "fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask",
    relu_backward="threshold_backward",
    relu6_backward="hardtanh_backward",
    clamp_backward="hardshrink_backward softshrink_backward",
    leaky_relu_backward="leaky_relu_backward rrelu_with_noise_backward",
    prelu_backward="_prelu_kernel_backward",
    elu_backward="elu_backward",
    sigmoid_backward="sigmoid_backward",
    silu_backward="silu_backward",
    tanh_backward="tanh_backward",
    hardswish_backward="hardswish_backward",
    hardsigmoid_backward="hardsigmoid_backward",
    softplus_backward="softplus_backward",
    logsigmoid_backward="log_sigmoid_backward",
    logit_backward="logit_backward",
    mish_backward="mish_backward",
    glu_backward="glu_backward",
    gelu_backward="gelu_backward",
    dropout="native_dropout",
    dropout_backward="native_dropout_backward",
    # norms
    layernorm="layer_norm native_layer_norm",
    groupnorm="group_norm native_group_norm instance_norm",
    rmsnorm="rms_norm _fused_rms_norm",
    softmax="softmax _softmax _safe_softmax special_softmax",
    log_softmax="log_softmax _log_softmax special_log_softmax",
    weight_norm="_weight_norm _weight_norm_interface renorm renorm_",
    batchnorm_backward="native_batch_norm_backward batch_norm_backward",
    layernorm_backward="native_layer_norm_backward",
    groupnorm_backward="native_group_norm_backward",
    rmsnorm_backward="_fused_rms_norm_backward",
    softmax_backward="_softmax_backward_data",
    log_softmax_backward="_log_softmax_backward_data",
    weight_norm_backward="_weight_norm_interface_backward",
    # pools and reductions
    maxpool="max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices max_pool1d_with_indices "
    "fractional_max_pool2d fractional_max_pool3d",
    avgpool="avg_pool1d avg_pool2d avg_pool3d",
    adaptive_avgpool="adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d",
    adaptive_maxpool="adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
    mean="mean",
    sum="sum nansum trace",
    prod="prod",
    extremum="max min amax amin argmax argmin aminmax any all _is_any_true _is_all_true median count_nonzero nanmedian",
    var="var std var_mean std_mean",
    vector_norm="norm linalg_vector_norm dist",
    logsumexp="logsumexp special_logsumexp",
    cumulative="cumsum cumsum_ cumprod cumprod_ cummax cummin",
    logcumsumexp="logcumsumexp",
    sort="sort argsort topk kthvalue msort mode unique_dim _unique _unique2 unique_consecutive",
    search="bucketize searchsorted",
    histogram="histc bincount",
    fold="col2im unfold_backward segment_reduce",
    distance="cdist _cdist_forward _euclidean_dist _pdist_forward",
    distance_backward="_cdist_backward _pdist_backward",
    nll_loss="nll_loss_forward nll_loss2d_forward",
    ctc_loss="_ctc_loss",
    ctc_loss_backward="_ctc_loss_backward",
    mse_loss="mse_loss l1_loss smooth_l1_loss huber_loss",
    mse_loss_backward="mse_loss_backward smooth_l1_loss_backward huber_loss_backward",
    margin_loss="multi_margin_loss",
    margin_loss_backward="multi_margin_loss_backward",
    bce_loss="binary_cross_entropy binary_cross_entropy_with_logits kl_div soft_margin_loss",
    bce_loss_backward="binary_cross_entropy_backward soft_margin_loss_backward",
    fft="_fft_r2c _fft_c2c _fft_c2r",
    # moves
    copy="clone copy pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle flip fliplr flipud rot90 "
    "unfold_copy im2col diag_embed index_fill masked_scatter masked_select nonzero nonzero_static index_copy put "
    "alias_copy detach_copy expand_copy permute_copy squeeze_copy unsqueeze_copy t_copy transpose_copy view_copy "
    "unbind_copy split_copy split_with_sizes_copy complex slice_scatter select_scatter diagonal_scatter "
    "as_strided_scatter select_backward slice_backward diagonal_backward index_select_backward _pack_padded_sequence "
    "_pack_padded_sequence_backward _pad_packed_sequence scatter index_put _unsafe_index_put max_unpool2d max_unpool3d",
    scatter_reduce="scatter_add index_add scatter_reduce index_reduce",
    concat="cat stack _stack _chunk_cat concat concatenate hstack vstack dstack row_stack column_stack block_diag",
    pad="constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
    "replication_pad3d _pad_circular",
    roll="roll",
    repeat="repeat repeat_interleave tile",
    resize_nearest="upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d",
    resize_bilinear="upsample_linear1d upsample_bilinear2d upsample_trilinear3d _upsample_bilinear2d_aa",
    resize_bicubic="upsample_bicubic2d _upsample_bicubic2d_aa",
    resize_backward="upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
    "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward "
    "upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward "
    "upsample_bicubic2d_backward _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward",
    grid_sample="grid_sampler grid_sampler_2d grid_sampler_3d",
    grid_sample_backward="grid_sampler_2d_backward grid_sampler_3d_backward",
    one_hot="one_hot",
    tri="tril triu tril_ triu_",
    gather="index index_select gather take take_along_dim _unsafe_index masked_scatter_backward "
    "as_strided_copy diagonal_copy narrow_copy select_copy slice_copy",
    embedding="embedding",
    embedding_bag="embedding_bag _embedding_bag _embedding_bag_forward_only",
)  # fmt: skip

SPECIAL = {
    "max_pool2d_with_indices_backward": Row(kind="maxpool_backward", skip=(1,)),
    "max_pool3d_with_indices_backward": Row(kind="maxpool_backward", skip=(1,)),
    "fractional_max_pool2d_backward": Row(kind="maxpool_backward", skip=(1,)),
    "fractional_max_pool3d_backward": Row(kind="maxpool_backward", skip=(1,)),
    "avg_pool2d_backward": Row(kind="avgpool_backward", skip=(1,)),
    "avg_pool3d_backward": Row(kind="avgpool_backward", skip=(1,)),
    "_adaptive_avg_pool2d_backward": Row(kind="adaptive_avgpool_backward", skip=(1,)),
    "_adaptive_avg_pool3d_backward": Row(kind="adaptive_avgpool_backward", skip=(1,)),
    "nll_loss_backward": Row(kind="nll_loss_backward", skip=(1,)),
    "nll_loss2d_backward": Row(kind="nll_loss_backward", skip=(1,)),
    "embedding_backward": Row(kind="embedding_backward"),
    "embedding_dense_backward": Row(kind="embedding_backward"),
    "embedding_renorm_": Row(kind="embedding_renorm"),
    "_embedding_bag_backward": Row(kind="embedding_backward", skip=(2, 3, 4, 5)),
    "_embedding_bag_per_sample_weights_backward": Row(kind="bag_weights_backward", skip=(3, 4)),
    "_embedding_bag_dense_backward": Row(kind="embedding_backward", skip=(2, 3, 4)),
    "zero_": Row(kind="fill", overwrites=True),
    "fill_": Row(kind="fill", overwrites=True),
    "copy_": Row(kind="copy", overwrites=True),
    "fill_diagonal_": Row(kind="fill", overwrites=True),
    **{name: Row(kind="random", overwrites=True) for name in (
        "uniform_", "normal_", "bernoulli_", "exponential_", "random_", "geometric_", "cauchy_", "log_normal_")},
    **{name: Row(kind="scatter", scatters=True) for name in (
        "index_put_", "_index_put_impl_", "index_copy_", "index_fill_", "scatter_", "masked_scatter_", "put_")},
    **{name: Row(kind="scatter_add", scatters=True) for name in (
        "index_add_", "index_reduce_", "scatter_add_", "scatter_reduce_")},
    **{name: Row(kind="batchnorm") for name in (
        "batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "_batch_norm_with_update",
        "_batch_norm_no_update")},
    "adaptive_max_pool2d_backward": Row(kind="maxpool_backward", skip=(1,)),
    "adaptive_max_pool3d_backward": Row(kind="maxpool_backward", skip=(1,)),
    **{f"{how}_pad{n}d_backward": Row(kind="pad_backward", skip=(1,))
       for how in ("reflection", "replication") for n in (1, 2, 3)},
    **{name: Row(kind="fill") for name in (
        "zeros", "ones", "full", "arange", "range", "linspace", "eye", "tril_indices", "triu_indices", "logspace",
        "hann_window", "hamming_window", "fft_fftfreq", "fft_rfftfreq", "blackman_window", "bartlett_window", "kaiser_window")},
    **{name: Row(kind="fill", skip=(0,)) for name in (
        "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "fill", "zero")},
    **{name: Row(kind="random") for name in (
        "rand", "randn", "randint", "randperm", "bernoulli", "normal", "multinomial", "poisson", "binomial",
        "_standard_gamma", "_sample_dirichlet")},
    **{name: Row(kind="random", skip=(0,)) for name in (
        "rand_like", "randn_like", "randint_like", "uniform", "normal_functional", "exponential", "random", "geometric",
        "cauchy", "log_normal")},
}  # fmt: skip

VIEWS = _rows(
    "view",
    flatten="flatten",
    view="view _unsafe_view unflatten view_as squeeze squeeze_ unsqueeze unsqueeze_ _reshape_alias reshape_as "
    "view_as_real view_as_complex ravel real imag atleast_1d atleast_2d atleast_3d conj _conj resolve_conj resolve_neg "
    "_neg_view unfold as_strided as_strided_ diagonal positive",
    transpose="transpose transpose_ t t_ permute mT mH numpy_T matrix_H swapaxes swapaxes_ swapdims swapdims_ movedim "
    "moveaxis adjoint",
    slice="slice select narrow lift",
    expand="expand expand_as broadcast_to",
    split="split split_with_sizes chunk unbind tensor_split unsafe_split unsafe_split_with_sizes unsafe_chunk hsplit "
    "vsplit dsplit broadcast_tensors meshgrid",
)

ALIASES = _rows(
    "alias",
    view="reshape",
    copy="contiguous",
    cast="to _to_copy type_as _autocast_to_reduced_precision _autocast_to_full_precision",
)
FREE = _rows(
    "free",
    identity="_efficientzerotensor empty empty_like new_empty empty_strided new_empty_strided empty_permuted "
    "detach detach_ alias lift_fresh "
    "lift_fresh_copy scalar_tensor requires_grad_ set_ resize_ resize_as_ record_stream is_same_size sym_size sym_stride "
    "sym_numel sym_storage_offset _assert_async _assert_scalar _assert_tensor_metadata is_pinned pin_memory "
    "_has_compatible_shallow_copy_type _version _fw_primal _make_dual is_complex is_floating_point result_type can_cast "
    "retain_grad output_nr _backward size stride numel dim storage_offset is_contiguous "
    "_cudnn_rnn_flatten_weight",
)
ANSWERS = _rows(
    "answer", identity="item _local_scalar_dense is_nonzero equal allclose _nested_tensor_from_mask_left_aligned"
)
# In evaluation they pass their input on; in training torch takes apart those that drop whole channels.
DROPOUTS = _rows(
    "dropout",
    dropout="dropout dropout_ feature_dropout feature_dropout_ alpha_dropout alpha_dropout_ feature_alpha_dropout "
    "feature_alpha_dropout_",
)
# What a model allocates without naming a device would be real memory on the CPU; beyond a few elements, whose values may
# steer the model, it goes to meta with everything else.
FACTORIES = frozenset(("empty", "empty_strided", "zeros", "ones", "full", "rand", "randn", "randint"))

# Overloads that are another function than their name says: a mask alone makes `where` a search.
TAKEN_APART = frozenset({"where."})
ROWS: dict[str, Row] = {**KERNELS, **SPECIAL, **VIEWS, **ALIASES, **FREE, **ANSWERS, **DROPOUTS}
