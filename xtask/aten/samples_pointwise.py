"""Elementwise operators, and those that choose between elements."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from calls import Call
from samples import call, integers, normal, samples, truths, uniform

aten = torch.ops.aten


@samples
def numbers_on_one_side() -> Iterator[Call]:
    """Arithmetic with Python's numbers."""
    for x in (normal(3, 4), integers(9, 3, 4, low=-9)):
        for scalar in (2, 1.5):
            for name in ("multiply", "subtract", "divide", "true_divide", "floor_divide", "fmod"):
                yield call(getattr(aten, name).Scalar, x, scalar)
            for mode in ("floor", "trunc", None):
                yield call(aten.div.Scalar_mode, x, scalar, rounding_mode=mode)
                yield call(aten.divide.Scalar_mode, x, scalar, rounding_mode=mode)
            yield call(aten.remainder.Scalar_Tensor, 7.5 if x.is_floating_point() else 7, 2 * x + 1)
            yield call(aten.clamp_max.default, x, scalar)
            yield call(aten.clip.default, x, -scalar, scalar)
            yield call(aten.clip.default, x, max=scalar)
            for name in ("greater", "greater_equal", "less", "less_equal", "not_equal"):
                yield call(getattr(aten, name).Scalar, x, scalar)
    x = 3 * uniform(3, 4)
    yield call(aten.float_power.Scalar, 1.5, x)
    yield call(aten.float_power.Scalar, 2, integers(5, 3, 4))
    yield call(aten.float_power.Tensor_Scalar, x, 2.5)
    yield call(aten.float_power.Tensor_Scalar, integers(5, 3, 4), 3)
    for name in ("special_xlog1py", "special_zeta"):
        yield call(getattr(aten, name).other_scalar, x + 1.5, 2.5)
        yield call(getattr(aten, name).self_scalar, 2.5, x + 0.5)
    yield call(aten.special_xlog1py.other_scalar, torch.tensor([0.0, 1.0, torch.nan]), -1.0)
    yield call(aten.xlogy.Scalar_Other, x, 2.5)
    yield call(aten.xlogy.Scalar_Other, torch.tensor([0.0, 1.0, torch.nan]), 0.0)
    yield call(aten.xlogy.Scalar_Self, 1.5, x)
    yield call(aten.xlogy.Scalar_Self, 0, torch.tensor([0.0, 1.0, torch.nan, torch.inf]))


@samples
def shares() -> Iterator[Call]:
    """The normal distribution, where PyTorch keeps its digits."""
    yield call(aten.special_ndtr.default, 4 * uniform(3, 4) - 1)
    yield call(aten.special_ndtr.default, integers(4, 5))


@samples
def bits() -> Iterator[Call]:
    """Operators on the bits of integers and on truth values."""
    for low, high, dtype in ((-99, 99, torch.int64), (-99, 99, torch.int32), (0, 200, torch.uint8)):
        x, y = integers(high, 3, 4, low=low, dtype=dtype), integers(high, 4, low=low, dtype=dtype)
        for name in ("__and__", "__or__", "__xor__", "bitwise_and", "bitwise_or", "bitwise_xor"):
            yield call(getattr(aten, name).Tensor, x, y)
            yield call(getattr(aten, name).Scalar, x, 13)
            if name.startswith("bitwise"):
                yield call(getattr(aten, name).Scalar_Tensor, 13, x)
        shift = integers(5, 4, dtype=dtype)
        for name in ("__lshift__", "__rshift__"):
            yield call(getattr(aten, name).Tensor, x, shift)
            yield call(getattr(aten, name).Scalar, x, 3)
        for name in ("bitwise_left_shift", "bitwise_right_shift"):
            yield call(getattr(aten, name).Tensor_Scalar, x, 3)
    p, q = truths(3, 4), truths(4)
    for name in ("__and__", "__or__", "__xor__"):
        yield call(getattr(aten, name).Tensor, p, q)
        yield call(getattr(aten, name).Scalar, p, True)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield call(getattr(aten, name).Scalar, p, True)


@samples
def choices() -> Iterator[Call]:
    """Choosing between tensors and numbers."""
    condition = truths(3, 4)
    yield call(aten.where.Scalar, condition, 1.5, -2.0)
    yield call(aten.where.Scalar, condition, 1, 2)
    yield call(aten.where.ScalarOther, condition, normal(3, 4), 0.5)
    yield call(aten.where.ScalarOther, condition, integers(9, 4), 7)
    yield call(aten.where.ScalarSelf, condition, 0.5, normal(4))
    yield call(aten.where.ScalarSelf, condition, 7, integers(9, 4))


@samples
def searches() -> Iterator[Call]:
    """Numbers among sorted ones, and in sets."""
    edges = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    for right in (False, True):
        for number in (0.5, -3, 0.7):
            yield call(aten.bucketize.Scalar, number, edges, right=right)
            yield call(aten.searchsorted.Scalar, edges, number, right=right)
    yield call(aten.bucketize.Scalar, 0.7, edges, out_int32=True)
    for invert in (False, True):
        yield call(aten.isin.Scalar_Tensor, 3, torch.tensor([1, 3, 5]), invert=invert)
        yield call(aten.isin.Tensor_Scalar, integers(4, 3, 4), 3, invert=invert)


@samples
def without_chance() -> Iterator[Call]:
    """Operators that draw random numbers, where they draw none."""
    x = normal(3, 4)
    for name in ("alpha_dropout", "dropout", "feature_alpha_dropout", "feature_dropout"):
        yield call(getattr(aten, name).default, x, 0.5, False)
        yield call(getattr(aten, name).default, x, 0.0, True)
    yield call(aten.native_dropout.default, x, 0.5, False)
    yield call(aten.native_dropout.default, x, 0.0, True)
    for name in ("rrelu", "rrelu_with_noise", "rrelu_with_noise_functional"):
        noise = () if name == "rrelu" else (torch.zeros(3, 4),)
        yield call(getattr(aten, name).default, x, *noise)
        yield call(getattr(aten, name).default, x, *noise, 0.2, 0.4, False)
