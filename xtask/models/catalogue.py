"""The models that are exported, imported and compared: each a name and a function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn

from warpforge import Model


@dataclass(frozen=True)
class Entry:
    """A model by name; `train` if its graph is that of the loss and the gradients.

    It is exported as it is and, if PyTorch can, decomposed.
    """

    name: str
    make: Callable[[], Model]
    train: bool = False
    dynamic: list[str] = field(default_factory=list)
    decomposed: bool = True

    def forms(self) -> list[str]:
        """The forms that it is exported in."""
        plain = "train" if self.train else "as_exported"
        return [plain, "train_decomposed" if self.train else "decomposed"] if self.decomposed else [plain]


ENTRIES: dict[str, Entry] = {}


def add(
    name: str,
    make: Callable[[], Model],
    *,
    train: bool = False,
    dynamic: tuple[str, ...] = (),
    decomposed: bool = True,
) -> None:
    """Adds a model to the catalogue."""
    if name in ENTRIES:
        raise ValueError(f"two models are named {name}")
    ENTRIES[name] = Entry(name, make, train, list(dynamic), decomposed)


def entry(name: str, **options: object) -> Callable[[Callable[[], Model]], Callable[[], Model]]:
    """Adds the function below it to the catalogue."""

    def decorate(make: Callable[[], Model]) -> Callable[[], Model]:
        add(name, make, **options)
        return make

    return decorate


def unsettle(module: nn.Module) -> nn.Module:
    """Moves parameters and statistics off the zeros and ones they start with, which would hide many mistakes."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.numel() > 1 and (parameter == parameter.flatten()[0]).all():
                parameter.add_(0.1 * torch.randn_like(parameter))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(0.1 * torch.randn_like(buffer))
            elif name.endswith("running_var"):
                buffer.mul_(0.5 + torch.rand_like(buffer))
    return module
