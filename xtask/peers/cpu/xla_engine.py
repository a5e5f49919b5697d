"""XLA, by way of JAX: the workloads as JAX programs with PyTorch's weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

# XLA has no option for the number of threads: it takes the processors that it may run on.
Run = Callable[[], Any]


class Xla:
    """Workloads in XLA."""

    def __init__(self, threads: int) -> None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        import jax  # noqa: PLC0415 (it counts the processors when it is imported)
        import xla_models  # noqa: PLC0415

        self.jax, self.models = jax, xla_models

    def prepare(self, _folder: Path, name: str) -> Run | None:
        """What runs the workload once, or nothing where there is no JAX program for it."""
        made = self.models.program(name)
        if made is None:
            return None
        function, arguments = made
        arguments = self.jax.tree.map(self.jax.numpy.asarray, arguments)
        compiled = self.jax.jit(function).lower(*arguments).compile()
        return lambda: self.jax.block_until_ready(compiled(*arguments))

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return self.jax.tree.leaves(outputs)
