"""Pass 1 of golden benchmarks: the loop, the masks of dropout, the noise floor, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from warpforge.errors import TraceError
from warpforge.factory import load_model
from warpforge.record import dropout, kinks, sources, training
from warpforge.record.noise import Noise
from warpforge.record.run import record

EXAMPLE = Path(__file__).parents[2] / "examples" / "golden" / "rings.py"


def _plan(**training_settings: int) -> dict[str, Any]:
    return {
        "benchmark": "rings",
        "preset": None,
        "model": {"architecture": "factory", "factory": f"{EXAMPLE}:make", "licence": "MIT"},
        "data": {"format": "tensors", "factory": f"{EXAMPLE}:data", "licence": "MIT"},
        "training": {"epochs": 1, "steps": 6, "batch_size": 8, "eval_batch_size": 64, "accumulate": 1, "seed": 3}
        | training_settings,
        "optimizer": {
            "name": "adam",
            "lr": 1e-2,
            "betas": [0.9, 0.999],
            "eps": 1e-8,
            "weight_decay": 0.0,
            "no_decay": [],
        },
        "schedule": {"shape": "constant", "warmup": 2},
        "record": {"every": 4, "activations": "nodes", "noise": True},
        "metrics": {"accuracy": {"output": "logits", "labels": "labels"}},
        "tolerances": None,
    }


def test_a_run_is_recorded_with_all_that_it_is_judged_by(tmp_path: Path) -> None:
    record(_plan(), tmp_path / "golden", "cpu")
    manifest = json.loads((tmp_path / "golden" / "manifest.json").read_text())
    block = manifest["benchmark"]
    assert (block["steps"], block["observed"], block["masks"]) == (6, [0, 4, 5], False)
    losses = json.loads((tmp_path / "golden" / "losses.json").read_text())
    assert len(losses["loss"]) == 6
    assert losses["lr"][:3] == [0.0, 5e-3, 1e-2]
    gradients = load_file(tmp_path / "golden" / "step_000004" / "gradients.safetensors")
    weights = load_file(tmp_path / "golden" / "checkpoint.safetensors")
    assert set(gradients) == set(weights)
    assert (tmp_path / "golden" / "step_000004" / "activations.safetensors").is_file()
    assert json.loads((tmp_path / "golden" / "metrics.json").read_text())["accuracy"] > 0
    # The same again is the same to the bit, and replaces the folder.
    record(_plan(), tmp_path / "golden", "cpu")
    again = load_file(tmp_path / "golden" / "checkpoint.safetensors")
    assert all(torch.equal(value, again[name]) for name, value in weights.items())


def test_accumulation_is_the_gradient_of_all_batches_together(tmp_path: Path) -> None:
    whole, parts = _plan(batch_size=16, steps=1), _plan(batch_size=8, steps=1, accumulate=2)
    for name, plan in (("whole", whole), ("parts", parts)):
        plan["schedule"]["warmup"] = 0
        plan["optimizer"]["name"] = "sgd"
        plan["optimizer"] |= {"momentum": 0.0, "dampening": 0.0, "nesterov": False}
        record(plan, tmp_path / name, "cpu")
    left, right = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "parts"))
    assert all(torch.allclose(value, right[name], atol=1e-6) for name, value in left.items())


def test_masks_that_were_drawn_give_the_same_again() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)).train()
    x = torch.randn(4, 8)
    with dropout.Recorder() as recorder:
        first = model(x)
    assert [mask.dtype for mask in recorder.masks] == [torch.bool]
    with dropout.replayed(recorder.masks):
        assert torch.equal(model(x), first)
    with dropout.replayed([]), pytest.raises(TraceError, match="more masks"):
        model(x)


DROPPING = """
import torch
from torch import nn


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.last = nn.Linear(2, 16), nn.Linear(16, 3)
        self.dropout = nn.Dropout(0.25)

    def forward(self, points, labels):
        hidden = torch.tanh(self.hidden(points))
        hidden = self.dropout(hidden.T).T if FLIP else self.dropout(hidden)
        logits = self.last(self.dropout(hidden))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def make():
    return Dropping()
"""


@pytest.mark.parametrize("flip", [False, True])
def test_ranks_keep_the_masks_of_their_parts(tmp_path: Path, *, flip: bool) -> None:
    # A module of Python is loaded once by its name.
    file = tmp_path / f"dropping_{flip}.py".lower()
    file.write_text(DROPPING.replace("FLIP", str(flip)))
    plan = _plan(ranks=2)
    plan["model"]["factory"] = f"{file}:make"
    record(plan, tmp_path / "golden", "cpu")
    manifest = json.loads((tmp_path / "golden" / "manifest.json").read_text())
    block = manifest["benchmark"]
    assert (block["masks"], block["mask_axes"]) == (True, [1 if flip else 0, 0])
    first, second = (f"masks/rank_{rank:06d}/run_000004.safetensors" for rank in range(2))
    assert {first, second} <= manifest["files"].keys()
    parts = [load_file(tmp_path / "golden" / name) for name in (first, second)]
    assert parts[0]["masks_1"].shape == (4, 16)
    assert not torch.equal(parts[0]["masks_1"], parts[1]["masks_1"])
    assert not (tmp_path / "golden" / "masks" / "run_000004.safetensors").exists()
    # What is looked at is of the whole batch, with the masks of the step.
    inputs, weights, modules = (
        load_file(tmp_path / "golden" / "step_000004" / f"{kind}.safetensors")
        for kind in ("inputs", "weights", "activations/modules")
    )
    masks = [torch.cat([part[f"masks_{at}"] for part in parts], axis) for at, axis in enumerate(block["mask_axes"])]
    assert all(torch.equal(inputs[f"masks_{at}"], mask) for at, mask in enumerate(masks))
    model = load_model(plan["model"]["factory"], 0).module.train()
    model.load_state_dict(weights)
    with dropout.replayed(masks):
        logits = model(inputs["points"], inputs["labels"])["logits"]
    assert torch.equal(modules["last"], logits)
    # The run in f64 has the same masks: its gradients differ by rounding.
    noise = json.loads((tmp_path / "golden" / "noise.json").read_text())
    assert noise["tensors"]["gradients"] == {}


def test_masks_without_a_dimension_of_the_batch_are_refused() -> None:
    def of(*shape: int) -> list[torch.Tensor]:
        return [torch.zeros(shape)]

    assert dropout.batch_axes(of(8, 4, 8), of(2, 4, 8), 4) == [0]
    for whole, part in ((of(4, 4), of(4, 4)), (of(8, 8), of(2, 2)), (of(8, 4), of(3, 4)), (of(8, 4), of(2))):
        with pytest.raises(TraceError, match=r"mask 0 of dropout is \[.*no dimension of it is the batch's"):
            dropout.batch_axes(whole, part, 4)
    with pytest.raises(TraceError, match="draws 1 masks for a batch and 0"):
        dropout.batch_axes(of(8, 4), [], 4)


def test_a_gradient_that_is_rounding_is_told_from_a_small_one() -> None:
    noise = Noise()
    exact = {"small": torch.tensor([1e-12, 2e-12], dtype=torch.float64), "zero": torch.tensor([1e-18, 0.0]).double()}
    single = {"small": exact["small"].float(), "zero": torch.tensor([1e-9, -1e-9])}
    noise.gradients(single, exact, "step_000000")
    assert list(noise.rounding_only()) == ["zero"]


def test_what_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="fewer than a batch"):
        record(_plan(batch_size=100_000), tmp_path / "a", "cpu")
    diverging = _plan()
    diverging["optimizer"]["lr"] = 1e38
    with pytest.raises(TraceError, match="the loss of step"):
        record(diverging, tmp_path / "b", "cpu")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").write_text("x")
    with pytest.raises(TraceError, match="in the way"):
        record(_plan(), tmp_path / "thesis", "cpu")
    with pytest.raises(TraceError, match="pip install no-such-package"):
        sources.resolve({"package": "no-such-package", "file": "x"}, "the data")
    with pytest.raises(TraceError, match=r"hf download nobody/nothing"):
        sources.resolve({"hub": "nobody/nothing"}, "the weights")


@pytest.mark.parametrize("shape", ["constant", "linear", "cosine", "step"])
def test_schedules_are_those_of_transformers_and_torch(shape: str) -> None:
    factor = training._factor(
        {"shape": shape, "warmup": 3, "every": 2, "gamma": 0.5}, training.Shape(order=[], steps=10, warmup=3)
    )
    values = [factor(step) for step in range(11)]
    assert values[:3] == [0.0, 1 / 3, 2 / 3]
    assert values[3] == 1.0
    expected = {"constant": 1.0, "linear": 0.0, "cosine": 0.0, "step": 0.5**3}[shape]
    assert values[10] == pytest.approx(expected)


def test_windows_that_lose_the_end_of_a_text_are_refused(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    squad = pytest.importorskip("warpforge.record.squad")
    words = [chr(ord("a") + at) for at in range(24)]
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", *words]))
    question = {"id": "1", "question": "a?", "answers": [{"answer_start": 4, "text": "c"}]}
    article = {"paragraphs": [{"context": " ".join(words), "qas": [question]}]}
    (tmp_path / "data.json").write_text(json.dumps({"data": [article]}))
    path = str(tmp_path / "data.json")
    data = {"lowercase": True, "vocabulary": str(tmp_path / "vocab.txt"), "max_length": 16, "stride": 4}
    plan = {"data": data | {"train": path, "eval": path}}
    whole = squad.Squad(plan, None)
    assert len(whole.train["input_ids"]) == 3

    class Losing(transformers.BertTokenizer):
        def __call__(self, *texts: Any, **options: Any) -> Any:  # noqa: ANN401 (as transformers has it)
            encoded = super().__call__(*texts, **options)
            if "stride" in options:
                last = encoded["offset_mapping"][-1]
                last[:] = [(start, min(end, 40)) for start, end in last]
            return encoded

    whole.tokenizer = Losing(str(tmp_path / "vocab.txt"))
    with pytest.raises(TraceError, match="ends at character 40 of 47"):
        whole._features("train")


class Rectified(nn.Module):
    """The last input of the ReLU is rounding, with a weight of 0.1."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0, 0.1]))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.relu(self.weight * x + torch.tensor([0.0, 0.0, -0.3], dtype=x.dtype)).sum()}


def test_the_other_side_of_a_relu_is_that_of_inputs_next_to_zero() -> None:
    model = Rectified().double()
    with torch.no_grad():
        model.weight[2] = 0.1
    parameter = model.weight
    batch = {"x": torch.tensor([1.0, 1.0, 3.0], dtype=torch.float64)}
    model(**batch)["loss"].backward()
    other = kinks.other_side(model, batch)
    assert model.weight is parameter
    assert model.weight.dtype == torch.float64
    assert torch.equal(other["weight"][:2], model.weight.grad[:2])
    assert {other["weight"][2].item(), model.weight.grad[2].item()} == {0.0, 3.0}


def test_noise_is_that_of_the_step_and_grows_along_a_curve() -> None:
    noise = Noise(deep=True)
    zero = {"w": torch.zeros(2)}
    for step, apart in (("step_000000", 1e-4), ("step_000010", 1e-1)):
        other = torch.tensor([1.0 + apart, 1.0], dtype=torch.float64)
        noise.gradients({"w": torch.ones(2)}, {"w": other}, step)
    noise.compare("weights", zero, zero)
    noise.losses({"loss": [1.0, 2.0, 3.0]}, {"loss": [1.0, 2.5, 3.0]})
    found = noise.report()["tensors"]
    # The first step is within a quarter of the tolerance.
    assert list(found["gradients"]) == ["step_000010/w"]
    assert found["weights"] == {}
    assert found["losses"]["loss"]["each"] == [0.0, 0.5, 0.5]
