"""Linear layers with quantized weights: torchao, OpenVINO, ONNX Runtime and llama.cpp, by torchao's names of recipes.

A peer that has no way of a recipe has no program for the workload.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import workloads

Run = Callable[[], Any]

# Codes of 4 bits with a scale for each group of inputs.
GROUPED = re.compile(r"int4wo-(\d+)(-hqq)?")


def layer(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The weights of a workload, a row for each output, and its input."""
    module, (values,) = workloads.make(name)
    return module.constant0.numpy(), values.numpy()


def eight_bits(module: Any, recipe: str) -> None:  # noqa: ANN401
    """Quantizes the layers of a module by torchao's configuration of a recipe."""
    from torchao import quantization  # noqa: PLC0415 (each engine's process imports only its own)

    config = {
        "int8wo": quantization.Int8WeightOnlyConfig,
        "int8dq": quantization.Int8DynamicActivationInt8WeightConfig,
        "float8wo": quantization.Float8WeightOnlyConfig,
    }[recipe]
    quantization.quantize_(module, config())


def float8(tensor: Any, recipe: str) -> Any:  # noqa: ANN401
    """What torchao's float8 codes of a tensor stand for, in f64."""
    from torchao.quantization import quant_primitives as primitives  # noqa: PLC0415

    row = [1] * (tensor.ndim - 1) + [tensor.shape[-1]]
    scale = primitives._choose_scale_float8(tensor, list(tensor.shape) if recipe.endswith("tensor") else row)
    return primitives._quantize_affine_float8(tensor, scale).double() * scale.double()


class TorchAo:
    """torchao's own configurations, compiled as its benchmarks do; what it has no CPU kernel for by its quantizers."""

    def __init__(self, threads: int, recipe: str) -> None:
        import torch  # noqa: PLC0415

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch, self.recipe = torch, recipe

    def prepare(self, _folder: Path, name: str) -> Run:
        """What runs the workload once."""
        torch = self.torch
        torch.compiler.reset()
        weights, values = (torch.from_numpy(array) for array in layer(name))
        if self.recipe.startswith("float8dq"):
            return self._emulated(weights, values)
        linear = torch.nn.Linear(weights.shape[1], weights.shape[0], bias=False)
        linear.weight = torch.nn.Parameter(weights, requires_grad=False)
        module = torch.nn.Sequential(linear)
        if grouped := GROUPED.fullmatch(self.recipe):
            # The type that the kernel is made for; f32 takes it far longer.
            module, values = module.bfloat16(), values.bfloat16()
            self._four_bits(linear, int(grouped[1]), by_hqq=grouped[2] is not None)
        else:
            eight_bits(module, self.recipe)
        # `_weight_int4pack_mm_for_cpu` is one kernel: there is nothing to compile.
        module = module if grouped else torch.compile(module)
        return lambda: module(values)

    def _four_bits(self, linear: Any, group: int, *, by_hqq: bool) -> None:  # noqa: ANN401
        from torchao.prototype.quantization.int4 import Int4OpaqueTensor  # noqa: PLC0415

        how = "hqq" if by_hqq else "tinygemm"
        weights = Int4OpaqueTensor.from_hp(linear.weight, [1, group], how)
        linear.weight = self.torch.nn.Parameter(weights, requires_grad=False)

    def _emulated(self, weights: Any, values: Any) -> Run:  # noqa: ANN401
        """The product of what torchao's float8 operands stand for: it has no CPU kernel of them."""
        exact = float8(weights, self.recipe).T
        return lambda: float8(values, self.recipe) @ exact

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return [outputs.double().numpy()]


class OnnxRuntime:
    """ONNX Runtime: dynamic int8 by its quantizer, other recipes by MatMulNBits."""

    def __init__(self, threads: int, recipe: str) -> None:
        import onnxruntime  # noqa: PLC0415

        self.library, self.recipe = onnxruntime, recipe
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1

    def prepare(self, folder: Path, name: str) -> Run | None:
        """What runs the workload once."""
        weights, values = layer(name)
        path = folder / name / f"ort-{self.recipe}.onnx"
        if self.recipe == "int8dq":
            self._dynamic(weights, path)
        elif self.recipe == "int8wo":
            self._blocks(weights, 8, 128, path, symmetric=True)
        elif (grouped := GROUPED.fullmatch(self.recipe)) and grouped[2] is None:
            self._blocks(weights, 4, int(grouped[1]), path, symmetric=False)
        else:
            return None
        session = self.library.InferenceSession(path, self.options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"x": values})

    def _plain(self, weights: np.ndarray) -> Any:  # noqa: ANN401
        from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

        columns, depth = weights.shape
        value = lambda name, size: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", size])  # noqa: E731
        constant = numpy_helper.from_array(np.ascontiguousarray(weights.T), "w")
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        graph = helper.make_graph([node], "layer", [value("x", depth)], [value("y", columns)], [constant])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def _dynamic(self, weights: np.ndarray, path: Path) -> None:
        from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

        quantize_dynamic(self._plain(weights), path, per_channel=True, weight_type=QuantType.QInt8)

    def _blocks(self, weights: np.ndarray, bits: int, block: int, path: Path, *, symmetric: bool) -> None:
        import onnx  # noqa: PLC0415
        from onnxruntime.quantization import matmul_nbits_quantizer as quantizer  # noqa: PLC0415

        config = quantizer.DefaultWeightOnlyQuantConfig(
            block_size=block, is_symmetric=symmetric, bits=bits, accuracy_level=0
        )
        work = quantizer.MatMulNBitsQuantizer(self._plain(weights), algo_config=config)
        work.process()
        onnx.save(work.model.model, path)

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return outputs


class OpenVino:
    """OpenVINO: weights compressed by NNCF, activations as they are or of 8 bits with a scale for each row."""

    def __init__(self, threads: int, recipe: str) -> None:
        import openvino  # noqa: PLC0415

        self.library, self.recipe = openvino, recipe
        self.core = openvino.Core()
        self.settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }

    def prepare(self, _folder: Path, name: str) -> Run | None:
        """What runs the workload once."""
        import nncf  # noqa: PLC0415
        from openvino import opset13  # noqa: PLC0415

        weights, values = layer(name)
        if self.recipe in ("int8dq", "int8wo"):
            how = {"mode": nncf.CompressWeightsMode.INT8_SYM}
        elif (grouped := GROUPED.fullmatch(self.recipe)) and grouped[2] is None:
            mode = nncf.CompressWeightsMode.INT4_ASYM
            how = {"mode": mode, "group_size": int(grouped[1]), "ratio": 1.0, "all_layers": True}
        else:
            return None
        x = opset13.parameter([-1, weights.shape[1]], np.float32)
        product = opset13.matmul(x, opset13.constant(weights), transpose_a=False, transpose_b=True)
        model = nncf.compress_weights(self.library.Model([product], [x]), **how)
        model.reshape(list(values.shape))
        # A group of the whole depth is a scale for each row; none are activations as they are.
        group = weights.shape[1] if self.recipe == "int8dq" else 0
        settings = {**self.settings, "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(group)}
        request = self.core.compile_model(model, "CPU", settings).create_infer_request()

        def run() -> Any:  # noqa: ANN401
            request.infer([values])
            return request.results

        return run

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return list(outputs.values())


def engine(name: str, recipe: str, threads: int) -> Any:  # noqa: ANN401 (each has prepare and arrays)
    """The peer of a name."""
    if name == "llama.cpp":
        from ggml_engine import LlamaCpp  # noqa: PLC0415

        return LlamaCpp(threads, recipe)
    return {"torchao": TorchAo, "ort": OnnxRuntime, "openvino": OpenVino}[name](threads, recipe)
