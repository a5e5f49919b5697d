"""Single matrix products in llama.cpp, through the library that its wheel brings: Q8_0 and Q4_0, few rows."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from quant_engines import layer

Run = Callable[[], Any]

F32, Q4_0, Q8_0 = 0, 2, 8
# The types that stand beside a recipe: what their blocks of 32 hold, and how many bytes.
TYPES = {"int8wo": (Q8_0, 34), "int4wo-128": (Q4_0, 18), "int4wo-32": (Q4_0, 18)}
BLOCK = 32
# Rows up to which its users' decoding goes this way.
MOST_ROWS = 4
# The layout that Q4_0 gets when a model is loaded; Q8_0 stays as it is on x86.
REPACKED = "_Z35ggml_backend_cpu_repack_buffer_typev"


class Params(ctypes.Structure):
    """`struct ggml_init_params`."""

    _fields_ = (("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


class LlamaCpp:
    """Layers in ggml, with the layout of weights that llama.cpp chooses when it loads a model."""

    def __init__(self, threads: int, recipe: str) -> None:
        place = importlib.util.find_spec("llama_cpp").submodule_search_locations[0]
        libraries = [Path(place) / "lib" / f"libggml{part}.so" for part in ("-base", "-cpu")]
        self.base, self.cpu = (ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL) for path in libraries)
        self.kind = TYPES.get(recipe)
        self.backend = self._call(self.cpu.ggml_backend_cpu_init)
        self.cpu.ggml_backend_cpu_set_n_threads(ctypes.c_void_p(self.backend), threads)

    @staticmethod
    def _call(function: Any, *arguments: Any) -> Any:  # noqa: ANN401
        function.restype = ctypes.c_void_p
        return function(*(ctypes.c_void_p(value) if isinstance(value, int) else value for value in arguments))

    def _context(self) -> int:
        self.base.ggml_init.argtypes = [Params]
        return self._call(self.base.ggml_init, Params(1 << 20, None, True))

    def _matrix(self, context: int, kind: int, depth: int, rows: int) -> int:
        sizes = (ctypes.c_int64(depth), ctypes.c_int64(rows))
        return self._call(self.base.ggml_new_tensor_2d, context, ctypes.c_int(kind), *sizes)

    def _set(self, tensor: int, data: np.ndarray) -> None:
        where = data.ctypes.data_as(ctypes.c_void_p)
        self._call(self.base.ggml_backend_tensor_set, tensor, where, ctypes.c_size_t(0), ctypes.c_size_t(data.nbytes))

    def prepare(self, _folder: Path, name: str) -> Run | None:
        """What runs the workload once."""
        weights, values = layer(name)
        if self.kind is None or len(values) > MOST_ROWS:
            return None
        (kind, bytes_of_block), (columns, depth) = self.kind, weights.shape
        codes = np.empty(columns * depth // BLOCK * bytes_of_block, np.uint8)
        source = np.ascontiguousarray(weights, np.float32)
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (source, codes))
        counts = (ctypes.c_int64(0), ctypes.c_int64(columns), ctypes.c_int64(depth))
        self._call(self.base.ggml_quantize_chunk, ctypes.c_int(kind), *pointers, *counts, None)
        own = self._context()
        matrix = self._matrix(own, kind, depth, columns)
        if kind == Q4_0:
            layout = self._call(getattr(self.cpu, REPACKED))
            self._call(self.base.ggml_backend_alloc_ctx_tensors_from_buft, own, layout)
        else:
            self._call(self.base.ggml_backend_alloc_ctx_tensors, own, self.backend)
        self._set(matrix, codes)
        context = self._context()
        x = self._matrix(context, F32, depth, len(values))
        y = self._call(self.base.ggml_mul_mat, context, matrix, x)
        graph = self._call(self.base.ggml_new_graph, context)
        self._call(self.base.ggml_build_forward_expand, graph, y)
        self._call(self.base.ggml_backend_alloc_ctx_tensors, context, self.backend)
        self._set(x, values)
        result = np.empty((len(values), columns), np.float32)

        def run() -> np.ndarray:
            self._call(self.base.ggml_backend_graph_compute, self.backend, graph)
            where, size = result.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(result.nbytes)
            self._call(self.base.ggml_backend_tensor_get, y, where, ctypes.c_size_t(0), size)
            return result

        return run

    def arrays(self, outputs: Any) -> list[Any]:  # noqa: ANN401
        """The outputs for NumPy."""
        return [outputs]
