"""Command-line arguments of `python -m warpforge.trace`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from warpforge.errors import TraceError
from warpforge.tracing import trace

BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Traces the model that the arguments name. Returns the exit code: 0, or 2 with a message on stderr."""
    options = _parser().parse_args(arguments)
    try:
        traced = trace(
            options.model,
            output=options.output,
            train=options.train,
            dynamic=options.dynamic,
            decompose=options.decompose,
            activations=options.activations,
            weights=options.weights,
            seed=options.seed,
        )
    except (TraceError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    print(f"{traced.archive}: {len(traced.manifest['nodes'])} nodes")
    print(f"{traced.golden}: {', '.join(traced.manifest['files'])}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warpforge.trace",
        description="Export a PyTorch model for warpt, with sample inputs and PyTorch's own outputs beside it.",
    )
    parser.add_argument(
        "model",
        metavar="MODULE:FUNCTION",
        help="a function that returns (model, args), (model, args, kwargs) or a dict with those keys; "
        "MODULE is a Python module or a .py file",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="MODEL.pt2", help="the archive to write")
    parser.add_argument("--train", action="store_true", help="export the loss and its gradients in one graph")
    parser.add_argument(
        "--dynamic",
        action="append",
        default=[],
        metavar="NAME[=[INPUT.]DIM[:MIN[:MAX]]]",
        help="keep a dimension symbolic: `batch` is dimension 0 of every tensor argument; may be repeated",
    )
    parser.add_argument("--decompose", action="store_true", help="decompose to Core ATen operations")
    parser.add_argument("--activations", action="store_true", help="save the value of every node of the graph")
    parser.add_argument("--weights", action="store_true", help="save parameters, buffers and constants")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (default: 0)")
    return parser
