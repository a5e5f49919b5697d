"""Pass 1 as a whole: train, look at chosen steps, evaluate, measure the noise floor, and write the golden folder."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import platform
import shutil
import time
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from warpforge import nodes
from warpforge.errors import TraceError
from warpforge.factory import Model
from warpforge.golden import UNFINISHED, GoldenFolder
from warpforge.record import dropout, kinks, models, observe, ranks, sources, training
from warpforge.record.dropout import Kept
from warpforge.record.noise import Noise, Widened, shifted_by
from warpforge.record.progress import Progress
from warpforge.record.training import Curve, Data, Shape
from warpforge.tracing import Captured, capture

ARCHIVE = "model.pt2"
EVALUATION = "eval.pt2"
# The graph for the part of a batch that one of several ranks has.
PART = "rank.pt2"


@dataclass
class Recording:
    """What a run is made of."""

    plan: dict[str, Any]
    folder: GoldenFolder
    device: str
    data: Data
    run: Shape
    captured: Captured
    # The masks of dropout, or what a detector chooses: what the exported graph takes beside the batch.
    masks: Any


def record(plan: dict[str, Any], out: Path, device: str) -> None:
    """Records the run of a plan."""
    if plan["optimizer"]["name"] == "adamw-8bit" and device != "cpu":
        raise TraceError(
            f"adamw-8bit on {device} rounds by another rule than on CPUs, which pass 2 does not have",
            "record with --device cpu",
        )
    times = [time.perf_counter()]
    folder = GoldenFolder(out)
    (folder.path / UNFINISHED).touch()
    data = _data(plan, folder)
    detects = plan["model"]["architecture"] == "faster-rcnn"
    model = _detector(plan, data, folder) if detects else models.build(plan, getattr(data, "vocabulary_size", 0))
    run = training.shape(plan, len(next(iter(data.train.values()))))
    if detects:
        from warpforge.record import selection  # noqa: PLC0415 (only detectors need torchvision)

        run.order = data.mirrored(run.order, plan["training"]["seed"])
        captured = selection.graphs(plan, model, data.batch(run.order[0]), folder)
        kept = selection.Selection(folder, model)
    else:
        captured, kept = _graphs(plan, model, data, run, folder)
    recording = Recording(plan, folder, device, data, run, captured, kept)
    initial = copy.deepcopy(model.state_dict())
    times.append(time.perf_counter())

    model.to(device)
    seen: dict[int, observe.Seen] = {}
    curve = _train(recording, model, seen)
    times.append(time.perf_counter())
    trained = (pair for pair in model.named_parameters() if pair[1].requires_grad)
    weights = {name: value.detach().cpu().clone() for name, value in trained}
    folder.tensors("checkpoint", weights)
    size = plan["training"]["eval_batch_size"]
    if detects:
        metrics, found = data.judge(model, size, device)
        answers: dict[str, str] = {}
        _text(folder, "detections.json", found)
        _text(folder, "images.json", data.checksums)
    else:
        metrics, answers = data.metrics(training.evaluate(model, data, size, device))
    times.append(time.perf_counter())
    if plan["record"]["noise"]:
        model.load_state_dict(initial)
        _noise(recording, model, weights, seen, curve)
    _write(recording, curve, metrics, answers)
    _manifest(recording, curve, times)


def _train(recording: Recording, model: nn.Module, seen: dict[int, observe.Seen]) -> Curve:
    """The golden run itself; where a noise floor is wanted, `seen` keeps what chosen steps have."""
    plan, folder, run = recording.plan, recording.folder, recording.run

    def keep(step: int, values: observe.Seen) -> None:
        observe.write(folder, step, values)
        if plan["record"]["noise"]:
            seen[step] = values

    several = plan["training"].get("ranks", 1) > 1
    accumulate = plan["training"]["accumulate"]
    progress = Progress("PyTorch", run.steps, folder.path / UNFINISHED)
    torch.manual_seed(plan["training"]["seed"])
    vocabulary_size = getattr(recording.data, "vocabulary_size", 0)
    drawn = folder.path if recording.masks.draws and several else None
    group = ranks.group(plan, model, recording.data, run, recording.device, vocabulary_size, drawn)
    with group as (trained, inner, data):
        watch = observe.Observer(plan, inner, recording.captured.program, recording.masks, keep)

        def begin(step: int, batch: dict[str, torch.Tensor]) -> Callable[[], None] | None:
            if not observe.chosen(plan, step, run.steps):
                return None
            if several:
                whole = recording.data.batch(run.order[step * accumulate])
                batch = training.moved(whole, recording.device)
            return watch.begin(step, batch, apart=several)

        curve = training.train(
            trained,
            data,
            plan,
            run,
            recording.device,
            before_step=begin,
            after_step=progress.after_step,
            around=recording.masks.record,
            at_end=partial(_keep, recording, model),
        )
    progress.close()
    if isinstance(recording.masks, Kept):
        recording.masks.add_to_manifest()
    return curve


def _keep(recording: Recording, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Keeps what only some architectures have."""
    if recording.plan["model"]["architecture"] == "llama-causal-lm":
        from warpforge.record import llama  # noqa: PLC0415

        llama.write(model, optimizer, recording.folder)


def _manifest(recording: Recording, curve: Curve, times: list[float]) -> None:
    plan, folder, run, data = recording.plan, recording.folder, recording.run, recording.data
    median = float(np.median(curve.seconds))
    prepare, train, evaluate = (after - before for before, after in itertools.pairwise(times))
    folder.manifest(
        folder.path / ARCHIVE,
        {
            "model": plan["benchmark"],
            "seed": plan["training"]["seed"],
            "mode": "train",
            "nodes": _described(recording.captured),
            "benchmark": {
                "schema_version": 1,
                "name": plan["benchmark"],
                "preset": plan.get("preset"),
                "plan": plan,
                "licences": {part: plan[part]["licence"] for part in ("model", "data")},
                "steps": run.steps,
                "warmup": run.warmup,
                "files": {part: sources.fingerprint(path, folder.path) for part, path in _files(data).items()},
                "features": {part: _digest(_rows(data, part)) for part in ("train", "eval")},
                "masks": recording.masks.draws,
                "mask_axes": getattr(recording.masks, "axes", []),
                "selection": plan["model"]["architecture"] == "faster-rcnn",
                "milestones": run.milestones,
                "order": hashlib.sha256(json.dumps(run.order).encode()).hexdigest(),
                "observed": [step for step in range(run.steps) if observe.chosen(plan, step, run.steps)],
                "environment": _environment(recording.device),
                "timings": {
                    "prepare_s": prepare,
                    "train_s": train,
                    "evaluate_s": evaluate,
                    "step_median_s": median,
                    "examples_per_s": plan["training"]["batch_size"] / median,
                },
            },
        },
    )


def _data(plan: dict[str, Any], folder: GoldenFolder) -> Data:
    if plan["data"]["format"] == "tensors":
        from warpforge.record.tensors import Tensors  # noqa: PLC0415 (each task needs its own libraries)

        return Tensors(plan, folder.path)
    if plan["data"]["format"] == "coco":
        from warpforge.record.coco import Coco  # noqa: PLC0415

        return Coco(plan, folder.path)
    if plan["data"].get("copy"):
        # Data that were made for this run belong to its folder.
        for part in ("train", "eval", "vocabulary"):
            source = Path(plan["data"][part])
            (folder.path / "data").mkdir(exist_ok=True)
            plan["data"][part] = str(shutil.copy(source, folder.path / "data" / source.name))
    if plan["data"]["format"] == "instruct":
        from warpforge.record import llama  # noqa: PLC0415
        from warpforge.record.instruct import Instruct  # noqa: PLC0415

        return Instruct(plan, llama.tokenizer(plan, models.folder(plan), folder))
    from warpforge.record.squad import Squad  # noqa: PLC0415

    return Squad(plan, models.folder(plan))


def _detector(plan: dict[str, Any], data: Any, folder: GoldenFolder) -> nn.Module:  # noqa: ANN401 (Coco, if there is torchvision)
    """The detector, and a file with what the second pass needs to know of it."""
    from warpforge.record import rcnn  # noqa: PLC0415

    model = rcnn.build(plan, data)
    places = {part: sources.place(path, folder.path) for part, path in data.folders.items()}
    _text(folder, "detection.json", rcnn.settings(model) | {"images": places})
    return model


def _graphs(
    plan: dict[str, Any], model: nn.Module, data: Data, run: Shape, folder: GoldenFolder
) -> tuple[Captured, Kept]:
    """Exports the training graph and the evaluation graph of a copy of the model; and what keeps its masks."""
    name = plan["benchmark"]
    level = plan["record"]["activations"] != "none"
    parts = plan["training"].get("ranks", 1)
    batch, share = data.batch(run.order[0]), data.batch(ranks.part(run.order[0], 0, parts))
    masks = dropout.drawn(model, batch)
    own = dropout.drawn(model, share) if parts > 1 else masks
    axes = dropout.batch_axes(masks, own, parts) if parts > 1 else [0] * len(masks)
    module = models.exportable(plan, model)
    captured = _step(module, batch, masks, name, activations=level)
    captured.save(folder.path / ARCHIVE)
    if parts > 1:
        _step(module, share, own, name, activations=False).save(folder.path / PART)
        folder.add(PART)
    size = plan["training"]["eval_batch_size"]
    count = len(next(iter(data.eval.values())))
    example = data.evaluation_batch([at % count for at in range(size)])
    capture(Model(module, (), example), name, train=False).save(folder.path / EVALUATION)
    folder.add(EVALUATION)
    return captured, Kept(folder, axes, draws=bool(masks), ranks=parts)


def _step(
    module: nn.Module, batch: dict[str, torch.Tensor], masks: list[torch.Tensor], name: str, *, activations: bool
) -> Captured:
    """The training graph of a batch, which takes the masks that dropout draws as inputs."""
    with dropout.as_inputs(module) if masks else nullcontext():
        inputs: dict[str, Any] = batch | ({"masks": masks} if masks else {})
        return capture(Model(module, (), inputs), name, train=True, activations=activations)


def _noise(
    recording: Recording,
    model: nn.Module,
    weights: dict[str, torch.Tensor],
    seen: dict[int, observe.Seen],
    golden: Curve,
) -> None:
    """Trains again in f64, and compares."""
    plan, run, captured = recording.plan, recording.run, recording.captured
    detects = plan["model"]["architecture"] == "faster-rcnn"
    if detects:
        from warpforge.record import selection  # noqa: PLC0415

        # What torchvision chooses is f32 in places, and would be another choice.
        model = selection.Replaying(model, recording.masks)
    model.double()
    noise = Noise(deep=detects)

    held: dict[int, dict[str, torch.Tensor]] = {}

    def before(step: int, batch: dict[str, torch.Tensor]) -> Any:  # noqa: ANN401 (a function, or none)
        if step not in seen:
            return None
        other: dict[str, torch.Tensor] = {}
        if noise.deep:
            with recording.masks.replay(step * plan["training"]["accumulate"]):
                other = kinks.other_side(model, batch)

        def end() -> None:
            held[step] = {name: value.detach().float().cpu() for name, value in model.named_parameters()}
            named = model.named_parameters()
            wide = {name: value.grad.cpu() for name, value in named if value.grad is not None}
            label = observe.step_name(step)
            noise.gradients(seen[step]["gradients"], wide, label)
            noise.compare("gradients", {name: value.cpu() for name, value in other.items()}, wide, label)

        return end

    progress = Progress("PyTorch in f64", run.steps, None)
    torch.manual_seed(plan["training"]["seed"])
    wide = Widened(recording.data)
    curve = training.train(
        model,
        wide,
        plan,
        run,
        recording.device,
        before_step=before,
        after_step=progress.after_step,
        around=recording.masks.replay,
    )
    noise.compare("weights", weights, {name: value.detach().cpu() for name, value in model.named_parameters()})
    noise.losses({"loss": golden.loss} | golden.parts, {"loss": curve.loss} | curve.parts)
    rounding = dict.fromkeys(noise.rounding_only(), 0.0)
    for step, values in sorted(seen.items()):
        if "weights" in values:
            noise.compare("weights", values["weights"], held[step], observe.step_name(step))
        if "activations" in values and rounding:
            for name, reached in rounding.items():
                apart = (values["weights"][name] - held[step][name]).abs().max().item()
                rounding[name] = max(reached, apart)
            other = values["weights"] | {n: shifted_by(values["weights"][n], apart) for n, apart in rounding.items()}
            _, shifted = nodes.record(captured.program, other, list(values["inputs"].values()))
            label = observe.step_name(step)
            noise.activations(label, values["activations"], shifted)
            of_modules = {
                f"modules/{name}": place["node"] for name, place in captured.places.items() if "node" in place
            }
            noise.activations(
                label,
                {name: values["activations"][node] for name, node in of_modules.items()},
                {name: shifted[node] for name, node in of_modules.items()},
            )
    _text(recording.folder, "noise.json", noise.report())


def _write(recording: Recording, curve: Curve, metrics: dict[str, float], answers: dict[str, str]) -> None:
    plan, folder, data = recording.plan, recording.folder, recording.data
    losses = {"loss": curve.loss, "lr": curve.lr} | curve.parts
    if curve.grad_norm:
        losses["grad_norm"] = curve.grad_norm
    folder.numbers("losses", losses)
    folder.numbers("metrics", metrics)
    _text(folder, "order.json", recording.run.order)
    _text(folder, "features.json", {part: _checksums(_rows(data, part)) for part in ("train", "eval")})
    if answers:
        _text(folder, "predictions.json", answers)
    if plan.get("tolerances"):
        (folder.path / "tolerances.toml").write_text(plan["tolerances"], encoding="utf-8")
        folder.add("tolerances.toml")
    folder.add(UNFINISHED)
    for path in sorted(path for path in (folder.path / "data").rglob("*") if path.is_file()):
        folder.add(path.relative_to(folder.path).as_posix())


def _text(folder: GoldenFolder, name: str, value: object) -> None:
    """Writes what is there for readers, and no part of a comparison."""
    (folder.path / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
    folder.add(name)


def _described(captured: Captured) -> list[dict[str, Any]]:
    """The nodes of the graph, with the values of modules among their tensors."""
    described = nodes.describe(captured.program)
    by_name = {tensor: node for node in described for tensor in node["tensors"]}
    for name, place in captured.places.items():
        if place.get("node") in by_name:
            by_name[place["node"]]["tensors"].append(f"modules/{name}")
    return described


def _files(data: Data) -> dict[str, Path]:
    files = dict(data.files)
    if hasattr(data, "vocabulary"):
        files["vocabulary"] = data.vocabulary
    return files


def _rows(data: Data, part: str) -> list[bytes]:
    """The bytes of each example, its inputs in the order of their names; some data have others."""
    if hasattr(data, "rows"):
        return data.rows(part)
    values = getattr(data, part)
    columns = [np.ascontiguousarray(values[name]) for name in sorted(values)]
    return [b"".join(column[at].tobytes() for column in columns) for at in range(len(columns[0]))]


def _digest(rows: list[bytes]) -> dict[str, Any]:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row)
    return {"count": len(rows), "sha256": digest.hexdigest()}


def _checksums(rows: list[bytes]) -> list[int]:
    """A CRC-32 of each example, so that the first that differs can be named."""
    return [zlib.crc32(row) for row in rows]


def _environment(device: str) -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor() or "cpu",
        "torch_device": device,
        "threads": torch.get_num_threads(),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }
