"""Data that are tensors already: the first dimension counts examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from warpforge.errors import TraceError
from warpforge.factory import call
from warpforge.record import sources


class Tensors:
    """Inputs by name from safetensors files, or from a function of the user's that returns them."""

    def __init__(self, plan: dict[str, Any], out: Path) -> None:
        data = plan["data"]
        self.metric = plan["metrics"]["accuracy"]
        if data.get("factory"):
            parts = call(data["factory"], plan["training"]["seed"])
            if not isinstance(parts, dict) or set(parts) != {"train", "eval"}:
                raise TraceError(f"{data['factory']} returned no dict with the keys train and eval")
            (out / "data").mkdir(parents=True, exist_ok=True)
            for part in ("train", "eval"):
                path = out / "data" / f"{part}.safetensors"
                save_file({name: value.contiguous() for name, value in parts[part].items()}, path)
            self.files = {part: out / "data" / f"{part}.safetensors" for part in ("train", "eval")}
        else:
            self.files = {part: sources.resolve(data[part], f"the {part} data") for part in ("train", "eval")}
        self.train = {name: value.numpy() for name, value in load_file(self.files["train"]).items()}
        self.eval = {name: value.numpy() for name, value in load_file(self.files["eval"]).items()}
        for part, values in (("train", self.train), ("eval", self.eval)):
            if len({len(value) for value in values.values()}) != 1:
                raise TraceError(f"{self.files[part]}: the tensors have different numbers of examples")

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a training step."""
        return {name: torch.from_numpy(values[indices]) for name, values in self.train.items()}

    def evaluation_batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a run that is judged."""
        return {name: torch.from_numpy(values[indices]) for name, values in self.eval.items()}

    def metrics(self, outputs: dict[str, np.ndarray]) -> tuple[dict[str, float], dict[str, str]]:
        """The share of examples whose largest output is at their label."""
        labels, scores = self.eval[self.metric["labels"]], outputs[self.metric["output"]]
        return {"accuracy": 100.0 * float((scores.argmax(-1) == labels).mean())}, {}
