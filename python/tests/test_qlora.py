"""NF4 as ATen operations against bitsandbytes, and the packing of instructions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

pytest.importorskip("bitsandbytes")
tokenizers = pytest.importorskip("tokenizers")

from warpforge.errors import TraceError  # noqa: E402 (the libraries above may be missing)
from warpforge.record import instruct, nf4  # noqa: E402


def test_packed_layers_give_the_bits_of_bitsandbytes() -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict({"q_proj": nn.Linear(64, 96, bias=False), "head": nn.Linear(96, 8)})
    replaced = nf4.quantize(model, ("q_proj",))
    assert list(replaced) == ["q_proj"]
    x = torch.randn(3, 64, requires_grad=True)
    expected = model["q_proj"](x)
    (gradient,) = torch.autograd.grad(expected.square().sum(), x)
    found = nf4.exportable(model)["q_proj"](x)
    (other,) = torch.autograd.grad(found.square().sum(), x)
    assert torch.equal(found, expected)
    assert torch.equal(other, gradient)


def plan(tmp_path: Path, lines: list[str], **changes: object) -> tuple[dict, Path]:
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2, "?": 3, "yes": 4}, unk_token="?")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    data = {
        "train": str(tmp_path / "train.jsonl"),
        "eval": str(tmp_path / "train.jsonl"),
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "max_length": 40,
        "skip_long": False,
    }
    return {"data": data | changes}, tmp_path / "tokenizer.json"


GOOD = json.dumps({"instruction": "Well?", "input": "", "output": "yes yes"})


def test_examples_are_packed_with_labels_on_answers(tmp_path: Path) -> None:
    data = instruct.Instruct(*plan(tmp_path, [GOOD, GOOD]))
    row = {name: values[0].tolist() for name, values in data.train.items()}
    second = row["segment_ids"].index(2)
    assert row["labels"][:second].count(instruct.IGNORED) == second - 3
    assert row["labels"][second - 3 : second] == [4, 4, 2]
    assert row["position_ids"][second] == 0
    assert row["segment_ids"][-1] == 0


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"train.jsonl:2: no example"):
        instruct.Instruct(*plan(tmp_path, [GOOD, GOOD[:20]]))
    with pytest.raises(TraceError, match=r"train.jsonl:1: the example has \d+ tokens, and a sequence 5"):
        instruct.Instruct(*plan(tmp_path, [GOOD], max_length=5))
    with pytest.raises(TraceError, match="names no pad token"):
        instruct.Instruct(*plan(tmp_path, [GOOD], pad_token=None))
