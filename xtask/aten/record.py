"""Calls of operators, recorded from the samples of PyTorch's own test database."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable
from itertools import islice

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


# PyTorch promises no order of equal elements here.
UNORDERED = {"aten.topk.default", "aten.kthvalue.default"}
# PyTorch rounds to the element type between the steps of these; the lowerings compute in f32 and round once.
ROUNDED = ("aten.grid_sampler", "aten.upsample_", "aten._upsample_", "aten.logit.", "aten.special_logit.")


def _compared(call: Call) -> bool:
    """Whether PyTorch's result is the only right one."""
    name, tensors = name_of(call.target), call.tensors()
    if name in UNORDERED:
        return all(tensor.unique().numel() == tensor.numel() for tensor in tensors)
    match name:
        case "aten.rrelu_with_noise.default":
            # Outside training nothing is written to the noise.
            return False
        case "aten.nll_loss_forward.default" | "aten.nll_loss2d_forward.default":
            # Without a reduction, the total weight is memory that nothing was written to.
            return call.args[3] != 0
        case "aten.special_ndtr.default":
            # Below, PyTorch subtracts from 1 and loses digits that the lowering keeps.
            return bool((tensors[0] > -1).all())
        case "aten.native_layer_norm_backward.default":
            # Of one element the difference from the mean is zero; PyTorch gives what rounding leaves.
            return math.prod(call.args[2]) > 1
    return not name.startswith(ROUNDED) or all(tensor.dtype != torch.bfloat16 for tensor in tensors)


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
        if not _compared(call) or any(tensor.is_sparse or tensor.layout != torch.strided for tensor in call.tensors()):
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
            for at, sample in enumerate(_samples(info, dtype)):
                _record_direct(recorder, sample, targets)
                # What was drawn above depends on which operators are wanted.
                seed(f"{info.full_name} {dtype} {at}")
                _record_inside(recorder, info, sample)
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


def _samples(info: object, dtype: torch.dtype) -> list[object]:
    """The first samples of an entry, all drawn before any is used."""
    if dtype not in info.dtypes:
        return []
    seed(f"{info.full_name} {dtype}")
    grad = dtype == torch.float32 and info.supports_autograd
    drawn: list[object] = []
    try:
        for sample in islice(info.sample_inputs("cpu", dtype, requires_grad=grad), SAMPLES):
            drawn.append(sample)
    except Exception:  # some entries need what is not installed here
        return drawn
    return drawn


def _record_direct(recorder: Recorder, sample: object, targets: list[Callable]) -> None:
    """The operators of the entry's own name, called with the sample."""
    for target in targets:
        call = Call(target, (sample.input, *sample.args), sample.kwargs)
        try:
            if fits_schema(call):
                call.copied().run()
                recorder.keep(call)
        except Exception:  # another overload takes these arguments
            continue


def _record_inside(recorder: Recorder, info: object, sample: object) -> None:
    """The operators that the entry calls, and those of its gradients."""
    args = (sample.input, *sample.args)
    try:
        with recorder:
            result = info(*args, **sample.kwargs)
            # The gradients, so that backward operators are called too.
            results = [leaf for leaf in leaves(result) if leaf.requires_grad and leaf.is_floating_point()]
            inputs = [leaf for leaf in leaves((args, sample.kwargs)) if leaf.requires_grad]
            if results and inputs:
                # Not the same number everywhere: many gradients would be zero, and nothing but rounding.
                grads = [torch.randn(leaf.shape, dtype=leaf.dtype) for leaf in results]
                torch.autograd.grad(results, inputs, grads, allow_unused=True)
    except Exception:  # the database has samples that are for other checks than running
        return
