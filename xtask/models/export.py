"""Exports the catalogue's models: `python export.py FOLDER [NAME …]` writes FOLDER/MODEL/FORM/model.pt2 and golden."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

import torch
from catalogue import ENTRIES, Entry

from warpforge import trace

GROUPS = ("operations", "vision", "text", "training", "quantized")
SEED = 0


def main() -> int:
    """Exports what the arguments ask for; 1 if a model could not be."""
    options = _arguments()
    for group in options.group or GROUPS:
        importlib.import_module(group)
    unknown = [name for name in options.names if name not in ENTRIES]
    if unknown:
        print(f"no model is named {', '.join(unknown)}; there are {', '.join(ENTRIES)}", file=sys.stderr)
        return 2
    failed = 0
    for entry in ENTRIES.values():
        if options.names and entry.name not in options.names:
            continue
        for form in entry.forms():
            failed += not _export(entry, form, options)
    return 1 if failed else 0


def _export(entry: Entry, form: str, options: argparse.Namespace) -> bool:
    folder = options.folder / entry.name / form
    if options.keep and (folder / "model.golden" / "manifest.json").is_file():
        return True
    start = time.monotonic()
    torch.manual_seed(SEED)
    try:
        traced = trace(
            entry.make(),
            output=folder / "model.pt2",
            train=entry.train,
            dynamic=entry.dynamic,
            decompose="decomposed" in form,
            activations=options.activations,
            seed=SEED,
        )
    except Exception as error:  # one model's trouble must not keep the others from being exported
        print(json.dumps({"model": entry.name, "form": form, "error": f"{type(error).__name__}: {error}"}), flush=True)
        return False
    seconds = round(time.monotonic() - start, 1)
    nodes = len(traced.manifest["nodes"])
    print(json.dumps({"model": entry.name, "form": form, "nodes": nodes, "seconds": seconds}), flush=True)
    return True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Export the catalogue's models with PyTorch's own results.")
    parser.add_argument("folder", type=Path, help="where MODEL/FORM/model.pt2 and model.golden go")
    parser.add_argument("names", nargs="*", help="models to export (default: all)")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only the models of this file")
    parser.add_argument("--keep", action="store_true", help="leave what is there already")
    parser.add_argument("--activations", action="store_true", help="save the value of every node too")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
