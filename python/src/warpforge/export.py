"""From a module to an exported program, the joint one of loss and gradients included."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch._decomp import core_aten_decompositions
from torch.export import ExportedProgram
from torch.export.experimental import _export_forward_backward
from torch.nn.attention import SDPBackend, sdpa_kernel

from warpforge.dynamic import DynamicDim, dynamic_shapes
from warpforge.errors import TraceError
from warpforge.factory import Model


def export(model: Model, name: str, dims: list[DynamicDim], *, train: bool, decompose: bool) -> ExportedProgram:
    """Exports the model; what PyTorch refuses is an error with PyTorch's own message."""
    shapes = dynamic_shapes(model, dims)
    step = "torch.export.export"
    try:
        program = torch.export.export(model.module, model.args, model.kwargs, dynamic_shapes=shapes, strict=False)
        if train or decompose:
            _relax_views(program)
        if train:
            step = "torch.export.experimental._export_forward_backward"
            program = _joint(program)
        if decompose:
            step = "ExportedProgram.run_decompositions"
            program = program.run_decompositions()
    except TraceError:
        raise
    except Exception as error:
        raise TraceError(
            f"{step} cannot export {name}: {type(error).__name__}: {error}",
            "the model must be traceable by PyTorch itself; the message above is PyTorch's",
        ) from error
    return program


@contextmanager
def loss_only(module: nn.Module, name: str, parts: Sequence[str] = ()) -> Iterator[None]:
    """Lets the module return nothing but its loss, since the joint graph has no gradients of other outputs.

    parts: values beside the loss, by their keys in what the module returns, that are outputs of the graph too.
    """
    forward = module.forward

    @functools.wraps(forward)
    def loss(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (whatever the module takes)
        returned = forward(*args, **kwargs)
        first = torch.utils._pytree.tree_leaves(returned)[0]
        if not isinstance(first, torch.Tensor) or first.dim() != 0:
            what = f"a tensor of shape {list(first.shape)}" if isinstance(first, torch.Tensor) else repr(first)
            raise TraceError(
                f"{name} cannot be exported for training: the first value it returns is {what}, not a scalar loss",
                "let `forward` return the loss, or a tuple that begins with it",
            )
        if parts:
            return {"loss": first} | {part: returned[part].detach() for part in parts}
        return first

    module.forward = loss
    try:
        yield
    finally:
        del module.forward


def _relax_views(program: ExportedProgram) -> None:
    """Lets views copy where they must: decomposed operations have other strides than those that the views fit."""
    for node in _computing(program):
        if node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    program.graph_module.recompile()


def _joint(program: ExportedProgram) -> ExportedProgram:
    for node in _placeholders(program):
        # A tied parameter is in the graph under one of its names; under the others it gets no gradient, which
        # PyTorch takes for a mistake.
        if not node.users and isinstance(node.meta.get("val"), torch.Tensor):
            node.meta["val"].requires_grad_(False)
    # PyTorch's decomposition of its fused attention on CPUs hands the weights to the backward pass in place of the
    # logarithm of their sums, so the gradients are wrong. Those of the plain form of attention are right.
    with sdpa_kernel(SDPBackend.MATH):
        forward = program.run_decompositions(core_aten_decompositions())
        joint = _export_forward_backward(program)
    _restore_sources(joint, forward)
    return joint


def _restore_sources(joint: ExportedProgram, forward: ExportedProgram) -> None:
    """Gives the nodes of the forward pass their module and source line back, which the joint export loses.

    A node of the joint graph is that of the forward graph which does the same with the same operands.
    """
    of_alias: dict[torch.fx.Node, torch.fx.Node] = {}
    found: dict[str, list[torch.fx.Node]] = defaultdict(list)
    for node in _computing(joint):
        if node.target is torch.ops.aten.alias.default:
            of_alias[node] = of_alias.get(node.args[0], node.args[0])
        else:
            found[_key(node, of_alias)].append(node)
    twins = dict(zip(_placeholders(forward), _placeholders(joint), strict=True))
    for node in _computing(forward):
        same = found[_key(node, twins)]
        if same:
            twins[node] = same.pop(0)
            for what in ("stack_trace", "nn_module_stack"):
                twins[node].meta[what] = node.meta.get(what)


def _key(node: torch.fx.Node, renamed: dict[torch.fx.Node, torch.fx.Node]) -> str:
    operands = torch.fx.node.map_arg((node.args, node.kwargs), lambda operand: renamed.get(operand, operand))
    return f"{node.target} {operands}"


def _placeholders(program: ExportedProgram) -> list[torch.fx.Node]:
    return [node for node in program.graph.nodes if node.op == "placeholder"]


def _computing(program: ExportedProgram) -> list[torch.fx.Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]
