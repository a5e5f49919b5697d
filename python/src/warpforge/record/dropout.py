"""Dropout as data: masks that PyTorch draws are recorded, and a graph that is exported takes them as inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from warpforge.errors import TraceError
from warpforge.golden import GoldenFolder

DRAWS = (torch.ops.aten.bernoulli_.float, torch.ops.aten.native_dropout.default)


class Recorder(TorchDispatchMode):
    """Keeps the masks that dropout draws, in order; what computes is PyTorch, unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: list[torch.Tensor] = []

    def __torch_dispatch__(  # noqa: ANN204 (torch's own interface)
        self, func: Callable[..., Any], _types: object, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ):
        result = func(*args, **(kwargs or {}))
        if func in DRAWS:
            mask = result[1] if isinstance(result, tuple) else result
            self.masks.append(mask.detach().bool().cpu())
        return result


@contextmanager
def replayed(masks: Sequence[torch.Tensor]) -> Iterator[None]:
    """Lets dropout take these masks in order, instead of drawing them."""
    left = iter(masks)

    def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:  # noqa: A002
        if not training or p == 0.0:
            return input
        mask = next(left, None)
        if mask is None:
            raise TraceError("the model draws more masks than were recorded", "does it change between two calls?")
        return input * mask.to(input.device, input.dtype).div(1.0 - p)

    with mock.patch("torch.nn.functional.dropout", dropout):
        yield


@contextmanager
def as_inputs(module: nn.Module) -> Iterator[None]:
    """Lets the module take its masks as an argument, `masks`."""
    forward = module.forward

    def masked(*, masks: list[torch.Tensor], **batch: torch.Tensor) -> Any:  # noqa: ANN401 (whatever the module gives)
        with replayed(masks):
            return forward(**batch)

    module.forward = masked
    try:
        yield
    finally:
        # Whoever wrapped it again has removed it already.
        module.__dict__.pop("forward", None)


def drawn(module: nn.Module, batch: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The masks of one forward pass, for example inputs; a model without dropout has none."""
    with torch.no_grad(), Recorder() as recorder:
        module(**batch)
    return recorder.masks


def named(masks: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The masks by the names of the exported graph's inputs."""
    return {f"masks_{at}": mask for at, mask in enumerate(masks)}


class Kept:
    """The masks of all forward passes of a run: drawn in the golden run, taken from there in another."""

    def __init__(self, folder: GoldenFolder, *, draws: bool) -> None:
        self.folder, self.draws = folder, draws
        self.last: list[torch.Tensor] = []

    def inputs(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The inputs of the exported graph for the last forward pass."""
        return batch | named(self.last)

    @contextmanager
    def record(self, run: int) -> Iterator[None]:
        """Around a forward pass of the golden run."""
        if not self.draws:
            yield
            return
        with Recorder() as recorder:
            yield
        self.last = recorder.masks
        path = self.folder.path / file_name(run)
        path.parent.mkdir(exist_ok=True)
        save_file(named(self.last), path)
        self.folder.add(file_name(run))

    @contextmanager
    def replay(self, run: int) -> Iterator[None]:
        """Around a forward pass of another run."""
        if not self.draws:
            yield
            return
        values = load_file(self.folder.path / file_name(run))
        with replayed([values[f"masks_{at}"] for at in range(len(values))]):
            yield


def file_name(run: int) -> str:
    """The file of a forward pass's masks."""
    return f"masks/run_{run:06d}.safetensors"
