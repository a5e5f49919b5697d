"""Small models for the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


class Net(nn.Module):
    """A convolution, batch norm and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.out = nn.Linear(2, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.norm(self.conv(image))).mean((2, 3)))


class Loss(nn.Module):
    """The loss of `Net`, and its scores."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def forward(self, image: torch.Tensor, label: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.net(image)
        return {"loss": nn.functional.cross_entropy(scores, label), "scores": scores}


class Attention(nn.Module):
    """The loss of a tiny language model: fused attention, and one matrix for embedding and scores."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 8)
        self.scores = nn.Linear(8, 7, bias=False)
        self.scores.weight = self.embed.weight
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids).unflatten(-1, (2, 4)).transpose(1, 2)
        y = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        return nn.functional.cross_entropy(self.scores(y.transpose(1, 2).flatten(2)).flatten(0, 1), ids.flatten())


class Codes(torch.Tensor):
    """A weight that is codes and a scale, as torchao's are."""

    @staticmethod
    def __new__(cls: type[Codes], codes: torch.Tensor, scale: torch.Tensor) -> Codes:
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=scale.dtype)

    def __init__(self, codes: torch.Tensor, scale: torch.Tensor) -> None:
        self.codes, self.scale = codes, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["codes", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner: dict[str, torch.Tensor], *_: object) -> Codes:
        return cls(inner["codes"], inner["scale"])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:  # noqa: ANN401
        if func is nn.functional.linear:
            return func(args[0], args[1].codes * args[1].scale)
        return super().__torch_function__(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple, kwargs: dict | None = None) -> Any:  # noqa: ANN401
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(func(args[0].codes), func(args[0].scale))
        restored = [arg.codes * arg.scale if isinstance(arg, cls) else arg for arg in args]
        return func(*restored, **(kwargs or {}))


class Restored(nn.Module):
    """A linear layer whose weight is codes and a scale."""

    def __init__(self) -> None:
        super().__init__()
        codes = torch.arange(-6, 6, dtype=torch.int8).reshape(3, 4)
        self.weight = nn.Parameter(Codes(codes, torch.tensor(0.5)), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight)


class Pair(nn.Module):
    """Two results."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x - 1


class Repeated(nn.Module):
    """A layer that is used twice, a module with two results, and modules that hand their arguments on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.pair = Pair()
        self.same = nn.Identity()
        self.given = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        more, less = self.pair(self.layer(self.layer(self.given(x))))
        return self.same(more * less) + 1


class Nested(nn.Module):
    """Nested arguments, a number, an absent argument, a constant, and outputs that are no tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = torch.tensor([1.0, 2.0, 3.0])

    def forward(
        self, x: torch.Tensor, more: dict[str, list[torch.Tensor]], factor: float = 1.0, absent: None = None
    ) -> tuple[torch.Tensor, None, list[torch.Tensor]]:
        parts = x.split(1, dim=-1)
        return x * factor + self.shift, absent, [more["pair"][0] - more["pair"][1], parts[2]]


@dataclass
class Summary:
    """What a model says about its result."""

    total: torch.Tensor
    absent: None = None


torch.export.register_dataclass(Summary, serialized_type_name="models.Summary")


class Named(nn.Module):
    """Outputs in a dict, in lists and in a dataclass."""

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"logits": x + 1, "past": [(x * 2, x * 3)], "summary": Summary(x.sum())}


class Counter(nn.Module):
    """Changes its buffer and its argument in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x.mul_(2) + self.count


CALLS: list[None] = []


class Fickle(nn.Module):
    """Another result each time, from a counter that export does not see."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        CALLS.append(None)
        return x * len(CALLS)


class Branch(nn.Module):
    """A branch that calls a module."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.layer(x).relu(), lambda x: x - 1, (x,))


def make_branch() -> tuple[nn.Module, tuple[Any, ...]]:
    return Branch(), (torch.rand(3, 4),)


def make_net() -> tuple[nn.Module, tuple[Any, ...]]:
    return Net(), (torch.randn(2, 1, 6, 6),)


def make_loss() -> dict[str, Any]:
    return {"model": Loss(), "kwargs": {"image": torch.randn(3, 1, 6, 6), "label": torch.tensor([0, 2, 1])}}


def make_named() -> tuple[nn.Module, tuple[Any, ...]]:
    return Named(), (torch.randn(3),)


def make_pair() -> nn.Module:
    return Pair()


def make_vector() -> torch.Tensor:
    return torch.randn(5)


def make_nothing() -> None:
    return None


NOT_A_FUNCTION = 3
