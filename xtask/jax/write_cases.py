"""Lowers each program, runs it, and writes module, inputs and results: `write_cases.py FOLDER`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

# Results are to be rounded where the program says so.
os.environ.setdefault("XLA_FLAGS", "--xla_allow_excess_precision=false")
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.export
import numpy as np
import safetensors_file
from programs import Program, programs


def write(program: Program, folder: Path) -> dict[str, str]:
    """Writes one case: its files by what they hold."""
    wide = any(np.asarray(leaf).dtype == np.float64 for leaf in jax.tree.leaves(program.inputs))
    with jax.enable_x64(True) if wide else contextlib.nullcontext():
        jitted = jax.jit(program.function, keep_unused=True)
        results = jax.tree.leaves(jitted(*program.inputs))
        text = jitted.lower(*program.inputs).as_text()
        checks = [jax.export.DisabledSafetyCheck.custom_call(target) for target in _targets(text)]
        exported = jax.export.export(jitted, disabled_checks=checks)(*program.inputs)
    files = {
        "text": f"{program.name}.mlir",
        "bytecode": f"{program.name}.mlir.bc",
        "inputs": f"{program.name}.inputs.safetensors",
        "outputs": f"{program.name}.outputs.safetensors",
    }
    (folder / files["text"]).write_text(text, encoding="utf-8")
    (folder / files["bytecode"]).write_bytes(exported.mlir_module_serialized)
    inputs = {f"arg{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(program.inputs))}
    safetensors_file.write(folder / files["inputs"], inputs)
    safetensors_file.write(folder / files["outputs"], {f"out{i}": np.asarray(leaf) for i, leaf in enumerate(results)})
    return {"name": program.name, **files}


def _targets(text: str) -> set[str]:
    """The targets of custom calls, which jax.export would refuse: LAPACK's are not promised to stay."""
    marker = "custom_call @"
    return {part.split("(", 1)[0] for part in text.split(marker)[1:]}


def main() -> None:
    """Writes all cases and their list."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases = [write(program, folder) for program in programs()]
    listing = {"jax": jax.__version__, "cases": cases}
    (folder / "cases.json").write_text(json.dumps(listing, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
