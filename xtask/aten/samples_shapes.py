"""Tensors made, copied, converted, arranged and reduced."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from calls import Call
from samples import call, integers, normal, samples, truths

aten, prims = torch.ops.aten, torch.ops.prims


@samples
def created() -> Iterator[Call]:
    """New tensors."""
    yield call(aten._shape_as_tensor.default, normal(3, 1, 4))
    yield call(aten.fill.Tensor, normal(3, 4), torch.tensor(2.5))
    yield call(aten.fill.Tensor, integers(9, 3, 4), torch.tensor(7))
    yield call(aten.zero.default, normal(3, 4))
    yield call(aten.zero.default, integers(9, 3))
    cpu = torch.device("cpu")
    for dtype in (torch.int64, torch.int32):
        yield call(prims.iota.default, 5, start=3, step=2, dtype=dtype, device=cpu, requires_grad=False)
    yield call(prims.scalar_tensor.default, 2.5, dtype=torch.float32, device=cpu)
    yield call(prims.scalar_tensor.default, 3, dtype=torch.int64, device=cpu)


@samples
def windows() -> Iterator[Call]:
    """Window functions."""
    for length in (7, 8, 1):
        for name in ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"):
            yield call(getattr(aten, name).default, length)
            yield call(getattr(aten, name).periodic, length, False)
        yield call(aten.hamming_window.periodic_alpha, length, True, 0.6)
        yield call(aten.hamming_window.periodic_alpha_beta, length, False, 0.6, 0.3)
        yield call(aten.kaiser_window.beta, length, False, 8.5)
    yield call(aten.hann_window.default, 6, dtype=torch.float64)


@samples
def converted() -> Iterator[Call]:
    """Copies, of the same type and of others."""
    x, n = 3 * normal(3, 4), integers(9, 3, 4, low=-9)
    types = (torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64)
    cpu = torch.device("cpu")
    for dtype in types:
        yield call(aten.to.dtype, x, dtype)
        yield call(aten.to.dtype_layout, n, dtype=dtype)
        yield call(aten.to.device, x, cpu, dtype)
        yield call(aten.to.prim_dtype, n, dtype)
        yield call(aten.to.prim_Device, x, cpu, dtype)
        yield call(aten.to.other, n, x.to(dtype))
        yield call(aten.type_as.default, x, n.to(dtype))
        yield call(prims.convert_element_type.default, x, dtype)
        yield call(aten.copy.default, x.to(dtype), n)
    yield call(aten.copy.default, x, normal(4))
    yield call(aten.cpu.default, x)
    yield call(aten.cpu.default, n)
    yield call(aten.view.dtype, x, torch.int32)
    yield call(aten.view.dtype, n, torch.float64)
    yield call(aten.detach_.default, x)


@samples
def arranged() -> Iterator[Call]:
    """Tensors put beside one another, and elements in another order."""
    yield call(aten.broadcast_tensors.default, [normal(3, 1), normal(4), normal(1, 1)])
    yield call(aten.cartesian_prod.default, [normal(3), normal(2)])
    yield call(aten.cartesian_prod.default, [integers(9, 3)])
    yield call(aten.native_channel_shuffle.default, normal(2, 6, 3), 3)
    yield call(aten.meshgrid.default, [normal(3), normal(2), normal(4)])
    for indexing in ("ij", "xy"):
        yield call(aten.meshgrid.indexing, [normal(3), normal(2), normal(4)], indexing=indexing)
        yield call(aten.meshgrid.indexing, [integers(9, 2), integers(9, 3)], indexing=indexing)
    yield call(aten.pad_sequence.default, [normal(3, 2), normal(5, 2), normal(1, 2)])
    yield call(aten.pad_sequence.default, [normal(3), normal(5)], True, -1.5, "left")
    yield call(aten._pad_circular.default, normal(1, 2, 5), [2, 1])
    yield call(aten._pad_circular.default, normal(1, 2, 4, 5), [2, 1, 0, 3])
    yield call(aten.slice_scatter.default, normal(4, 5), normal(4, 2), 1, 1, 5, 2)
    yield call(aten.slice_scatter.default, normal(4, 5), normal(2, 5), 0, -2)
    yield call(aten.unsafe_split_with_sizes.default, normal(4, 5), [2, 3], 1)
    times = torch.tensor([2, 0, 3])
    yield call(aten.repeat_interleave.Tensor, times, output_size=5)
    yield call(aten.repeat_interleave.self_Tensor, normal(3, 2), times, 0, output_size=5)
    yield call(aten.repeat_interleave.self_Tensor, normal(2, 3), times, 1, output_size=5)
    x = normal(3, 2, 4)
    yield call(aten.matrix_H.default, normal(3, 4))
    yield call(aten.moveaxis.int, x, 0, -1)
    yield call(aten.movedim.int, x, -1, 0)
    yield call(aten.numpy_T.default, x)
    yield call(aten._reshape_alias.default, x, [6, 4], [4, 1])


@samples
def picked() -> Iterator[Call]:
    """Elements by their places, without checks."""
    x, rows, columns = normal(4, 5, 2), torch.tensor([[0, 3], [2, 2]]), torch.tensor([1, 4])
    yield call(aten._unsafe_index.Tensor, x, [rows])
    yield call(aten._unsafe_index.Tensor, x, [None, columns])
    yield call(aten._unsafe_index.Tensor, x, [rows, columns])
    yield call(aten._unsafe_index_put.default, x, [rows], normal(2, 2, 5, 2), True)
    yield call(aten._unsafe_index_put.default, x, [None, columns], normal(4, 2, 2))


@samples
def reduced() -> Iterator[Call]:
    """Reductions."""
    x = normal(3, 4)
    yield call(aten.linalg_norm.ord_str, x, "fro")
    yield call(aten.linalg_norm.ord_str, normal(2, 3, 4), "fro", [0, 2], True)
    yield call(aten.norm.ScalarOpt_dim_dtype, x, 2.0, [1], False, dtype=torch.float64)
    yield call(aten.norm.ScalarOpt_dim_dtype, x, 1, [0], True, dtype=torch.float64)
    yield call(aten.norm.ScalarOpt_dtype, x, 3.0, dtype=torch.float64)
    yield call(aten.norm.ScalarOpt_dtype, x, None, dtype=torch.float32)
    for name in ("quantile", "nanquantile"):
        q = torch.tensor([0.0, 0.3, 1.0])
        for how in ("linear", "lower", "nearest"):
            yield call(getattr(aten, name).default, x, q, 1, False, interpolation=how)
        yield call(getattr(aten, name).default, x, q)
    yield call(aten.nanquantile.default, torch.tensor([[1.0, torch.nan, 3.0], [torch.nan, 0.5, 2.0]]), q, 1, True)
    for value in (truths(3, 4), torch.ones(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)):
        yield call(aten._is_all_true.default, value)
        yield call(aten._is_any_true.default, value)


@samples
def ordered() -> Iterator[Call]:
    """The largest and smallest of different numbers."""
    x, n = normal(4, 6), torch.randperm(24).reshape(4, 6) - 9
    for tensor in (x, n):
        for largest in (True, False):
            yield call(aten.topk.default, tensor, 3, 1, largest)
            yield call(aten.topk.default, tensor, 2, 0, largest, True)
        yield call(aten.kthvalue.default, tensor, 2)
        yield call(aten.kthvalue.default, tensor, 3, 0, True)
