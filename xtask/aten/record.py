"""Calls of operators, recorded from the samples of PyTorch's own test database."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator

import torch
from calls import Call, fits_schema, leaves, name_of, overload
from torch.testing._internal import common_methods_invocations as database
from torch.utils._python_dispatch import TorchDispatchMode

SEED = 7
# Per sample of a type, and per operator: enough to choose from.
SAMPLES = 24
CANDIDATES = 60
# The tensors of one call, in bytes.
LARGEST = 2048
TYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float64, torch.bfloat16)


def seed(name: str) -> None:
    """The same numbers for the same name, whatever was drawn before."""
    number = SEED + zlib.crc32(name.encode())
    torch.manual_seed(number)
    random.seed(number)


class Recorder(TorchDispatchMode):
    """Keeps the calls of wanted operators that pass by."""

    def __init__(self, wanted: set[str]) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: dict[str, dict[str, Call]] = {}

    def keep(self, call: Call) -> None:
        """Keeps a call, unless there is a smaller one of its kind."""
        name = name_of(call.target)
        if name not in self.wanted or call.size() > LARGEST:
            return
        kinds = self.found.setdefault(name, {})
        kind = call.kind()
        if kind in kinds:
            if kinds[kind].worth() <= call.worth():
                return
        elif len(kinds) >= CANDIDATES:
            return
        if any(tensor.is_sparse or tensor.layout != torch.strided for tensor in call.tensors()):
            return
        kinds[kind] = call.copied()

    def __torch_dispatch__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        """Keeps the call before it can write to its arguments."""
        kwargs = kwargs or {}
        if name_of(func) in self.wanted:
            self.keep(Call(func, args, kwargs))
        return func(*args, **kwargs)


def record(wanted: set[str]) -> dict[str, list[Call]]:
    """The calls of the wanted operators, by name."""
    recorder = Recorder(wanted)
    by_name = _by_name(wanted)
    for info in database.op_db:
        targets = [target for name in _names(info) for target in by_name.get(name, ())]
        for dtype in TYPES:
            for sample in _samples(info, dtype):
                _record_sample(recorder, info, sample, targets)
    return {name: list(kinds.values()) for name, kinds in recorder.found.items()}


def _by_name(wanted: set[str]) -> dict[str, list[Callable]]:
    found: dict[str, list[Callable]] = {}
    for name in sorted(wanted):
        target = overload(name)
        if target is not None:
            found.setdefault(name.split(".")[1], []).append(target)
    return found


def _names(info: object) -> set[str]:
    """The names that the operators of an entry may have."""
    names = {info.name, *(alias.name for alias in info.aliases)}
    if info.aten_name:
        names.add(info.aten_name)
    names |= {name.removeprefix("nn.functional.") for name in names}
    return {name.replace(".", "_") for name in names} | {f"special_{name}" for name in names}


def _samples(info: object, dtype: torch.dtype) -> Iterator[object]:
    if dtype not in info.dtypes:
        return
    seed(f"{info.full_name} {dtype}")
    grad = dtype == torch.float32 and info.supports_autograd
    try:
        yielded = iter(info.sample_inputs("cpu", dtype, requires_grad=grad))
        for _ in range(SAMPLES):
            yield next(yielded)
    except Exception:  # some entries need what is not installed here, and some have fewer samples
        return


def _record_sample(recorder: Recorder, info: object, sample: object, targets: list[Callable]) -> None:
    args = (sample.input, *sample.args)
    for target in targets:
        call = Call(target, args, sample.kwargs)
        try:
            if fits_schema(call):
                call.copied().run()
                recorder.keep(call)
        except Exception:  # another overload takes these arguments
            continue
    try:
        with recorder:
            result = info(*args, **sample.kwargs)
            # The gradients, so that backward operators are called too.
            total = [leaf.sum() for leaf in leaves(result) if leaf.requires_grad and leaf.is_floating_point()]
            inputs = [leaf for leaf in leaves((args, sample.kwargs)) if leaf.requires_grad]
            if total and inputs:
                grads = [torch.randn(()) for _ in total]
                torch.autograd.grad(total, inputs, grads, allow_unused=True)
    except Exception:  # the database has samples that are for other checks than running
        return
