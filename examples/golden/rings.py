"""The model and the data of the golden benchmark `rings.toml`."""

from __future__ import annotations

import torch
from torch import nn

RINGS = 3


class Rings(nn.Module):
    """Two hidden layers. `forward` returns the loss first, and what the metric needs after it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 32), nn.GELU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, RINGS))

    def forward(self, points: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """The loss and the logits of a batch."""
        logits = self.layers(points)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def make() -> nn.Module:
    """The model; the seed of the description is set already."""
    return Rings()


def data() -> dict[str, dict[str, torch.Tensor]]:
    """The inputs of `forward` by name, for training and for evaluation; the first dimension counts examples."""
    return {"train": _points(512), "eval": _points(200)}


def _points(count: int) -> dict[str, torch.Tensor]:
    labels = torch.randint(RINGS, (count,))
    angle = torch.rand(count) * 2 * torch.pi
    radius = labels + 0.5 + 0.2 * torch.randn(count)
    return {"points": torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), "labels": labels}
