"""Makes `linear.pt2` with PyTorch: `make.py FOLDER`. A layer with weights that one can compute with by hand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch


class Linear(torch.nn.Module):
    """`relu(x Wᵀ + b)` for any number of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
            self.layer.bias.copy_(torch.tensor([0.5, -0.5]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Applies the layer."""
        return torch.relu(self.layer(x))


def main() -> None:
    """Exports with a symbolic number of rows."""
    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(Linear(), (torch.zeros(2, 3),), dynamic_shapes={"x": {0: rows}})
    for node in program.graph.nodes:
        # Source lines without the folders of whoever ran this.
        trace = node.meta.get("stack_trace") or ""
        node.meta["stack_trace"] = re.sub(r'File ".*/', 'File "', trace)
    torch.export.save(program, Path(sys.argv[1]) / "linear.pt2")


if __name__ == "__main__":
    main()
