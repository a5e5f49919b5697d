"""Writing safetensors files with nothing but NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

CODES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Writes the tensors by name. The format has no complex128: real and imaginary parts stand side by side."""
    header: dict[str, object] = {}
    data = b""
    for name, tensor in tensors.items():
        stored = np.ascontiguousarray(tensor).reshape(tensor.shape)
        if stored.dtype == np.complex128:
            stored = stored[..., None].view(np.float64)
        part = stored.tobytes()
        header[name] = {
            "dtype": CODES[stored.dtype.name],
            "shape": list(stored.shape),
            "data_offsets": [len(data), len(data) + len(part)],
        }
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
