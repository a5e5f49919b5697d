"""Exports workloads: `python export.py FOLDER NAME …` writes archive, ONNX file, inputs and PyTorch's outputs of each.

What is there already is kept. `--no-onnx` leaves the ONNX files out.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
import warnings
from pathlib import Path

import files
import torch
import training
import workloads
from safetensors.torch import save_file
from torch.utils.flop_counter import FlopCounterMode

VERSION = 3


def main() -> int:
    """Exports what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--no-onnx", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    for name in options.names:
        if _is_there(name, options.folder, with_onnx=not options.no_onnx):
            continue
        start = time.monotonic()
        with torch.no_grad():
            _export(name, options.folder, with_onnx=not options.no_onnx)
        print(f"{name}: exported in {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    return 0


def _is_there(name: str, folder: Path, *, with_onnx: bool) -> bool:
    path = files.facts(folder, name)
    if with_onnx and not files.onnx(folder, name).is_file():
        return False
    return path.is_file() and json.loads(path.read_text())["version"] == VERSION


def _export(name: str, folder: Path, *, with_onnx: bool) -> None:
    module, inputs = workloads.make(name)
    (folder / name).mkdir(parents=True, exist_ok=True)
    if isinstance(module, training.Loss):
        program, outputs = training.export(module, inputs)
    else:
        program, outputs = torch.export.export(module, inputs), workloads.leaves(module(*inputs))
    save_file({f"arg{index}": value.contiguous() for index, value in enumerate(inputs)}, files.inputs(folder, name))
    if workloads.is_exact(name):
        exact = workloads.leaves(copy.deepcopy(module).double()(*(value.double() for value in inputs)))
        expected = {f"out{index}": value.contiguous() for index, value in enumerate(exact)}
    else:
        # As f32, whatever they are: NumPy has no bf16.
        expected = {f"out{index}": value.float().contiguous() for index, value in enumerate(outputs)}
    save_file(expected, files.outputs(folder, name))
    torch.export.save(program, files.archive(folder, name))
    if with_onnx and not isinstance(module, training.Loss):
        try:
            torch.onnx.export(module, inputs, files.onnx(folder, name), dynamo=True, verbose=False)
        except Exception as error:  # the peers that need the file will say that it is not there
            print(f"{name}: no ONNX file: {type(error).__name__}", file=sys.stderr, flush=True)
    weights = [*module.parameters(), *module.buffers()]
    facts = {
        "version": VERSION,
        # Multiplications and additions of products and convolutions.
        "flops": _flops(module, inputs),
        # Gradients that are nothing but rounding count by the size of the others.
        "least_scale": training.least_scale(outputs) if isinstance(module, training.Loss) else 0.0,
        # What has to be read or written at least once.
        "bytes": sum(value.numel() * value.element_size() for value in [*weights, *inputs, *outputs]),
    }
    files.facts(folder, name).write_text(json.dumps(facts))


def _flops(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> int:
    # A layer of a transformer that runs as a single operation is not counted.
    fast = torch.backends.mha.get_fastpath_enabled()
    if not isinstance(module, training.Loss):
        # The counter follows gradients through modules, which some refuse.
        module.requires_grad_(requires_grad=False)
    torch.backends.mha.set_fastpath_enabled(value=False)
    with FlopCounterMode(display=False) as counter:
        module(*inputs)
    torch.backends.mha.set_fastpath_enabled(value=fast)
    return counter.get_total_flops()


sys.exit(main())
