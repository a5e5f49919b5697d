"""Makes the archives of this folder with PyTorch: run `make.py` in it, with the package of `python/` installed."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import nn

from warpforge import trace

write = torch.export.save


class Linear(nn.Module):
    """`relu(x Wᵀ + b)` for any number of rows, with weights that one can compute with by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
            self.layer.bias.copy_(torch.tensor([0.5, -0.5]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the layer."""
        return torch.relu(self.layer(x))


class Step(nn.Module):
    """A loss with everything that a golden folder can have."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.LayerNorm(6)
        self.second = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """The cross entropy of two layers."""
        hidden = self.first(x)
        hidden = nn.functional.gelu(self.norm(hidden))
        scores = self.second(hidden)
        return nn.functional.cross_entropy(scores, label)


class Refused(nn.Module):
    """Two operations that no StableHLO has, one of them twice, among others."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Eigenvalues and an exponential of matrices."""
        square = x @ x.T
        values = torch.linalg.eigvalsh(square) + torch.linalg.eigvalsh(square + 1)
        return values, torch.linalg.matrix_exp(square)


class Encoder(nn.Module):
    """A block of a transformer, used twice: a module that returns a tuple, and ones that hand their argument on."""

    def __init__(self) -> None:
        super().__init__()
        self.given = nn.Identity()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.dropout = nn.Dropout(0.1)
        self.feed = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two times the same block."""
        x = self.given(x)
        for _ in range(2):
            mixed, _weights = self.attention(x, x, x)
            x = self.norm(x + self.dropout(mixed))
            x = self.norm(x + self.feed(x))
        return x


def save(program: torch.export.ExportedProgram, path: Path, **extra: dict[str, str]) -> None:
    """Saves a program with source lines that do not say where whoever runs this keeps Python's packages."""
    stacks = {node: node.meta.get("stack_trace") for node in program.graph.nodes}
    for node, stack in stacks.items():
        node.meta["stack_trace"] = re.sub(r'File ".*/site-packages/', 'File "site-packages/', stack or "")
    write(program, path, **extra)
    for node, stack in stacks.items():
        node.meta["stack_trace"] = stack


def main() -> None:
    """Writes them all."""
    for kind in (Linear, Step, Encoder, Refused):
        kind.forward.__code__ = kind.forward.__code__.replace(co_filename="make.py")
    torch.export.save = save
    torch.manual_seed(0)
    trace(Step(), (torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])), output="step.pt2", train=True, activations=True)
    for form, decompose in (("encoder", False), ("encoder_decomposed", True)):
        torch.manual_seed(0)
        trace(Encoder(), (torch.randn(1, 3, 8),), output=f"{form}.pt2", decompose=decompose, activations=True)
    rows = {"x": {0: torch.export.Dim("rows", min=1, max=64)}}
    save(torch.export.export(Linear(), (torch.zeros(2, 3),), dynamic_shapes=rows), Path("linear.pt2"))
    save(torch.export.export(Refused(), (torch.zeros(3, 3),)), Path("refused.pt2"))


if __name__ == "__main__":
    main()
