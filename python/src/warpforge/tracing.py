"""The function `trace`: export a model, and keep PyTorch's own results beside the archive."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from warpforge import eager, modules, nodes, packing, places, signature
from warpforge.dynamic import DynamicDim
from warpforge.errors import TraceError
from warpforge.export import export, loss_only
from warpforge.factory import Model, load_model
from warpforge.golden import GoldenFolder
from warpforge.subclasses import plain_parameters

# Kernels add up in different orders; more than this of a tensor's largest value, or more than this where all of its
# values are nothing but rounding, is another computation. Narrow types round where the kernels of a decomposed graph
# begin and end, so that some steps of the narrowest type that the graph computes in are no other computation either.
RELATIVE_AGREEMENT = 1e-3
ABSOLUTE_AGREEMENT = 1e-5
STEPS_OF_AGREEMENT = 8


@dataclass
class Traced:
    """What a trace wrote, and the program it is of."""

    archive: Path
    golden: Path
    program: ExportedProgram
    manifest: dict[str, Any]


def trace(  # noqa: PLR0913 (each is an option of the command)
    model: nn.Module | Model | str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    output: str | Path,
    train: bool = False,
    dynamic: Sequence[str | DynamicDim] = (),
    decompose: bool = False,
    activations: bool = False,
    weights: bool = False,
    seed: int = 0,
) -> Traced:
    """Exports a model to `output` (a `.pt2` file) and its golden folder beside it.

    model: a module with its example `args` and `kwargs`, a `Model`, or the name of a function, `module:function`.
    train: export the loss and the gradient of each parameter in one graph; the model must return its loss first.
        The model stays in the mode (`train()` or `eval()`) that it has. Otherwise it is put into `eval()` mode.
    dynamic: dimensions to keep symbolic, such as `batch` or `seq=1:2:512`.
    decompose: run PyTorch's default decompositions, to Core ATen operations.
    activations: keep the value of every node of the graph by its name, and what every module gave by the module's.
    weights: keep parameters, buffers and constants.
    seed: of the random numbers.
    """
    archive = Path(output)
    if archive.suffix != ".pt2":
        raise TraceError(f"`{archive}` does not end in .pt2", "torch.export writes .pt2 archives; name it so")
    dims = [DynamicDim.parse(dim) if isinstance(dim, str) else dim for dim in dynamic]
    name, model = _resolve(model, args, kwargs, seed)
    captured = capture(model, name, train=train, dims=dims, decompose=decompose, activations=activations, seed=seed)
    program = captured.program

    archive.parent.mkdir(parents=True, exist_ok=True)
    golden = GoldenFolder(archive.with_suffix(".golden"))
    captured.save(archive)
    golden.tensors("inputs", signature.inputs(program))
    golden.tensors("outputs", captured.outputs)
    if train:
        golden.tensors("gradients", captured.gradients)
        golden.numbers("losses", {"loss": [captured.outputs["loss"].item()]})
    if activations:
        golden.tensors("activations", captured.by_node)
        golden.tensors("activations/modules", captured.by_module)
    if weights:
        golden.tensors("weights", {**program.state_dict, **_tensors(program.constants)})
    manifest = golden.manifest(
        archive,
        {
            "model": name,
            "seed": seed,
            "mode": "train" if train else "inference",
            "decomposed": decompose,
            "dynamic": [str(dim) for dim in dims],
            "nodes": nodes.describe(program),
        },
    )
    return Traced(archive, golden.path, program, manifest)


@dataclass
class Captured:
    """A model's exported program, and PyTorch's own results on the example inputs."""

    program: ExportedProgram
    outputs: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor]
    by_node: dict[str, torch.Tensor]
    by_module: dict[str, torch.Tensor]
    places: dict[str, dict[str, str]]

    def save(self, archive: Path) -> None:
        """Writes the archive, with the nodes that the modules' values come from and how weights are packed."""
        torch.export.save(
            self.program, archive, extra_files=places.written(self.places) | packing.written(self.program)
        )


def capture(  # noqa: PLR0913 (the options of a trace)
    model: Model,
    name: str,
    *,
    train: bool,
    dims: Sequence[DynamicDim] = (),
    decompose: bool = False,
    activations: bool = False,
    seed: int = 0,
    parts: Sequence[str] = (),
) -> Captured:
    """Exports a model and runs it, by itself and as its exported graph; the two must agree.

    parts: what a graph for training gives beside the loss, by the keys of what the model returns.
    """
    if not train:
        _to_eval(model.module)
    with plain_parameters(model.module), loss_only(model.module, name, parts) if train else nullcontext():
        program = export(model, name, list(dims), train=train, decompose=decompose)
        torch.manual_seed(seed)
        with modules.recorded(model.module) if activations else nullcontext({}) as by_module:
            own, gradients = eager.results(model, program, train)
    torch.manual_seed(seed)
    # A large model's values do not fit into memory all at once.
    values, recorded = nodes.record(program) if activations else (nodes.run(program), {})
    agree = partial(_agree, relative=_relative_agreement(program))
    _check_agreement(own | gradients, program, values, agree)
    found = places.find(program, by_module, recorded, agree)
    return Captured(program, own, gradients, recorded, by_module, found)


def _to_eval(module: nn.Module) -> None:
    try:
        module.eval()
    except NotImplementedError:
        # What an export or PT2E made stays in the mode that it was exported in.
        return


def _resolve(
    model: nn.Module | Model | str, args: Sequence[Any], kwargs: Mapping[str, Any] | None, seed: int
) -> tuple[str, Model]:
    if isinstance(model, nn.Module):
        return type(model).__qualname__, Model(model, tuple(args), dict(kwargs or {}))
    if args or kwargs:
        raise TraceError("example arguments are given twice", "give args and kwargs only together with a module")
    if isinstance(model, Model):
        return type(model.module).__qualname__, model
    return model, load_model(model, seed)


def _check_agreement(
    own: dict[str, torch.Tensor],
    program: ExportedProgram,
    values: list[Any],
    agree: Callable[[torch.Tensor, torch.Tensor], bool],
) -> None:
    named, gradients = signature.outputs(program, values)
    for name, value in (named | gradients).items():
        if not agree(own[name], value):
            difference, scale = _difference(own[name], value)
            raise TraceError(
                f"the exported graph does not compute what the module does: {name} differs by {difference:.2g}, "
                f"its largest value is {scale:.2g}",
                "does the model use random numbers or change between two calls? Try eval() mode or dropout=0",
            )


def _relative_agreement(program: ExportedProgram) -> float:
    """How far results may be apart, of their largest value: by the narrowest type of floats in the graph."""
    leaves = torch.utils._pytree.tree_leaves([node.meta.get("val") for node in program.graph.nodes])
    types = {leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()}
    return max([RELATIVE_AGREEMENT, *(STEPS_OF_AGREEMENT * torch.finfo(dtype).eps for dtype in types)])


def _agree(own: torch.Tensor, exported: torch.Tensor, relative: float) -> bool:
    difference, scale = _difference(own, exported)
    return difference <= relative * scale + ABSOLUTE_AGREEMENT


def _difference(own: torch.Tensor, exported: torch.Tensor) -> tuple[float, float]:
    """The largest difference of two tensors, and the largest finite value of the first."""
    if own.shape != exported.shape or own.dtype != exported.dtype:
        return math.inf, 0.0
    wide = torch.complex128 if own.is_complex() else torch.float64
    left, right = own.to(wide), exported.to(wide)
    same = (left == right) | (left.isnan() & right.isnan())
    differences = torch.where(same, 0.0, (left - right).abs())
    finite = left[left.isfinite()].abs()
    return _largest(differences), _largest(finite)


def _largest(values: torch.Tensor) -> float:
    return values.max().item() if values.numel() else 0.0


def _tensors(values: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
