"""Seconds to solve a dense system by a BLAS library, with its residual: LIBRARY ORDER THREADS SEED.

The library is opened by ctypes, so that nothing but its own `dgesv` is timed.
"""

import ctypes
import importlib
import json
import os
import sys
import time
from pathlib import Path

import numpy


def openblas(threads: int) -> tuple[ctypes.CDLL, str, type]:
    """Open OpenBLAS, whose integers have 64 bits."""
    package = importlib.import_module("scipy_openblas64")
    (path,) = Path(package.get_lib_dir()).glob(f"lib{package.get_library()}.so*")
    library = ctypes.CDLL(str(path))
    library.scipy_openblas_set_num_threads64_(threads)
    return library, "scipy_dgesv_64_", ctypes.c_int64


def mkl(threads: int) -> tuple[ctypes.CDLL, str, type]:
    """Open Intel's MKL, whose integers have 32 bits."""
    os.environ["MKL_NUM_THREADS"] = str(threads)
    os.environ["MKL_THREADING_LAYER"] = "GNU"
    (path,) = (Path(sys.prefix) / "lib").glob("libmkl_rt.so*")
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL), "dgesv_", ctypes.c_int32


def main() -> None:
    """Solve once to warm up the threads on a small system, then the system that is asked for."""
    name, order, threads, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    library, symbol, integer = {"openblas": openblas, "mkl": mkl}[name](threads)
    solve = getattr(library, symbol)
    random = numpy.random.default_rng(seed)

    def run(n: int) -> tuple[float, float]:
        matrix = random.random((n, n)) - 0.5
        right = random.random(n) - 0.5
        factors, solution = numpy.asfortranarray(matrix), right.copy()
        pivots = numpy.zeros(n, dtype=numpy.int64)
        size, one, info = integer(n), integer(1), integer(0)
        pointer = [ctypes.c_void_p(array.ctypes.data) for array in (factors, pivots, solution)]
        began = time.perf_counter()
        solve(
            ctypes.byref(size),
            ctypes.byref(one),
            pointer[0],
            ctypes.byref(size),
            pointer[1],
            pointer[2],
            ctypes.byref(size),
            ctypes.byref(info),
        )
        seconds = time.perf_counter() - began
        if info.value != 0:
            sys.exit(f"{name}: dgesv says {info.value}")
        largest = numpy.abs(matrix).sum(axis=1).max() * numpy.abs(solution).max() + numpy.abs(right).max()
        return seconds, float(numpy.abs(matrix @ solution - right).max() / (2.0**-53 * largest * n))

    run(512)
    seconds, residual = run(order)
    gflops = (2 / 3 * order**3 + 3 / 2 * order**2) / seconds / 1e9
    print(json.dumps({"gflops": gflops, "seconds": seconds, "residual": residual}))


main()
