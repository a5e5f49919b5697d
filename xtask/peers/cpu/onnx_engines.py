"""ONNX Runtime and OpenVINO on the exported ONNX files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import files

Run = Callable[[], Any]


class OnnxRuntime:
    """Workloads in ONNX Runtime."""

    def __init__(self, threads: int) -> None:
        import onnxruntime  # noqa: PLC0415 (each engine's process imports only its own)

        self.library = onnxruntime
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1

    def prepare(self, folder: Path, name: str) -> Run:
        """What runs the workload once."""
        path, providers = files.onnx(folder, name), ["CPUExecutionProvider"]
        session = self.library.InferenceSession(path, self.options, providers=providers)
        values = files.read(files.inputs(folder, name))
        feed = {slot.name: value for slot, value in zip(session.get_inputs(), values, strict=True)}
        return lambda: session.run(None, feed)

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return outputs


class OpenVino:
    """Workloads in OpenVINO."""

    def __init__(self, threads: int, precision: str) -> None:
        import openvino  # noqa: PLC0415

        self.core = openvino.Core()
        self.settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": "LATENCY",
        }

    def prepare(self, folder: Path, name: str) -> Run:
        """What runs the workload once."""
        compiled = self.core.compile_model(files.onnx(folder, name), "CPU", self.settings)
        request = compiled.create_infer_request()
        values = files.read(files.inputs(folder, name))

        def run() -> Any:  # noqa: ANN401
            request.infer(values)
            return request.results

        return run

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return list(outputs.values())
