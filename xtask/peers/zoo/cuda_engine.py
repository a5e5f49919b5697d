"""PyTorch on a GPU: as it is, compiled, and compiled into CUDA graphs, each in one precision."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import workloads

Run = Callable[[], Any]

MODES = {"eager": None, "compile": "default", "graphs": "reduce-overhead"}
NARROW = {"bf16": torch.bfloat16, "f16": torch.float16}
IMAGE_DIMS = 4
# Calls are queued until a sample takes this long: the host is then ahead of the GPU, as in a loop over batches.
SAMPLE_SECONDS = 0.02
MOST_CALLS = 200


class Cuda:
    """Workloads in PyTorch on the first GPU."""

    def __init__(self, way: str, precision: str) -> None:
        torch.set_grad_enabled(False)
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = precision != "f32"
        torch.backends.cudnn.allow_tf32 = precision != "f32"
        self.way, self.element = way, NARROW.get(precision)

    def prepare(self, _folder: Path, name: str) -> Run:
        """What runs the workload once; images in the memory format that is faster."""
        torch.compiler.reset()
        torch.cuda.empty_cache()
        module, inputs = workloads.make(name)
        module = module.to("cuda", self.element)
        inputs = tuple(self._given(value) for value in inputs)
        if any(value.dim() == IMAGE_DIMS for value in inputs):
            plain = _sample(lambda: module(*inputs))
            last = tuple(_channels_last(value) for value in inputs)
            module = module.to(memory_format=torch.channels_last)
            if _sample(lambda: module(*last)) < plain:
                inputs = last
            else:
                module = module.to(memory_format=torch.contiguous_format)
        mode = MODES[self.way]
        run = module if mode is None else torch.compile(module, mode=mode)
        return lambda: run(*inputs)

    def _given(self, value: torch.Tensor) -> torch.Tensor:
        return value.to("cuda", self.element if value.is_floating_point() else None)

    def times(self, run: Run, seconds: float) -> list[float]:
        """Milliseconds of a call, many between two events, for about so long."""
        end = time.perf_counter() + seconds
        found = [_sample(run)]
        while time.perf_counter() < end:
            found.append(_sample(run))
        return found

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return [value.double().cpu().numpy() for value in workloads.leaves(outputs)]


def _channels_last(value: torch.Tensor) -> torch.Tensor:
    return value.contiguous(memory_format=torch.channels_last) if value.dim() == IMAGE_DIMS else value


def _sample(run: Run) -> float:
    run()
    once = _between_events(run, 1)
    calls = min(max(int(SAMPLE_SECONDS * 1e3 / max(once, 1e-3)), 1), MOST_CALLS)
    return _between_events(run, calls)


def _between_events(run: Run, calls: int) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / calls
