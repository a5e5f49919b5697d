"""Matrix products, attention, recurrent layers and transforms of weights."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from calls import Call
from samples import call, normal, samples, uniform

aten = torch.ops.aten


@samples
def contractions() -> Iterator[Call]:
    """Products over named dimensions."""
    yield call(aten.einsum.default, "ij,jk->ik", [normal(3, 4), normal(4, 5)])
    yield call(aten.einsum.default, "bij,bjk->bik", [normal(2, 3, 4), normal(2, 4, 5)])
    yield call(aten.einsum.default, "...ij,j", [normal(2, 3, 4), normal(4)])
    yield call(aten.einsum.default, "ii->i", [normal(4, 4)])
    yield call(aten.einsum.default, "i,j,k->kij", [normal(2), normal(3), normal(4)])
    yield call(aten.tensordot.default, normal(2, 3, 4), normal(4, 3, 5), [1, 2], [1, 0])
    yield call(aten.tensordot.default, normal(2, 3), normal(4), [], [])
    yield call(aten.kron.default, normal(2, 3), normal(3, 2))
    yield call(aten.kron.default, normal(2), normal(2, 1, 3))


@samples
def wide_products() -> Iterator[Call]:
    """Products of narrow floats in a wider type, which PyTorch has kernels for on GPUs only."""
    bf16, f32 = torch.bfloat16, torch.float32
    a, b, c = normal(3, 4, dtype=bf16), normal(4, 5, dtype=bf16), normal(3, 5, dtype=bf16)
    yield Call(aten.mm.dtype, (a, b, f32), instead=lambda a, b, _: aten.mm(a.float(), b.float()))
    yield Call(aten.addmm.dtype, (c, a, b, f32), instead=lambda c, a, b, _: aten.addmm(c.float(), a.float(), b.float()))
    a, b, c = normal(2, 3, 4, dtype=bf16), normal(2, 4, 5, dtype=bf16), normal(2, 3, 5, dtype=bf16)
    yield Call(aten.bmm.dtype, (a, b, f32), instead=lambda a, b, _: aten.bmm(a.float(), b.float()))
    wide = lambda c, a, b, _: aten.baddbmm(c.float(), a.float(), b.float())  # noqa: E731
    yield Call(aten.baddbmm.dtype, (c, a, b, f32), instead=wide)


@samples
def experts() -> Iterator[Call]:
    """Products of groups of rows, each with a matrix of its own."""
    ends = torch.tensor([2, 2, 5], dtype=torch.int32)
    torch.library.custom_op("transformers::grouped_mm_fallback", _grouped, mutates_args=())
    yield call(torch.ops.transformers.grouped_mm_fallback.default, normal(5, 4), normal(3, 4, 2), ends)
    bf16 = torch.bfloat16
    yield call(aten._grouped_mm.default, normal(5, 8, dtype=bf16), normal(3, 8, 8, dtype=bf16), ends)


def _grouped(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:  # noqa: A002 (its names)
    """What the operator of transformers computes: row i times the matrix of the first group that ends after i."""
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    return torch.cat([input[start:end] @ weight[at] for at, (start, end) in enumerate(zip(starts, ends, strict=True))])


@samples
def weights() -> Iterator[Call]:
    """Weights of a norm and a direction, and products of experts."""
    v = normal(4, 3)
    yield call(aten._weight_norm.default, v, uniform(4, 1), 0)
    yield call(aten._weight_norm.default, v, uniform(1, 3), 1)
    yield call(aten._weight_norm_interface.default, v, uniform(4, 1), 0)
    yield call(aten._weight_norm_interface.default, v, uniform(1, 3), 1)


@samples
def attention_gradients() -> Iterator[Call]:
    """Gradients of attention, from what the forward pass saves."""
    for causal, masked in ((False, False), (True, False), (False, True)):
        keys = 4 if causal else 5
        q, k, v = normal(1, 2, 4, 6), normal(1, 2, keys, 6), normal(1, 2, keys, 6)
        mask = normal(1, 1, 4, keys) if masked else None
        kwargs = {"attn_mask": mask, "scale": 0.3} if masked else {}
        forward = aten._scaled_dot_product_flash_attention_for_cpu.default
        out, total = forward(q, k, v, 0.0, causal, **kwargs)
        backward = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
        yield call(forward, q, k, v, 0.0, causal, **kwargs)
        yield call(backward, normal(1, 2, 4, 6), q, k, v, out, total, 0.0, causal, **kwargs)


@samples
def recurrent() -> Iterator[Call]:
    """Recurrent layers, in one direction and both, with and without biases."""
    for gates, op in ((4, aten.lstm), (3, aten.gru), (1, aten.rnn_tanh), (1, aten.rnn_relu)):
        for layers, ways, biases, batch_first in ((1, 1, True, False), (2, 2, True, False), (1, 1, False, True)):
            size, params = 3, []
            for layer in range(layers):
                for _ in range(ways):
                    inputs = size * ways if layer else 4
                    params += [normal(gates * size, inputs), normal(gates * size, size)]
                    params += [normal(gates * size), normal(gates * size)] if biases else []
            x = normal(2, 5, 4) if batch_first else normal(5, 2, 4)
            start = [normal(layers * ways, 2, size) for _ in range(2 if op is aten.lstm else 1)]
            state = start if op is aten.lstm else start[0]
            yield call(op.input, x, state, params, biases, layers, 0.0, False, ways > 1, batch_first)
