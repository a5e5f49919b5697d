"""PyTorch's own results: the module run as it is, without export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from warpforge import signature
from warpforge.errors import TraceError
from warpforge.factory import Model


def results(
    model: Model, program: ExportedProgram, train: bool
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The module's outputs and gradients, named as those of the exported program."""
    args, kwargs = _copied((model.args, model.kwargs))
    with _state_kept(model.module), torch.set_grad_enabled(train):
        returned = model.module(*args, **kwargs)
        leaves = torch.utils._pytree.tree_leaves(returned)
        if train:
            leaves[0].backward()
        state = dict(model.module.named_parameters(remove_duplicate=False)) | dict(model.module.named_buffers())
        arguments = dict(Model(model.module, args, kwargs).named_tensors())
        values = list(_in_order(program, leaves, state, arguments))
        return signature.outputs(program, values)


def _in_order(
    program: ExportedProgram, leaves: list[Any], state: dict[str, torch.Tensor], arguments: dict[str, torch.Tensor]
) -> Iterator[Any]:
    """The module's values in the order of the program's output signature."""
    specs = program.graph_signature.output_specs
    returned = [spec for spec in specs if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)]
    if len(returned) != len(leaves):
        raise TraceError(f"the module returned {len(leaves)} values, its exported graph {len(returned)}")
    rest = iter(leaves)
    for spec in specs:
        match spec.kind:
            case OutputKind.USER_OUTPUT | OutputKind.LOSS_OUTPUT:
                value = next(rest)
            case OutputKind.GRADIENT_TO_PARAMETER:
                value = state[spec.target].grad
            case OutputKind.GRADIENT_TO_USER_INPUT:
                value = arguments[spec.target].grad
            case OutputKind.USER_INPUT_MUTATION:
                value = arguments[spec.target]
            case _:
                value = state[spec.target]
        yield value.detach().clone() if isinstance(value, torch.Tensor) else value


@contextmanager
def _state_kept(module: nn.Module) -> Iterator[None]:
    """Puts buffers and gradients back as they were."""
    buffers = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}
    gradients = [(parameter, parameter.grad) for parameter in module.parameters()]
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(buffers[name])


def _copied(arguments: Any) -> Any:  # noqa: ANN401 (any nesting of arguments)
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad), arguments
    )
