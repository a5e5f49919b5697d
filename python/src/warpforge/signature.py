"""The names of a program's inputs and outputs, as `warpt` has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, OutputSpec, TensorArgument

GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


def inputs(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The example inputs that are tensors, by the names of the graph's signature."""
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    values = torch.utils._pytree.tree_leaves(program.example_inputs)
    return {spec.arg.name: value for spec, value in zip(specs, values, strict=True) if isinstance(value, torch.Tensor)}


def outputs(program: ExportedProgram, values: list[Any]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The graph's outputs by name, and apart from them the gradients, by the name of what they are the gradient of.

    Outputs have the model's own names, the keys of dicts and the fields of dataclasses (`logits`, `past.0.key`). What
    only positions lead to is `out0`, `out1`, … by its place among what the model returns. The loss is `loss`; a buffer
    that the graph changes has the buffer's name.
    """
    named: dict[str, torch.Tensor] = {}
    gradients: dict[str, torch.Tensor] = {}
    names = iter(user_names(program))
    for spec, value in zip(program.graph_signature.output_specs, values, strict=True):
        name = next(names) if spec.kind is OutputKind.USER_OUTPUT else spec.target
        if not isinstance(spec.arg, TensorArgument):
            continue
        if spec.kind is OutputKind.USER_OUTPUT:
            named[name] = value
        elif spec.kind is OutputKind.LOSS_OUTPUT:
            named["loss"] = value
        elif spec.kind in GRADIENTS:
            gradients[spec.target] = value
        else:
            named[spec.target] = value
    return named, gradients


def user_names(program: ExportedProgram) -> list[str]:
    """The names of what the model returns, the loss left out."""
    specs = program.graph_signature.output_specs
    returned = [spec for spec in specs if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)]
    own = list(_leaves(_out_spec(program), (), named=False))
    if len(own) != len(returned):
        own = [None] * len(returned)
    taken = {_fixed_name(spec) for spec in specs if spec.kind is not OutputKind.USER_OUTPUT}
    names: list[str] = []
    for spec, name in zip(returned, own, strict=True):
        if spec.kind is not OutputKind.USER_OUTPUT:
            continue
        names.append(f"out{len(names)}" if name is None or name in taken else name)
        taken.add(name)
    return names


def _fixed_name(spec: OutputSpec) -> str | None:
    if spec.kind is OutputKind.LOSS_OUTPUT:
        return "loss"
    return f"grad.{spec.target}" if spec.kind in GRADIENTS else spec.target


def _out_spec(program: ExportedProgram) -> dict[str, Any]:
    """The structure that the model returns, as archives have it."""
    return json.loads(torch.utils._pytree.treespec_dumps(program.call_spec.out_spec))[1]


def _leaves(tree: dict[str, Any], path: tuple[str, ...], *, named: bool) -> Iterator[str | None]:
    """The names of the leaves of a structure; what only positions lead to has none."""
    if tree["type"] is None:
        yield ".".join(path) if named else None
        return
    keys = _keys(tree)
    for at, child in enumerate(tree["children_spec"]):
        key = str(at) if keys is None else keys[at]
        yield from _leaves(child, (*path, key), named=named or keys is not None)


def _keys(tree: dict[str, Any]) -> list[str] | None:
    """The keys of a dict or the fields of a dataclass."""
    try:
        keys = json.loads(tree["context"])
    except (TypeError, ValueError):
        return None
    if isinstance(keys, list) and keys and isinstance(keys[0], list):
        keys = keys[0]
    if not isinstance(keys, list) or len(keys) != len(tree["children_spec"]):
        return None
    usable = all(key != "" and isinstance(key, (str, int, float)) and not isinstance(key, bool) for key in keys)
    return [str(key) for key in keys] if usable else None
