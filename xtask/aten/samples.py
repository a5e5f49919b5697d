"""Calls that PyTorch's test database does not have, written by hand."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

import torch
from calls import Call
from record import seed

GROUPS = ("pointwise", "matrices", "layers", "shapes", "detection", "quantized")
MAKERS: list[Callable[[], Iterator[Call]]] = []


def samples(make: Callable[[], Iterator[Call]]) -> Callable[[], Iterator[Call]]:
    """Adds a function that makes calls."""
    MAKERS.append(make)
    return make


def call(target: Callable, *args: object, **kwargs: object) -> Call:
    """A call."""
    return Call(target, args, kwargs)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed numbers."""
    return torch.randn(shape, dtype=dtype)


def uniform(*shape: int) -> torch.Tensor:
    """Numbers between 0 and 1."""
    return torch.rand(shape)


def integers(high: int, *shape: int, low: int = 0, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Integers from `low` to below `high`."""
    return torch.randint(low, high, shape, dtype=dtype)


def truths(*shape: int) -> torch.Tensor:
    """Truth values."""
    return torch.randint(0, 2, shape) == 1


def written() -> list[Call]:
    """All calls, each function's with random numbers of its own."""
    for group in GROUPS:
        importlib.import_module(f"samples_{group}")
    found = []
    for make in MAKERS:
        seed(make.__name__)
        found += [made.copied() for made in make()]
    return found
