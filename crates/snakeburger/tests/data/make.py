"""Writes the bytecode files of this folder with jaxlib's StableHLO, from the texts beside them.

Run with jax installed, in this folder. Each text must be what jaxlib prints for it.
"""

import io
import pathlib

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).parent


def text(name):
    source = (HERE / f"{name}.mlir").read_text()
    return source[source.index("module ") :]


def write(name, data):
    (HERE / name).write_bytes(data)
    print(name, len(data))


with mlir.make_ir_context() as context:
    # Quantized types are a dialect of their own, which reading an artifact that has them loads.
    quantized = HERE / "everything_1_17.mlir.bc"
    if quantized.exists():
        stablehlo.deserialize_portable_artifact(context, quantized.read_bytes())
    for name, version in [("everything", "1.17.0"), ("old", "0.9.0"), ("old", "0.13.0"), ("old", "1.0.0")]:
        artifact = stablehlo.serialize_portable_artifact_str(text(name), version)
        again = str(stablehlo.deserialize_portable_artifact(context, artifact))
        assert again == text(name), again
        major, minor, _ = version.split(".")
        write(f"{name}_{major}_{minor}.mlir.bc", artifact)
    for name in ["everything", "mixed"]:
        module = ir.Module.parse(text(name))
        assert str(module) == text(name), str(module)
        native = io.BytesIO()
        module.operation.write_bytecode(native)
        write(f"{name}_native.mlir.bc", native.getvalue())
    module = ir.Module.parse(text("mixed"))
    write("mixed_1_17.mlir.bc", stablehlo.serialize_portable_artifact(module, "1.17.0", allow_other_dialects=True))
