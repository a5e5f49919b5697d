"""Gradients on the other side of ReLU's kink.

Next to zero, rounding decides which side of the kink an input of ReLU is on, and with it whether a gradient passes.
Such an input is rare and its effect on a gradient is large, so the distance between two runs shows it only where one of
them has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as PyTorch calls it)
from torch import nn
from torch.overrides import TorchFunctionMode

from warpforge.record.training import first, floats

RELU = {F.relu, torch.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_, F.relu_}
# How many times the root mean square of the rounding of its tensor an input may be from zero to be on either side.
NEAR = 4.0


class _Seen(TorchFunctionMode):
    """Keeps the inputs of all ReLUs in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[torch.Tensor] = []

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if func in RELU:
            self.inputs.append(args[0].detach().clone())
        return func(*args, **(kwargs or {}))


class _Other(TorchFunctionMode):
    """Takes each input of a ReLU that is next to zero to be on the other side."""

    def __init__(self, single: list[torch.Tensor]) -> None:
        super().__init__()
        self.single, self.taken = iter(single), 0

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        if func not in RELU:
            return func(*args, **(kwargs or {}))
        value = args[0]
        rounding = (value.detach() - next(self.single)).square().mean().sqrt()
        near = value.detach().abs() <= NEAR * rounding
        self.taken += int(near.sum())
        return value * ((value.detach() > 0) ^ near)


def other_side(model: nn.Module, batch: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The gradients of a model in f64 where each input of ReLU that f32 has on either side is on the other."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad(), _Seen() as seen:
        model.float()(**floats(batch, torch.float32))
    model.double().load_state_dict(state)
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    with _Other(seen.inputs):
        loss = first(model(**floats(batch, torch.float64)))
    return dict(zip(trained, torch.autograd.grad(loss, list(trained.values())), strict=True))
