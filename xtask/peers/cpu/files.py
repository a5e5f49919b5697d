"""What a workload's folder holds: `export.py` writes it, the engines read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import numpy as safetensors


def archive(folder: Path, name: str) -> Path:
    """PyTorch's exported program."""
    return folder / name / "model.pt2"


def onnx(folder: Path, name: str) -> Path:
    """The same for ONNX Runtime and OpenVINO."""
    return folder / name / "model.onnx"


def facts(folder: Path, name: str) -> Path:
    """What is known of the workload; written last."""
    return folder / name / "facts.json"


def inputs(folder: Path, name: str) -> Path:
    """The inputs by position: arg0, arg1, …."""
    return folder / name / "inputs.safetensors"


def outputs(folder: Path, name: str) -> Path:
    """PyTorch's outputs by position, as f32: out0, out1, …."""
    return folder / name / "outputs.safetensors"


def read(path: Path) -> list[np.ndarray]:
    """The tensors of a file in order of their positions."""
    tensors = safetensors.load_file(path)
    return [tensors[name] for name in sorted(tensors, key=lambda name: int(name[3:]))]


def least_scale(folder: Path, name: str) -> float:
    """The scale by which differences of smaller outputs are measured."""
    return json.loads(facts(folder, name).read_text())["least_scale"]


def distance(found: list[Any], expected: list[np.ndarray], least: float) -> float:
    """The largest difference as a part of the largest magnitude, or of the least scale; the worst of the outputs."""
    worst = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = np.asarray(ours, np.float64), theirs.astype(np.float64)  # noqa: PLW2901
        if ours.shape != theirs.shape:
            raise ValueError(f"an output is of shape {ours.shape}, not {theirs.shape}")
        # A head that begins with zeros gives nothing else: there any difference counts as it is.
        scale = max(np.abs(theirs).max(), least) or 1.0
        worst = np.maximum(worst, np.abs(ours - theirs).max() / scale)
    if not np.isfinite(worst):
        raise ValueError("an output is not a number where PyTorch's is")
    return float(worst)


def sqnr(found: list[Any], expected: list[np.ndarray]) -> float | None:
    """The ratio of the signal to the error in dB, the worst of the outputs; none where there is no error or signal."""
    ratios = []
    for ours, theirs in zip(found, expected, strict=True):
        exact = theirs.astype(np.float64)
        signal, noise = (np.square(exact)).sum(), np.square(np.asarray(ours, np.float64) - exact).sum()
        if not signal > 0 or not noise > 0:
            return None
        ratios.append(float(10 * np.log10(signal / noise)))
    return min(ratios)
