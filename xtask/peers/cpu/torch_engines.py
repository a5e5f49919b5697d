"""PyTorch: as it is, compiled, and both in bf16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training
import workloads

Run = Callable[[], Any]


class Torch:
    """Workloads in PyTorch."""

    def __init__(self, threads: int, *, compiled: bool = False, cast: bool = False, autocast: bool = False) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.compiled, self.cast, self.autocast = compiled, cast, autocast

    def prepare(self, _folder: Path, name: str) -> Run:
        """What runs the workload once."""
        torch.compiler.reset()
        module, inputs = workloads.make(name)
        if self.cast:
            module = module.bfloat16()
            inputs = tuple(value.bfloat16() if value.is_floating_point() else value for value in inputs)
        run = torch.compile(module) if self.compiled else module
        if isinstance(module, training.Loss):
            return lambda: training.results(module, run, inputs)
        if not self.autocast:
            return lambda: run(*inputs)

        def in_bf16() -> Any:  # noqa: ANN401
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return run(*inputs)

        return in_bf16

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return [value.double().numpy() for value in workloads.leaves(outputs)]
