"""Symbolic dimensions: their textual form and their place in the graph."""

from __future__ import annotations

from pathlib import Path

import models
import pytest
import torch
from torch import nn

from warpforge import DynamicDim, TraceError, trace


@pytest.mark.parametrize(
    ("text", "dim"),
    [
        ("batch", DynamicDim("batch")),
        ("seq=1", DynamicDim("seq", 1)),
        ("seq=1:2:512", DynamicDim("seq", 1, min=2, max=512)),
        ("seq=1::512", DynamicDim("seq", 1, max=512)),
        ("seq=ids.1:4", DynamicDim("seq", 1, "ids", min=4)),
        ("n=past.0.1.2", DynamicDim("n", 2, "past.0.1")),
    ],
)
def test_textual_form(text: str, dim: DynamicDim) -> None:
    assert DynamicDim.parse(text) == dim


@pytest.mark.parametrize("text", ["", "1", "batch=", "batch=x", "batch=1:a", "batch=1:2:3:4", "a b"])
def test_what_is_no_dimension(text: str) -> None:
    with pytest.raises(TraceError, match="does not describe a dynamic dimension"):
        DynamicDim.parse(text)


def test_a_range_has_members() -> None:
    with pytest.raises(TraceError, match="empty range 9 to 3"):
        DynamicDim.parse("batch=0:9:3")


def test_batch_is_symbolic(tmp_path: Path) -> None:
    net, args = models.make_net()
    traced = trace(net, args, output=tmp_path / "net.pt2", dynamic=["batch=0:2:64"])
    assert [(r.lower, r.upper) for r in traced.program.range_constraints.values()] == [(2, 64)]
    assert traced.manifest["dynamic"] == ["batch=0:2:64"]
    assert torch.export.load(traced.archive).module()(torch.randn(5, 1, 6, 6)).shape == (5, 3)


class Pair(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a * 2).sum() + b


def test_one_argument_of_two(tmp_path: Path) -> None:
    args = (torch.ones(3, 4), torch.ones(3, 4))
    traced = trace(Pair(), args, output=tmp_path / "pair.pt2", dynamic=["n=b.1"])
    assert traced.program.module()(torch.ones(3, 4), torch.ones(3, 9)).shape == (3, 9)
    with pytest.raises(Exception, match=r"Guard failed|Expected input"):
        traced.program.module()(torch.ones(3, 5), torch.ones(3, 9))


def test_an_example_of_one_cannot_be_dynamic(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="dimension 0 of the example for `a` is 1"):
        trace(Pair(), (torch.ones(1, 4), torch.ones(1, 4)), output=tmp_path / "pair.pt2", dynamic=["batch"])


def test_a_dimension_that_no_argument_has(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no tensor argument has .*\n.*a\[3, 4\], b\[3, 4\]"):
        trace(Pair(), (torch.ones(3, 4), torch.ones(3, 4)), output=tmp_path / "pair.pt2", dynamic=["n=c.0"])
