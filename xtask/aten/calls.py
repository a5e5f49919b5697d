"""Calls of operators: what a case is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch.utils import _pytree as pytree

HANDFUL = 6


@dataclass
class Call:
    """An operator with the arguments of one call."""

    target: Callable
    args: tuple
    kwargs: dict = field(default_factory=dict)
    # What PyTorch computes the result with where the operator itself has no kernel for the CPU.
    instead: Callable | None = None
    # How many of the results the graph uses, where it is not all of them.
    used: int | None = None

    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments, each once, in order."""
        found: dict[int, torch.Tensor] = {}
        for leaf in pytree.tree_leaves((self.args, self.kwargs)):
            if isinstance(leaf, torch.Tensor):
                found.setdefault(id(leaf), leaf)
        return list(found.values())

    def copied(self) -> Call:
        """The call with tensors of its own: no gradients, and nothing that a write could reach."""
        copies: dict[int, torch.Tensor] = {}

        def copy(leaf: object) -> object:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            return copies.setdefault(id(leaf), leaf.detach().clone())

        args, kwargs = pytree.tree_map(copy, (self.args, self.kwargs))
        return Call(self.target, args, kwargs, self.instead, self.used)

    def run(self) -> object:
        """What PyTorch gives for it."""
        with torch.no_grad():
            return (self.instead or self.target)(*self.args, **self.kwargs)

    def size(self) -> int:
        """The bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors())

    def worth(self) -> tuple[bool, int]:
        """Smaller is better, but a handful of elements says more than one or none."""
        counts = [tensor.numel() for tensor in self.tensors()]
        return (0 in counts or max(counts, default=HANDFUL) < HANDFUL, self.size())

    def kind(self) -> str:
        """What tells cases of one operator apart: the element types, ranks and which arguments are given."""

        def of(value: object) -> str:
            match value:
                case torch.Tensor():
                    return f"{value.dtype}{min(value.dim(), 2)}"
                case bool() | str() | None | torch.dtype():
                    return str(value)
                case list() | tuple():
                    return "[" + ",".join(sorted({of(item) for item in value})) + "]"
                case _:
                    return type(value).__name__

        named = [f"{name}={of(value)}" for name, value in sorted(self.kwargs.items())]
        return " ".join([*(of(value) for value in self.args), *named])


def name_of(target: Callable) -> str:
    """The name of an operator as the table of lowerings has it."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return f"{target.__module__}.{target.__name__}"


def overload(name: str) -> Callable | None:
    """The operator of a name such as `aten.add.Tensor`; none where PyTorch has no such operator."""
    namespace, _, rest = name.partition(".")
    base, _, over = rest.partition(".")
    if not over or not hasattr(torch.ops, namespace):
        return None
    packet = getattr(getattr(torch.ops, namespace), base, None)
    return getattr(packet, over, None)


def fits_schema(call: Call) -> bool:
    """Whether each argument is of the kind that the schema has: PyTorch would also take a tensor for a number."""
    schema = call.target._schema
    given = dict(zip((argument.name for argument in schema.arguments), call.args, strict=False)) | call.kwargs
    for argument in schema.arguments:
        value, kind = given.get(argument.name), str(argument.type)
        if isinstance(value, torch.Tensor) and "Tensor" not in kind:
            return False
        if isinstance(value, (int, float, complex)) and "Tensor" in kind:
            return False
    return len(call.args) <= len(schema.arguments)


def leaves(value: object) -> Iterator[torch.Tensor]:
    """The tensors of a result."""
    yield from (leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor))
