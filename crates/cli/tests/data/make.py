"""Makes the archives of this folder with PyTorch: run `make.py` in it, with the package of `python/` installed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from transformers import LlamaConfig, LlamaForCausalLM

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


@dataclass
class Walked:
    """What a model with control flow gives."""

    branch: torch.Tensor
    loop: dict[str, torch.Tensor]
    sums: torch.Tensor


class Control(nn.Module):
    """A branch that is taken and one that is not, a loop and a scan, with a module inside."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Walked:
        """One after the other."""
        total = x.sum()
        one = torch.cond(total > 0, lambda x: self.layer(x).relu(), lambda x: x - 1, (x,))
        other = torch.cond(total <= 0, lambda x: self.layer(x).relu(), lambda x: x - 1, (x,))
        count, value = while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 1.5 + 0.25), (torch.tensor(0), one))
        _, sums = scan(lambda c, row: (c + row, c * row), torch.zeros_like(x[0]), value + other, dim=0)
        return Walked(one + other, {"count": count, "value": value}, sums)


class Decomposable(nn.Module):
    """An operation that has no lowering and that PyTorch takes apart into ones that have."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The error function by its other name."""
        return torch.special.erf(x)


def llama() -> None:
    """Writes `llama.pt2`; `warpt import --weights` and then `warpt opt`, which drops locations, make `llama.mlir`."""
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **heads, tie_word_embeddings=False)).eval()
    ids = torch.arange(8)[None]
    save(torch.export.export(model, (), {"input_ids": ids, "use_cache": False}), Path("llama.pt2"))


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
    for kind in (Linear, Step, Encoder, Refused, Control, Decomposable):
        kind.forward.__code__ = kind.forward.__code__.replace(co_filename="make.py")
    torch.export.save = save
    torch.manual_seed(0)
    trace(Step(), (torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])), output="step.pt2", train=True, activations=True)
    for form, decompose in (("encoder", False), ("encoder_decomposed", True)):
        torch.manual_seed(0)
        trace(Encoder(), (torch.randn(1, 3, 8),), output=f"{form}.pt2", decompose=decompose, activations=True)
    rows = {"x": {0: torch.export.Dim("rows", min=1, max=64)}}
    save(torch.export.export(Linear(), (torch.zeros(2, 3),), dynamic_shapes=rows), Path("linear.pt2"))
    torch.export.register_dataclass(Walked, serialized_type_name="Walked")
    torch.manual_seed(0)
    trace(Control(), (torch.randn(3, 4),), output="control.pt2", activations=True)
    whole = torch.export.export(Decomposable(), (torch.zeros(5),))
    save(whole, Path("decomposable.pt2"))
    save(whole.run_decompositions(), Path("decomposed.pt2"))
    save(torch.export.export(Refused(), (torch.zeros(3, 3),)), Path("refused.pt2"))


if __name__ == "__main__":
    main()
