"""Single operations, called as graphs call them: those that few models have, and the gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from catalogue import add
from torch import nn

from warpforge import Model

aten = torch.ops.aten
# PyTorch's codes for what becomes of the losses of single elements.
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}

Draw = Callable[..., torch.Tensor]
Compute = Callable[[Draw], list]


def _draw(*shape: int, kind: str = "normal", high: int = 0, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A random tensor: normal, uniform in (0, 1), integers below `high`, or signs."""
    match kind:
        case "uniform":
            tensor = torch.rand(shape)
        case "integer":
            tensor = torch.randint(0, high, shape)
        case "sign":
            tensor = torch.randint(0, 2, shape) * 2.0 - 1
        case "bool":
            tensor = torch.rand(shape) > 0.5  # noqa: PLR2004 (half of them)
        case _:
            tensor = torch.randn(shape)
    return tensor if dtype is None else tensor.to(dtype)


class _Operations(nn.Module):
    """Runs operations on arguments that were drawn in the same order before."""

    def __init__(self, compute: Compute) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, *arguments: torch.Tensor) -> list:
        """All results, in order."""
        rest: Iterator[torch.Tensor] = iter(arguments)
        return self.compute(lambda *_, **__: next(rest))


def operations(compute: Compute) -> Compute:
    """Adds a function that calls operations on tensors that it draws."""

    def make() -> Model:
        drawn: list[torch.Tensor] = []

        def record(*shape: int, **options: object) -> torch.Tensor:
            drawn.append(_draw(*shape, **options))
            return drawn[-1].clone()

        compute(record)
        return Model(_Operations(compute), tuple(drawn))

    # Decomposed, PyTorch's attention gives something else than a logarithmic sum to its backward pass.
    add(f"ops_{compute.__name__}", make, decomposed=compute.__name__ != "attention_gradients")
    return compute


@operations
def activation_gradients(t: Draw) -> list:
    """Gradients of activation functions."""
    g, x = t(4, 6), 3 * t(4, 6)
    y = torch.sigmoid(x)
    return [
        aten.elu_backward(g, 0.7, 1.1, 0.9, False, x),
        aten.elu_backward(g, 0.7, 1.1, 0.9, True, aten.elu(x, 0.7, 1.1, 0.9)),
        aten.gelu_backward(g, x),
        aten.gelu_backward(g, x, approximate="tanh"),
        aten.glu_backward(t(4, 3), x, 1),
        aten.hardshrink_backward(g, x, 0.5),
        aten.hardsigmoid_backward(g, x),
        aten.hardswish_backward(g, x),
        aten.hardtanh_backward(g, x, -0.7, 0.9),
        aten.leaky_relu_backward(g, x, 0.2, False),
        aten.log_sigmoid_backward(g, x, torch.exp(-x.abs())),
        aten.logit_backward(g, y),
        aten.logit_backward(g, y, 0.2),
        aten.mish_backward(g, x),
        aten.native_dropout_backward(g, t(4, 6, kind="bool"), 1.25),
        aten.sigmoid_backward(g, y),
        aten.silu_backward(g, x),
        aten.softplus_backward(g, x, 1.5, 2.0),
        aten.softshrink_backward(g, x, 0.5),
        aten.tanh_backward(g, torch.tanh(x)),
        aten.threshold_backward(g, x, 0.3),
        *aten._prelu_kernel_backward(g, x, t(1, 6)),
    ]


@operations
def attention_gradients(t: Draw) -> list:
    """Gradients of attention, from what the forward pass saves."""
    results: list = []
    for causal, masked in ((False, False), (True, False), (False, True)):
        q, k, v = t(2, 3, 5, 8), t(2, 3, 5 if causal else 7, 8), t(2, 3, 5 if causal else 7, 8)
        mask = t(2, 1, 5, 7) if masked else None
        out, total = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, attn_mask=mask, scale=0.3)
        results += [out, total]
        results += aten._scaled_dot_product_flash_attention_for_cpu_backward(
            t(2, 3, 5, 8), q, k, v, out, total, 0.0, causal, attn_mask=mask, scale=0.3
        )
    return results


@operations
def convolution_gradients(t: Draw) -> list:
    """Gradients of convolutions, plain and transposed, with strides, dilation and groups."""
    results: list = []

    def both(
        shape: list[int], kernel: list[int], transposed: bool, outputs: list[int], groups: int, **how: list
    ) -> None:
        settings = (how["stride"], how["padding"], how["dilation"], transposed, outputs, groups)
        x, weight = t(*shape), t(*kernel)
        y = aten.convolution(x, weight, None, *settings)
        bias = [y.shape[1]]
        results.extend(aten.convolution_backward(t(*y.shape), x, weight, bias, *settings, [True, True, True]))

    both([2, 3, 11], [4, 3, 3], False, [0], 1, stride=[2], padding=[1], dilation=[1])
    both([2, 4, 9, 8], [6, 2, 3, 2], False, [0, 0], 2, stride=[2, 3], padding=[1, 0], dilation=[1, 2])
    both([2, 4, 9, 8], [4, 1, 3, 3], False, [0, 0], 4, stride=[1, 1], padding=[2, 1], dilation=[2, 1])
    both([1, 2, 5, 6, 7], [3, 2, 2, 3, 2], False, [0, 0, 0], 1, stride=[1, 2, 1], padding=[0, 1, 1], dilation=[1, 1, 1])
    both([2, 4, 5, 4], [4, 3, 3, 2], True, [1, 0], 2, stride=[2, 1], padding=[1, 0], dilation=[1, 2])
    return results


@operations
def indexing_gradients(t: Draw) -> list:
    """Gradients of taking parts."""
    rows = t(3, 4, kind="integer", high=7)
    return [
        aten.embedding_dense_backward(t(3, 4, 5), rows, 7, -1, False),
        aten.embedding_dense_backward(t(3, 4, 5), rows, 7, 2, True),
        aten.select_backward(t(4, 6), [4, 5, 6], 1, -2),
        aten.slice_backward(t(4, 2, 6), [4, 5, 6], 1, 1, 5, 2),
        aten.slice_backward(t(4, 3, 6), [4, 5, 6], 1, -3, 9223372036854775807, 1),
        aten.value_selecting_reduction_backward(t(4, 6), 1, t(4, 6, kind="integer", high=5), [4, 5, 6], False),
        aten.index_select_backward(t(4, 3, 6), [4, 5, 6], 1, t(3, kind="integer", high=5)),
    ]


@operations
def losses(t: Draw) -> list:
    """Losses, each with every reduction."""
    results: list = []
    scores, classes, weight = t(5, 4), t(5, kind="integer", high=4), t(4, kind="uniform")
    maps, places = t(2, 4, 3, 3), t(2, 3, 3, kind="integer", high=4)
    x, y, p, q = t(5, 4), t(5, 4), t(5, 4, kind="uniform"), t(5, 4, kind="uniform")
    signs, sides = t(5, 4, kind="sign"), t(5, kind="sign")
    for reduction in REDUCTIONS.values():
        log = aten.log_softmax(scores, 1)
        results += aten.nll_loss_forward(log, classes, weight, reduction, 1)
        results += aten.nll_loss2d_forward(aten.log_softmax(maps, 1), places, None, reduction, -100)
        results += [
            aten.nll_loss_nd(log, classes, None, reduction),
            aten.cross_entropy_loss(scores, classes, weight, reduction, 2, 0.1),
            aten.cross_entropy_loss(scores, classes, None, reduction),
            aten.cross_entropy_loss(maps, places, None, reduction, 0, 0.2),
            aten.cross_entropy_loss(scores, p, weight, reduction, -100, 0.1),
            aten.cross_entropy_loss(scores[0], classes[0], None, reduction),
            aten.mse_loss(x, y, reduction),
            aten.l1_loss(x, y, reduction),
            aten.smooth_l1_loss(x, y, reduction, 0.7),
            aten.huber_loss(x, y, reduction, 0.6),
            aten.binary_cross_entropy(p, q, None, reduction),
            aten.binary_cross_entropy(p, q, weight, reduction),
            aten.binary_cross_entropy_with_logits(x, q, weight, weight, reduction),
            aten.binary_cross_entropy_with_logits(x, q, None, None, reduction),
            aten.kl_div(aten.log_softmax(x, 1), q, reduction),
            aten.kl_div(x, y, reduction, log_target=True),
            aten.soft_margin_loss(x, signs, reduction),
            aten.hinge_embedding_loss(x, signs, 0.9, reduction),
            aten.cosine_embedding_loss(x, y, sides, 0.1, reduction),
            aten.margin_ranking_loss(x, y, signs, 0.2, reduction),
            aten.triplet_margin_loss(x, y, p, 1.0, 2.0, 1e-6, True, reduction),
            aten.poisson_nll_loss(x, 3 * q, True, True, 1e-8, reduction),
            aten.poisson_nll_loss(p, 3 * q, False, False, 1e-8, reduction),
        ]
    return [*results, aten.cosine_similarity(x, y, 1), aten.pairwise_distance(x, y, 3.0, 1e-6, True)]


@operations
def loss_gradients(t: Draw) -> list:
    """Gradients of losses."""
    results: list = []
    scores, classes, weight = t(5, 4), t(5, kind="integer", high=4), t(4, kind="uniform")
    maps, places = t(2, 4, 3, 3), t(2, 3, 3, kind="integer", high=4)
    x, y, p, q = t(5, 4), t(5, 4), t(5, 4, kind="uniform"), t(5, 4, kind="uniform")
    for reduction in REDUCTIONS.values():
        whole = reduction != REDUCTIONS["none"]
        each, sample, pixel = (t() if whole else t(5, 4)), (t() if whole else t(5)), (t() if whole else t(2, 3, 3))
        total = aten.nll_loss_forward(scores, classes, weight, reduction, 1)[1]
        total2d = aten.nll_loss2d_forward(maps, places, None, reduction, -100)[1]
        results += [
            aten.nll_loss_backward(sample, scores, classes, weight, reduction, 1, total),
            aten.nll_loss2d_backward(pixel, maps, places, None, reduction, -100, total2d),
            aten.mse_loss_backward(each, x, y, reduction),
            aten.smooth_l1_loss_backward(each, x, y, reduction, 0.7),
            aten.huber_loss_backward(each, x, y, reduction, 0.6),
            aten.binary_cross_entropy_backward(each, p, q, weight, reduction),
            aten.soft_margin_loss_backward(each, x, y.sign(), reduction),
        ]
    return results


@operations
def normalisation_gradients(t: Draw) -> list:
    """Gradients of normalisations, from the statistics that the forward pass saves."""
    x, g, weight, bias = t(3, 6, 4, 5), t(3, 6, 4, 5), t(6), t(6)
    mean, variance = t(6), t(6, kind="uniform")
    every = [True, True, True]
    _, save_mean, save_inverse = aten.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)
    results: list = []
    results += aten.native_batch_norm_backward(g, x, weight, None, None, save_mean, save_inverse, True, 1e-5, every)
    results += aten.native_batch_norm_backward(g, x, weight, mean, variance, None, None, False, 1e-5, every)
    _, mean, inverse = aten.native_group_norm(x, weight, bias, 3, 6, 20, 2, 1e-5)
    results += aten.native_group_norm_backward(g, x, mean, inverse, weight, 3, 6, 20, 2, every)
    inner, shift = t(4, 5), t(4, 5)
    _, mean, inverse = aten.native_layer_norm(x, [4, 5], inner, shift, 1e-5)
    results += aten.native_layer_norm_backward(g, x, [4, 5], mean, inverse, inner, shift, every)
    _, mean, inverse = aten.native_layer_norm(x, [5], None, None, 1e-5)
    results.append(aten.native_layer_norm_backward(g, x, [5], mean, inverse, None, None, [True, False, False])[0])
    return results


@operations
def padding_gradients(t: Draw) -> list:
    """Gradients of padding by reflection and repetition."""
    return [
        aten.reflection_pad1d_backward(t(2, 3, 9), t(2, 3, 5), [1, 3]),
        aten.reflection_pad2d_backward(t(2, 3, 8, 9), t(2, 3, 5, 6), [1, 2, 3, 0]),
        aten.reflection_pad3d_backward(t(2, 4, 5, 6), t(2, 3, 3, 4), [1, 1, 2, 0, 0, 1]),
        aten.replication_pad1d_backward(t(2, 3, 12), t(2, 3, 5), [3, 4]),
        aten.replication_pad2d_backward(t(2, 3, 8, 9), t(2, 3, 5, 6), [1, 2, 3, 0]),
        aten.replication_pad3d_backward(t(2, 4, 5, 6), t(2, 3, 3, 4), [1, 1, 2, 0, 0, 1]),
    ]


@operations
def pooling_gradients(t: Draw) -> list:
    """Gradients of pooling."""
    x, volume = t(2, 3, 9, 8), t(2, 3, 5, 6, 7)
    results: list = []
    for settings in (
        ([3, 2], [2, 2], [1, 0], [1, 1], False),
        ([3, 3], [2, 2], [1, 1], [1, 1], True),
        ([2, 3], [1, 2], [0, 1], [2, 1], False),
    ):
        y, places = aten.max_pool2d_with_indices(x, *settings)
        results.append(aten.max_pool2d_with_indices_backward(t(*y.shape), x, *settings, places))
    for settings in (
        ([3, 2], [2, 2], [1, 0], False, True),
        ([3, 3], [2, 2], [1, 1], True, False),
        ([3, 3], [2, 3], [1, 1], True, True),
    ):
        y = aten.avg_pool2d(x, *settings, None)
        results.append(aten.avg_pool2d_backward(t(*y.shape), x, *settings, None))
    y = aten.avg_pool2d(x, [2, 2], [2, 2], [0, 0], False, True, 3)
    results.append(aten.avg_pool2d_backward(t(*y.shape), x, [2, 2], [2, 2], [0, 0], False, True, 3))
    y = aten.avg_pool3d(volume, [2, 3, 2], [2, 2, 2], [1, 1, 0], False, True)
    results.append(aten.avg_pool3d_backward(t(*y.shape), volume, [2, 3, 2], [2, 2, 2], [1, 1, 0], False, True, None))
    y, places = aten.max_pool3d_with_indices(volume, [2, 2, 3], [2, 2, 2], [1, 0, 1])
    results.append(
        aten.max_pool3d_with_indices_backward(
            t(*y.shape), volume, [2, 2, 3], [2, 2, 2], [1, 0, 1], [1, 1, 1], False, places
        )
    )
    y, places = aten.adaptive_max_pool2d(x, [4, 3])
    results.append(aten.adaptive_max_pool2d_backward(t(*y.shape), x, places))
    results.append(aten._adaptive_avg_pool2d_backward(t(2, 3, 4, 3), x))
    results.append(aten._adaptive_avg_pool2d_backward(t(2, 3, 1, 1), x))
    results.append(aten._adaptive_avg_pool3d_backward(t(2, 3, 2, 4, 3), volume))
    return results


@operations
def recurrent_layers(t: Draw) -> list:
    """Recurrent layers, in one direction and both; the results that the graph keeps whole."""
    x, results = t(5, 2, 4), []
    for gates, layers, ways, call in (
        (4, 2, 2, aten.lstm.input),
        (3, 2, 1, aten.gru.input),
        (1, 1, 2, aten.rnn_tanh.input),
        (1, 1, 1, aten.rnn_relu.input),
    ):
        size, params = 3, []
        for layer in range(layers):
            for _ in range(ways):
                inputs = size * ways if layer else 4
                params += [t(gates * size, inputs), t(gates * size, size), t(gates * size), t(gates * size)]
        start = [t(layers * ways, 2, size) for _ in range(2 if gates == 4 else 1)]  # noqa: PLR2004 (an LSTM's)
        results += call(x, start if len(start) > 1 else start[0], params, True, layers, 0.0, False, ways > 1, False)
    return results


@operations
def norms(t: Draw) -> list:
    """Norms of vectors and matrices along dimensions."""
    x, norm = t(3, 4, 5), torch.linalg.norm
    vectors = [norm(x, ord=order, dim=-1, keepdim=True) for order in (2, 1, 0, 3.5, float("inf"), -float("inf"))]
    matrices = [norm(x, ord=order, dim=(2, 0)) for order in (1, -1, float("inf"), -float("inf"), "fro")]
    return [*vectors, *matrices, norm(x), norm(x, dim=1), norm(x[0], ord=1)]


@operations
def resize_gradients(t: Draw) -> list:
    """Gradients of interpolation, up and down."""
    return [
        aten.upsample_nearest1d_backward(t(2, 3, 9), [9], [2, 3, 4]),
        aten.upsample_nearest2d_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7]),
        aten.upsample_nearest3d_backward(t(2, 3, 4, 6, 5), [4, 6, 5], [2, 3, 2, 3, 5]),
        aten._upsample_nearest_exact2d_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7]),
        aten.upsample_linear1d_backward(t(2, 3, 9), [9], [2, 3, 4], False),
        aten.upsample_bilinear2d_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7], False),
        aten.upsample_bilinear2d_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7], True),
        aten.upsample_bilinear2d_backward(t(2, 3, 8, 14), [8, 14], [2, 3, 4, 7], False, 2.0, 2.0),
        aten.upsample_bicubic2d_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7], False),
        aten.upsample_trilinear3d_backward(t(2, 3, 4, 6, 5), [4, 6, 5], [2, 3, 2, 3, 5], False),
        aten._upsample_bilinear2d_aa_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7], False),
        aten._upsample_bicubic2d_aa_backward(t(2, 3, 9, 4), [9, 4], [2, 3, 4, 7], False),
    ]


@operations
def softmax_gradients(t: Draw) -> list:
    """Gradients of the softmax and its logarithm."""
    g, x = t(3, 4, 5), t(3, 4, 5)
    return [
        aten._softmax_backward_data(g, aten._softmax(x, 1, False), 1, torch.float32),
        aten._log_softmax_backward_data(g, aten._log_softmax(x, -1, False), -1, torch.float32),
    ]
