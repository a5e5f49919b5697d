"""Finding a model by `module:function` and reading what the function returns."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from warpforge.errors import TraceError

KEYS = ("model", "args", "kwargs")
RETURNS = "it must return a model, (model, args), (model, args, kwargs) or a dict with the keys model, args and kwargs"
INPUTS = "it must return a tensor, a tuple of arguments, or a dict of keyword arguments"
# (model, args) and (model, args, kwargs)
TUPLE_LENGTHS = (2, 3)


@dataclass
class Model:
    """A module with the example arguments it is traced with."""

    module: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def named_tensors(self) -> list[tuple[str, torch.Tensor]]:
        """Tensor arguments, each with its path: `input_ids`, `past.0.1`."""
        named = dict(zip(self._positional_names(), self.args, strict=True)) | self.kwargs
        leaves, _ = torch.utils._pytree.tree_flatten_with_path(named)
        return [(_dotted(path), leaf) for path, leaf in leaves if isinstance(leaf, torch.Tensor)]

    def _positional_names(self) -> list[str]:
        names: list[str] = []
        for parameter in inspect.signature(self.module.forward).parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}_{i}" for i in range(len(self.args) - len(names))]
        if len(names) < len(self.args):
            raise TraceError(
                f"{len(self.args)} example arguments, but {type(self.module).__name__}.forward takes {len(names)}",
                "give as many example arguments as `forward` has parameters, or fewer",
            )
        return names[: len(self.args)]


def load_model(spec: str, seed: int) -> Model:
    """Calls the function that `spec` names (`package.module:function` or `path/to/file.py:function`).

    The random numbers are seeded first, so that weights made by the function are the same in every run.
    """
    return as_model(call(spec, seed), spec)


def load_inputs(spec: str, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example arguments from the function that `spec` names: positional ones, and keyword arguments."""
    returned = call(spec, seed)
    if isinstance(returned, torch.Tensor):
        return (returned,), {}
    if isinstance(returned, Mapping) and all(isinstance(key, str) for key in returned):
        return (), dict(returned)
    if isinstance(returned, (tuple, list)):
        return tuple(returned), {}
    raise TraceError(f"{spec} returned {_describe(returned)}", INPUTS)


def call(spec: str, seed: int) -> object:
    """What the function that `spec` names returns, its random numbers seeded."""
    where, colon, name = spec.rpartition(":")
    if not colon or not where or not name:
        raise TraceError(f"`{spec}` does not name a function", "write module:function, such as my_module:make_model")
    module = _import(where)
    function = getattr(module, name, None)
    if not callable(function):
        there = sorted(key for key, value in vars(module).items() if inspect.isfunction(value))
        raise TraceError(f"{where} has no function `{name}`", f"its functions are: {', '.join(there) or 'none'}")
    torch.manual_seed(seed)
    return function()


def as_model(returned: object, spec: str) -> Model:
    """Reads what a model function returned."""
    if isinstance(returned, nn.Module):
        return Model(returned)
    if isinstance(returned, Mapping):
        unknown = sorted(set(returned) - set(KEYS))
        if unknown or "model" not in returned:
            problem = f"unknown keys {', '.join(map(repr, unknown))}" if unknown else "no key 'model'"
            raise TraceError(f"{spec} returned a dict with {problem}", RETURNS)
        parts = (returned["model"], returned.get("args", ()), returned.get("kwargs", {}))
    elif isinstance(returned, tuple) and len(returned) in TUPLE_LENGTHS:
        parts = (*returned, {})[:3]
    else:
        raise TraceError(f"{spec} returned {_describe(returned)}", RETURNS)
    module, args, kwargs = parts
    if not isinstance(module, nn.Module):
        raise TraceError(f"{spec} returned {_describe(module)} as the model", "the model must be a torch.nn.Module")
    if isinstance(args, torch.Tensor):
        args = (args,)
    if not isinstance(args, (tuple, list)):
        raise TraceError(f"{spec} returned {_describe(args)} as args", "args must be a tuple of example arguments")
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise TraceError(f"{spec} returned {_describe(kwargs)} as kwargs", "kwargs must be a dict with names as keys")
    return Model(module, tuple(args), dict(kwargs))


def _import(where: str) -> Any:  # noqa: ANN401 (a module has whatever attributes it has)
    path = Path(where)
    if path.suffix == ".py":
        if not path.is_file():
            raise TraceError(f"there is no file {where}")
        folder, where = str(path.resolve().parent), path.stem
    else:
        folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not (where == error.name or where.startswith(f"{error.name}.")):
            raise TraceError(f"{where} needs the module {error.name}, which is not installed") from error
        raise TraceError(
            f"there is no module {where}",
            f"looked in {folder} and in the rest of sys.path; a file is given as file.py:function",
        ) from error


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path)


def _describe(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"
