"""Runs StableHLO modules in XLA for `cargo xtask differential`.

Each request is a line of JSON (the module and the types of its inputs) followed by the inputs' bytes; each answer a
line of JSON (empty, or with the error) followed by the results' bytes.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO

import jax
import ml_dtypes
import numpy as np
from jaxlib import _jax, xla_client

jax.config.update("jax_enable_x64", True)

DTYPES = {
    "i1": np.bool_,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "bf16": ml_dtypes.bfloat16,
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}


def read_input(pipe: BinaryIO, described: dict[str, Any]) -> np.ndarray:
    """Reads one input of the described type and shape."""
    dtype = np.dtype(DTYPES[described["type"]])
    count = int(np.prod(described["shape"], dtype=np.int64))
    data = np.frombuffer(pipe.read(count * dtype.itemsize), dtype=dtype)
    return data.reshape(described["shape"])


def execute(client: Any, devices: Any, module: str, inputs: list[np.ndarray]) -> list[np.ndarray]:  # noqa: ANN401 (jaxlib's own)
    """Compiles and runs a module."""
    executable = client.compile_and_load(module, devices, xla_client.CompileOptions())
    arguments = [jax.device_put(value) for value in inputs]
    results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [np.asarray(shards[0]) for shards in results]


def main() -> None:
    """Answers requests until there are no more."""
    requests = sys.stdin.buffer
    # Whatever a library prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    client = jax.devices("cpu")[0].client
    devices = _jax.DeviceList(tuple(jax.devices("cpu")[:1]))
    while line := requests.readline():
        request = json.loads(line)
        inputs = [read_input(requests, described) for described in request["inputs"]]
        try:
            results = execute(client, devices, request["module"], inputs)
        except Exception as error:  # whatever XLA refuses is an answer
            answers.write(json.dumps({"error": str(error)}).encode() + b"\n")
        else:
            answers.write(b"{}\n")
            for result in results:
                answers.write(np.ascontiguousarray(result).tobytes())
        answers.flush()


main()
