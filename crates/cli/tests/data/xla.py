"""Small models for `warpt import`, and XLA to run the modules in: `xla.py export FOLDER`, `xla.py run FOLDER`.

`export` writes FOLDER/NAME.pt2 and its golden folder for each model. `run` compiles every FOLDER/NAME.mlir and
FOLDER/NAME.mlir.bc with XLA, runs it on the golden inputs and writes FOLDER/NAME.mlir[.bc].xla.safetensors.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.numpy import load_file, save_file
from torch import nn

from warpforge import trace


class Block(nn.Module):
    """A causal transformer block over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.before, self.after = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The states after the block."""
        x = self.embed(ids)
        heads = self.qkv(self.before(x)).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class Convolutions(nn.Module):
    """Convolution, batch norm, pooling and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8)
        self.depthwise, self.out = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Linear(8, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Scores of classes."""
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.conv(image))), 3, 2, 1)
        return self.out(nn.functional.adaptive_avg_pool2d(nn.functional.hardswish(self.depthwise(x)), 1).flatten(1))


class Functions(nn.Module):
    """Functions that StableHLO has no operation for, on numbers above one."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        """One tensor for each function."""
        inside = 1 / x
        return [
            *(function(inside) for function in (torch.acos, torch.asin, torch.atanh, torch.erfinv, torch.tan)),
            *(function(x) for function in (torch.acosh, torch.asinh, torch.atan, torch.cosh, torch.sinh)),
            *(function(x) for function in (torch.digamma, torch.erf, torch.erfc, torch.lgamma)),
            torch.nextafter(x, inside),
        ]


class Loss(nn.Module):
    """The loss of a model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """Cross entropy of the scores, or of the mean state."""
        scores = self.model(inputs)
        return nn.functional.cross_entropy(scores.flatten(1, -2).mean(1) if scores.dim() > 2 else scores, label)


def export(folder: Path) -> None:
    """Exports the models."""
    torch.manual_seed(0)
    ids, image, label = torch.randint(0, 11, (2, 7)), torch.randn(3, 3, 12, 12), torch.tensor([1, 4, 0])
    trace(Block(), (ids,), output=folder / "block.pt2")
    trace(Block(), (ids,), output=folder / "block_decomposed.pt2", decompose=True)
    trace(Block(), (ids,), output=folder / "block_dynamic.pt2", dynamic=["batch=0:2:8", "length=1:2:64"])
    trace(Convolutions(), (image,), output=folder / "convolutions.pt2")
    trace(Functions(), (torch.rand(4, 50) * 3 + 1.01,), output=folder / "functions.pt2")
    trace(Loss(Block()), (ids, label[:2]), output=folder / "block_train.pt2", train=True)
    trace(Loss(Convolutions().train()), (image, label), output=folder / "convolutions_train.pt2", train=True)


def run(folder: Path) -> None:
    """Runs every module in XLA."""
    import jax  # noqa: PLC0415 (needed for this only, and slow to import)
    from jaxlib import _jax, xla_client  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    client = jax.devices("cpu")[0].client
    devices = _jax.DeviceList(tuple(jax.devices("cpu")[:1]))
    names: dict[str, list[str]] = json.loads((folder / "inputs.json").read_text())
    for file, inputs in names.items():
        given = load_file(folder / f"{file.partition('.')[0]}.golden" / "inputs.safetensors")
        executable = client.compile_and_load(_module(folder / file), devices, xla_client.CompileOptions())
        results = executable.execute_sharded([jax.device_put(given[name]) for name in inputs])
        arrays = [shards[0] for shards in results.disassemble_into_single_device_arrays()]
        # A copy of each: the format wants memory of its own.
        save_file(
            {str(at): jax.device_get(array).copy() for at, array in enumerate(arrays)},
            folder / f"{file}.xla.safetensors",
        )


def _module(path: Path) -> Any:  # noqa: ANN401 (text, or jaxlib's own module)
    if path.suffix != ".bc":
        return path.read_text()
    from jaxlib.mlir import ir  # noqa: PLC0415
    from jaxlib.mlir.dialects import stablehlo  # noqa: PLC0415

    context = ir.Context()
    return str(stablehlo.deserialize_portable_artifact(context, path.read_bytes()))


if __name__ == "__main__":
    {"export": export, "run": run}[sys.argv[1]](Path(sys.argv[2]))
