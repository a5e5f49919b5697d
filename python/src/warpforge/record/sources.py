"""Where files of a description come from: a path, an installed package, or the cache of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from pathlib import Path
from typing import Any

from warpforge.errors import TraceError


def resolve(source: str | dict[str, str], what: str) -> Path:
    """The path of a file or folder."""
    if isinstance(source, str):
        path = Path(source)
        if not path.exists():
            raise TraceError(f"{what}: there is no {path}")
        return path
    if "package" in source:
        return _in_package(source["package"], source.get("file", ""), what)
    return _in_hub(source["hub"], source.get("file", ""), what)


def _in_package(package: str, file: str, what: str) -> Path:
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise TraceError(f"{what} comes with the Python package {package}", f"pip install {package}") from error
    for found in files:
        if found.as_posix() == file:
            return Path(found.locate())
        if found.as_posix().startswith(f"{file}/"):
            return Path(found.locate()).parents[len(found.parts) - len(Path(file).parts) - 1]
    raise TraceError(f"{what}: the Python package {package} has no {file}")


def _in_hub(name: str, file: str, what: str) -> Path:
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache/huggingface"))
    snapshots = home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots"
    for snapshot in sorted(snapshots.glob("*")):
        if (snapshot / file).exists():
            return snapshot / file
    raise TraceError(
        f"{what}: {name} is not in {home}/hub", f"`hf download {name}`, or name a local folder with --model"
    )


def fingerprint(path: Path, folder: Path) -> dict[str, Any]:
    """What identifies a file; one inside the folder goes by its path there."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": place(path, folder), "sha256": digest, "bytes": path.stat().st_size}


def place(path: Path, folder: Path) -> str:
    """The path of a file or folder; that of one inside the folder begins there."""
    path, folder = path.resolve(), folder.resolve()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
