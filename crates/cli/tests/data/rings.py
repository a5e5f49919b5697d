"""Makes `rings.golden`: the golden run of `examples/golden/rings.toml`, 20 steps. Run it in this folder.

`rings.rank.pt2` is the graph of a quarter of its batch, as the same run by four ranks has it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import torch
from make import write

from warpforge.record.run import record

EXAMPLE = Path(__file__).parents[4] / "examples" / "golden"
TEXTS = {"lowercase": True, "max_length": 384, "stride": 128, "n_best": 20, "max_answer_length": 30}
DEFAULTS = {
    "model": {"config": {}, "weights": None, "dropout": 0.0},
    "data": dict.fromkeys(("train", "eval", "vocabulary", "generated", "limit_train", "limit_eval")) | TEXTS,
    "training": {"epochs": 1},
    "optimizer": {"betas": [0.9, 0.999], "eps": 1e-8, "dampening": 0.0},
    "schedule": {"every": 1, "gamma": 0.1},
}


def save(program: torch.export.ExportedProgram, path: Path, **extra: dict[str, str]) -> None:
    """Saves a program with source lines that do not say where whoever runs this keeps files."""
    for node in program.graph.nodes:
        node.meta["stack_trace"] = re.sub(
            r'File "[^"]*/(site-packages/)?', r'File "\1', node.meta.get("stack_trace") or ""
        )
    write(program, path, **extra)


def ranks(plan: dict[str, Any], path: Path) -> None:
    """Records the same by four ranks, and keeps the graph of one."""
    plan["training"]["ranks"] = 4
    with tempfile.TemporaryDirectory() as folder:
        record(plan, Path(folder) / "golden", "cpu")
        shutil.copy(Path(folder) / "golden" / "rank.pt2", path)


def main() -> None:
    """Records the run."""
    out = Path("rings.golden").resolve()
    description = tomllib.loads((EXAMPLE / "rings.toml").read_text())
    plan = {"benchmark": description["name"], "preset": None, "metrics": description["metrics"]}
    for table in ("model", "data", "training", "optimizer", "schedule", "record"):
        plan[table] = DEFAULTS.get(table, {}) | description[table]
    plan["training"]["steps"] = 20
    plan["tolerances"] = "[class.losses]\nrtol = 1e-5\n"
    torch.export.save = save
    os.chdir(EXAMPLE)
    record(plan, out, "cpu")
    manifest = out / "manifest.json"
    manifest.write_text(re.sub(r'"[^"]*/(rings.py:\d+)"', r'"\1"', manifest.read_text()))
    ranks(plan, out.with_name("rings.rank.pt2"))


if __name__ == "__main__":
    main()
