"""Dropout as data: masks that PyTorch draws are recorded, and a graph that is exported takes them as inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
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
            self.masks.append(mask.detach().bool().cpu().contiguous())
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
    """The masks of all forward passes of a run: drawn in the golden run, taken from there in another.

    Of several ranks each keeps those of its part of a batch; whoever has the whole batch gets them joined.
    """

    def __init__(self, folder: GoldenFolder, axes: Sequence[int], *, draws: bool, ranks: int = 1) -> None:
        self.folder, self.axes, self.draws, self.ranks = folder, axes, draws, ranks
        self.run = 0

    def inputs(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The inputs of the exported graph for the last forward pass."""
        return batch | (named(self._whole(self.run)) if self.draws else {})

    @contextmanager
    def record(self, run: int) -> Iterator[None]:
        """Around a forward pass of the golden run, on all ranks."""
        if not self.draws:
            yield
            return
        with recorded(self.folder.path, run, 0 if self.ranks > 1 else None):
            yield
        self.run = run

    @contextmanager
    def replay(self, run: int) -> Iterator[None]:
        """Around a forward pass of another run, on the whole batch."""
        if not self.draws:
            yield
            return
        with replayed(self._whole(run)):
            yield

    def add_to_manifest(self) -> None:
        """Puts the files of all ranks into the manifest."""
        for path in sorted(self.folder.path.glob("masks/**/*.safetensors")):
            self.folder.add(path.relative_to(self.folder.path).as_posix())

    def _whole(self, run: int) -> list[torch.Tensor]:
        """The masks of a forward pass for its whole batch."""
        ranks = range(self.ranks) if self.ranks > 1 else (None,)
        parts = [load_file(self.folder.path / file_name(run, rank)) for rank in ranks]
        return [torch.cat([part[f"masks_{at}"] for part in parts], axis) for at, axis in enumerate(self.axes)]


@contextmanager
def recorded(folder: Path, run: int, rank: int | None) -> Iterator[None]:
    """Around a forward pass whose masks are kept; `rank` is None where there is one only."""
    with Recorder() as recorder:
        yield
    path = folder / file_name(run, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(named(recorder.masks), path)


def batch_axes(whole: Sequence[torch.Tensor], part: Sequence[torch.Tensor], ranks: int) -> list[int]:
    """The dimension along which the masks of parts of a batch are joined, for each mask."""
    if len(whole) != len(part):
        raise TraceError(
            f"dropout draws {len(whole)} masks for a batch and {len(part)} for a part of it",
            "record with one rank",
        )
    pairs = zip(whole, part, strict=True)
    return [_batch_axis(at, tuple(one.shape), tuple(other.shape), ranks) for at, (one, other) in enumerate(pairs)]


def _batch_axis(at: int, whole: tuple[int, ...], part: tuple[int, ...], ranks: int) -> int:
    different = [axis for axis, (one, other) in enumerate(zip(whole, part, strict=False)) if one != other]
    if len(whole) != len(part) or len(different) != 1 or whole[different[0]] != ranks * part[different[0]]:
        raise TraceError(
            f"mask {at} of dropout is {list(whole)} for a batch and {list(part)} for a part of it: "
            "no dimension of it is the batch's",
            "record with one rank",
        )
    return different[0]


def file_name(run: int, rank: int | None = None) -> str:
    """The file of a forward pass's masks."""
    folder = "masks" if rank is None else f"masks/rank_{rank:06d}"
    return f"{folder}/run_{run:06d}.safetensors"
