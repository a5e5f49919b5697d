"""One peer of `cargo xtask peers cpu` and `quant`: `python serve.py ENGINE[:RECIPE] FOLDER THREADS`.

Requests and answers are lines of JSON: `prepare` a workload, `time` the prepared one, `forget` it. A peer that has no
program for a workload answers `absent`, one that cannot run it `failed` with the reason.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import answers
import files

# Before anything is timed.
WARM_UP = 2
LEAST = 5


def _engine(name: str, threads: int) -> Any:  # noqa: ANN401 (each has prepare and arrays)
    match name:
        case "ort":
            from onnx_engines import OnnxRuntime  # noqa: PLC0415 (each process imports only its own)

            return OnnxRuntime(threads)
        case "openvino" | "openvino-bf16":
            from onnx_engines import OpenVino  # noqa: PLC0415

            return OpenVino(threads, "bf16" if name.endswith("bf16") else "f32")
        case "xla":
            from xla_engine import Xla  # noqa: PLC0415

            return Xla(threads)
        case on_gpu if on_gpu.startswith("cuda-"):
            from cuda_engine import Cuda  # noqa: PLC0415

            return Cuda(*on_gpu.split("-")[1:])
        case quantized if ":" in quantized:
            from quant_engines import engine  # noqa: PLC0415

            return engine(*quantized.split(":"), threads)
    from torch_engines import Torch  # noqa: PLC0415

    ways = {
        "eager": {},
        "compile": {"compiled": True},
        "eager-bf16": {"cast": True},
        "compile-bf16": {"cast": True, "compiled": True},
        "autocast-bf16": {"autocast": True},
    }
    return Torch(threads, **ways[name])


def _times(run: Callable[[], Any], seconds: float) -> list[float]:
    for _ in range(WARM_UP):
        run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


class Peer:
    """An engine and the workload that it holds."""

    def __init__(self, engine: str, folder: Path, threads: int) -> None:
        self.engine, self.folder = _engine(engine, threads), folder
        self.run: Callable[[], Any] | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Does what a request asks for."""
        match request["do"]:
            case "prepare":
                return self._prepare(request["workload"])
            case "time":
                times = getattr(self.engine, "times", _times)
                return {"times_ms": times(self.run, request["seconds"])}
        self.run = None
        gc.collect()
        return {}

    def _prepare(self, name: str) -> dict[str, Any]:
        start = time.perf_counter()
        self.run = self.engine.prepare(self.folder, name)
        if self.run is None:
            return {"absent": True}
        outputs = self.run()
        seconds = time.perf_counter() - start
        expected = files.read(files.outputs(self.folder, name))
        found = self.engine.arrays(outputs)
        least = files.least_scale(self.folder, name)
        distance, sqnr = files.distance(found, expected, least), files.sqnr(found, expected)
        return {"seconds": seconds, "distance": distance, "sqnr_db": sqnr}


def main() -> None:
    """Answers requests until there are no more."""
    engine, folder, threads = sys.argv[1:]
    answers.serve(lambda: Peer(engine, Path(folder), int(threads)).answer)


main()
