"""Operators that call graphs: `torch.cond`, loops and scans, exported as a user exports them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from graphs import Case, serialized
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree as pytree

# Where loops end.
STEPS = 5
LIMIT = 50


class Chosen(nn.Module):
    """One of two graphs, by a truth value that is computed."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Two choices, one of them taken by what the other gave."""
        first = torch.cond(x.sum() > 0, lambda x: (x.sin(), x.sum()), lambda x: (x - 1.0, x.mean()), (x,))
        return first[0] * 2, torch.cond(first[1] > LIMIT, lambda x: x.cos(), lambda x: x.exp(), (x,))


class Counted(nn.Module):
    """A loop that carries a count and a tensor, and uses another that does not change."""

    def forward(self, count: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The count and the tensor after the loop."""
        return while_loop(lambda i, x: (i < STEPS) & (x.sum() < LIMIT), lambda i, x: (i + 1, x @ w + 1), (count, x))


class Recurrent(nn.Module):
    """A recurrent layer, forwards along the first dimension or backwards along the second."""

    def __init__(self, dim: int, *, reverse: bool) -> None:
        super().__init__()
        self.along = {"dim": dim, "reverse": reverse}

    def forward(self, h: torch.Tensor, w: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The last state, all of them, and the largest input of each step."""

        def step(h: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
            after = torch.tanh(h @ w + x)
            return after, (after * 2, x.argmax(-1))

        last, (all_of_them, largest) = scan(step, h, x, **self.along)
        return last, all_of_them, largest


class WithoutGradients(nn.Module):
    """A part that is run without gradients."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A product with a part that has no gradients."""
        with torch.no_grad():
            y = x.sin() + 1
        return x * y


class WithoutAutocast(nn.Module):
    """A part that is run without automatic conversions."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A product with a part that is not converted."""
        with torch.autocast("cpu", enabled=False):
            y = x.sin() + 1
        return x * y


def called() -> Iterator[Case]:
    """Operators that call graphs, as `torch.export` writes them."""
    for sign in (-1, 1):
        yield exported("higher_order.cond", Chosen(), sign * torch.rand(2, 3))
    for count in (0, 3, 9):
        yield exported("higher_order.while_loop", Counted(), torch.tensor(count), torch.rand(2, 3), torch.rand(3, 3))
    for along in ((0, False), (0, True), (1, True)):
        x = torch.rand((4, 2, 3) if along[0] == 0 else (2, 4, 3))
        layer = Recurrent(along[0], reverse=along[1])
        yield exported("higher_order.scan", layer, torch.rand(2, 3), torch.rand(3, 3), x)
    yield exported("higher_order.wrap_with_set_grad_enabled", WithoutGradients(), torch.rand(2, 3))
    yield exported("higher_order.wrap_with_autocast", WithoutAutocast(), torch.rand(2, 3))


def exported(op: str, module: nn.Module, *args: torch.Tensor) -> Case:
    """The case of a module."""
    program = torch.export.export(module, args)
    names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    outputs = {f"out{at}": value for at, value in enumerate(pytree.tree_leaves(module(*args)))}
    return Case(op, serialized(program.graph_module), dict(zip(names, args, strict=True)), outputs)
