"""The names of a program's inputs and outputs, as `warpt` has them."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

GRADIENTS = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)


def inputs(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The example inputs that are tensors, by the names of the graph's signature."""
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    values = torch.utils._pytree.tree_leaves(program.example_inputs)
    return {spec.arg.name: value for spec, value in zip(specs, values, strict=True) if isinstance(value, torch.Tensor)}


def outputs(program: ExportedProgram, values: list[Any]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The graph's outputs by name, and apart from them the gradients, by the name of what they are the gradient of.

    Outputs are `out0`, `out1`, … in order, counting tensors only; the loss is `loss`; a buffer that the graph changes
    has the buffer's name.
    """
    named: dict[str, torch.Tensor] = {}
    gradients: dict[str, torch.Tensor] = {}
    count = 0
    for spec, value in zip(program.graph_signature.output_specs, values, strict=True):
        if not isinstance(spec.arg, TensorArgument):
            continue
        if spec.kind is OutputKind.USER_OUTPUT:
            named[f"out{count}"] = value
            count += 1
        elif spec.kind is OutputKind.LOSS_OUTPUT:
            named["loss"] = value
        elif spec.kind in GRADIENTS:
            gradients[spec.target] = value
        else:
            named[spec.target] = value
    return named, gradients
