"""What autocast changes: torch's own lists for CUDA (ATen/autocast_mode.h), by ATen name."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What runs in the lower type, and what is kept in fp32.
LOWER = _words(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution linear matmul mm bmm mv addmm addmv "
    "addr baddbmm addbmm prelu einsum scaled_dot_product_attention lstm gru rnn_tanh rnn_relu"
)
FULL = _words(
    "acos asin cosh sinh tan erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt pow softplus layer_norm "
    "native_layer_norm rms_norm group_norm dist cdist renorm logsumexp linalg_vector_norm softmax log_softmax sum prod "
    "cumsum cumprod l1_loss mse_loss smooth_l1_loss huber_loss kl_div nll_loss binary_cross_entropy_with_logits "
    "cosine_similarity upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa"
)
