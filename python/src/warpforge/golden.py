"""The golden folder: example inputs, PyTorch's own results, and a manifest that says how they were made."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from warpforge.errors import TraceError

MANIFEST = "manifest.json"
# What only a run that was stopped before its manifest has.
UNFINISHED = "progress.jsonl"
SCHEMA_VERSION = 1
LIBRARIES = ("warpforge", "torch", "torchvision", "transformers", "peft", "bitsandbytes", "numpy", "safetensors")


class GoldenFolder:
    """A folder being filled: tensors and numbers first, the manifest with their hashes last."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            known = (path / MANIFEST).is_file() or (path / UNFINISHED).is_file()
            if any(path.iterdir()) and not known:
                raise TraceError(f"{path} is in the way: it is no golden folder", "move it, or choose another -o")
            shutil.rmtree(path)
        path.mkdir(parents=True)
        self.path = path
        self._files: dict[str, dict[str, Any]] = {}

    def tensors(self, kind: str, tensors: dict[str, torch.Tensor]) -> None:
        """Writes `kind`.safetensors; a `/` in the kind is a folder inside."""
        path = self.path / f"{kind}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Each gets memory of its own: the format has no views.
            save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, path)
        except (KeyError, RuntimeError, ValueError) as error:
            types = ", ".join(sorted({str(tensor.dtype) for tensor in tensors.values()}))
            raise TraceError(f"the {kind} cannot be saved as safetensors: {error}", f"their types: {types}") from error
        self._added(path)

    def numbers(self, kind: str, numbers: dict[str, Any]) -> None:
        """Writes `kind`.json."""
        path = self.path / f"{kind}.json"
        _write_json(path, numbers)
        self._added(path)

    def add(self, name: str) -> None:
        """Lists a file that was written by itself and is no part of a comparison."""
        self._added(self.path / name)
        self._files[name]["compared"] = False

    def manifest(self, archive: Path, facts: dict[str, Any]) -> dict[str, Any]:
        """Writes the manifest: the versions, the given facts, and the hash of every file."""
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "versions": versions(),
            "archive": {"file": archive.name, **_fingerprint(archive)},
            "files": self._files,
            **facts,
        }
        _write_json(self.path / MANIFEST, manifest)
        return manifest

    def _added(self, path: Path) -> None:
        self._files[path.relative_to(self.path).as_posix()] = _fingerprint(path)


def versions() -> dict[str, str]:
    """The versions that a result depends on; a library that is not installed has none."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
