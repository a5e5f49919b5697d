"""What a model of the zoo is: how it is made, its inputs, its batch sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SEED = 0

Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Entry:
    """What makes a model, its inputs for a batch size, and how large a throughput batch is."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], Inputs]
    batch: int


ENTRIES: dict[str, Entry] = {}


def add(name: str, make: Callable[[], nn.Module], inputs: Callable[[int], Inputs], batch: int) -> None:
    """Adds a model to the catalogue."""
    if name in ENTRIES:
        raise ValueError(f"two models are named {name}")
    ENTRIES[name] = Entry(make, inputs, batch)


class Tensors(nn.Module):
    """The tensors of interest among a model's outputs, by name or, for dicts, all of them."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], arguments: tuple[str, ...], **fixed: object) -> None:
        super().__init__()
        self.model, self.names, self.arguments, self.fixed = model, names, arguments, fixed

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Runs the model and picks."""
        named = dict(zip(self.arguments, inputs, strict=True))
        out = self.model(**named, **self.fixed) if named else self.model(*inputs)
        return tuple(out[name] for name in self.names)


class Dict(nn.Module):
    """The values of a model's dict."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Runs the model."""
        return tuple(self.model(image).values())


def has(workload: str) -> bool:
    """Whether a workload is a model of the catalogue: NAME_bBATCH."""
    name, _, batch = workload.rpartition("_b")
    return name in ENTRIES and batch.isdigit()


def make(workload: str) -> tuple[nn.Module, Inputs]:
    """The model, ready for inference, and its inputs, the same ones every time."""
    name, _, batch = workload.rpartition("_b")
    torch.manual_seed(SEED)
    module = _unsettled(ENTRIES[name].make()).eval()
    return module, ENTRIES[name].inputs(int(batch))


def _unsettled(module: nn.Module) -> nn.Module:
    """Moves parameters off the constants that they start with: a head of zeros has no error."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1 and (parameter == parameter.flatten()[0]).all():
                parameter.add_(0.02 * torch.randn_like(parameter))
    return module


def transformer(name: str, config: dict[str, Any]) -> nn.Module:
    """The model class of this name, made from its configuration class with these settings."""
    import transformers  # noqa: PLC0415 (seconds to import, not always needed)

    kind = getattr(transformers, name)
    return kind(kind.config_class(**config))
