"""One command from a PyTorch model to a verdict: `python -m warpforge.check my_module:make_model`.

The model is traced and run by PyTorch, run by `warpt run --save`, and `warpt validate` compares the two.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warpforge.errors import TraceError
from warpforge.factory import Model, load_inputs, load_model
from warpforge.tracing import trace

PASSED = 0
BAD_INPUT = 2
DIFFERS = (1, 4)
"""The exit codes of `warpt validate` after which its reader looks into the folder."""
PROGRAM = "WARPT"


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks the model that the arguments name and returns the exit code of `warpt validate`.

    It is that of `warpt run` where the run failed, and 2 with a message on stderr where the model cannot be traced.
    """
    options = _parser().parse_args(arguments)
    try:
        warpt = _program(options.warpt)
        if options.out is not None:
            return _check(options, warpt, options.out)
        return _check_in_temporary(options, warpt)
    except (TraceError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT


def _check_in_temporary(options: argparse.Namespace, warpt: str) -> int:
    """Checks in a folder that stays only where the two runs differ."""
    folder = Path(tempfile.mkdtemp(prefix="warpforge-check-"))
    code = BAD_INPUT
    try:
        code = _check(options, warpt, folder)
    finally:
        if code in DIFFERS:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _check(options: argparse.Namespace, warpt: str, folder: Path) -> int:
    model = load_model(options.model, options.seed)
    if options.inputs is not None:
        args, kwargs = load_inputs(options.inputs, options.seed)
        model = Model(model.module, args, kwargs)
    traced = trace(
        model,
        output=folder / "model.pt2",
        train=options.train,
        decompose=options.decompose,
        activations=True,
        seed=options.seed,
    )
    candidate = folder / "candidate"
    run = [warpt, "run", traced.archive, "--inputs", traced.golden / "inputs.safetensors", "--save", candidate]
    for option in ("device", "precision", "tier"):
        run += [f"--{option}", getattr(options, option)]
    ran = subprocess.run(run, check=False)
    if ran.returncode != PASSED:
        return ran.returncode
    validate = [warpt, "validate", "--golden", traced.golden, "--candidate", candidate, "--reduce", folder / "reduced"]
    if options.tolerances is not None:
        validate += ["--tolerances", options.tolerances]
    return subprocess.run(validate, check=False).returncode


def _program(given: str | None) -> str:
    """The program: the one given, the one that the environment names, or the one on the path."""
    wanted = given or os.environ.get(PROGRAM) or "warpt"
    found = shutil.which(wanted)
    if found is None:
        raise TraceError(f"there is no program `{wanted}`", f"give it with --warpt PATH or in ${PROGRAM}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warpforge.check",
        description="Trace a PyTorch model, run it with PyTorch and with warpt, and compare the two.",
    )
    parser.add_argument(
        "model",
        metavar="MODULE:FUNCTION",
        help="a function that returns a model, (model, args), (model, args, kwargs) or a dict with those keys; "
        "MODULE is a Python module or a .py file",
    )
    parser.add_argument(
        "--inputs",
        metavar="MODULE:FUNCTION",
        help="a function that returns the example arguments: a tensor, a tuple, or a dict of keyword arguments",
    )
    parser.add_argument("--device", default="cpu", help="where warpt runs: cpu, cuda[:N] or hip[:N] (default: cpu)")
    parser.add_argument("--precision", default="model", help="what contractions multiply in (default: model)")
    parser.add_argument("--tier", default="production", help="how warpt runs (default: production, what is timed)")
    parser.add_argument("--train", action="store_true", help="compare the loss and its gradients too")
    parser.add_argument("--decompose", action="store_true", help="decompose to Core ATen operations")
    parser.add_argument("--tolerances", metavar="FILE.toml", help="tolerances of `warpt validate`")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (default: 0)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="keep the archive and both runs here (default: a temporary folder, kept where something differs)",
    )
    parser.add_argument("--warpt", metavar="PATH", help=f"the program (default: ${PROGRAM}, or `warpt` on the path)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
