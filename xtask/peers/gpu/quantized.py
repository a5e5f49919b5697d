"""Linear layers of `cargo xtask peers gpu` with quantized weights: PyTorch's own kernels, with the formulas of torchao.

The exported model is the plain layer in bf16, which `warpt run --precision RECIPE` quantizes itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

F = torch.nn.functional
F8 = torch.float8_e4m3fn
F8_MOST = torch.finfo(F8).max
I8_MOST = 127.0
LEAST = torch.finfo(torch.float32).eps
GROUP = 128
# How PyTorch's kernel lays out weights of 4 bits.
INNER_TILES = 8

Layer = Callable[[torch.Tensor], torch.Tensor]


def _scale(values: torch.Tensor, most: float, dim: int | None) -> torch.Tensor:
    """A scale of each row, or of all."""
    size = values.abs()
    largest = size.amax() if dim is None else size.amax(dim, keepdim=True)
    return (largest.float() / most).clamp(min=LEAST)


def _float8(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (values.float() / scale).clamp(-F8_MOST, F8_MOST).to(F8)


def _float8_dynamic(weight: torch.Tensor, dim: int | None) -> Layer:
    scale = _scale(weight, F8_MOST, dim)
    codes = _float8(weight, scale)

    def layer(x: torch.Tensor) -> torch.Tensor:
        own = _scale(x, F8_MOST, dim)
        return torch._scaled_mm(_float8(x, own), codes.t(), own, scale.t(), out_dtype=x.dtype, use_fast_accum=True)

    return layer


def _int8_codes(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = _scale(weight, I8_MOST, 1)
    return (weight.float() / scale).round().clamp(-I8_MOST, I8_MOST).to(torch.int8), scale


def _int8_dynamic(weight: torch.Tensor) -> Layer:
    codes, scale = _int8_codes(weight)

    def layer(x: torch.Tensor) -> torch.Tensor:
        own = _scale(x, I8_MOST, 1)
        rounded = (x.float() / own).round().clamp(-I8_MOST, I8_MOST).to(torch.int8)
        return (torch._int_mm(rounded, codes.t()) * own * scale.t()).to(x.dtype)

    return layer


def _int8_weights(weight: torch.Tensor) -> Layer:
    codes, scale = _int8_codes(weight)
    scale = scale.t().to(weight.dtype)
    return lambda x: F.linear(x, codes.to(x.dtype)) * scale


def _float8_weights(weight: torch.Tensor) -> Layer:
    scale = _scale(weight, F8_MOST, 1)
    codes, scale = _float8(weight, scale), scale.t().to(weight.dtype)
    return lambda x: F.linear(x, codes.to(x.dtype)) * scale


def _int4_weights(weight: torch.Tensor) -> Layer:
    columns, depth = weight.shape
    groups = weight.float().view(columns, depth // GROUP, GROUP)
    low, high = groups.amin(2, keepdim=True), groups.amax(2, keepdim=True)
    scale = ((high - low) / 15).clamp(min=LEAST)
    codes = ((groups - low) / scale).round().clamp(0, 15).view(columns, depth).to(torch.uint8)
    packed = torch._convert_weight_to_int4pack((codes[:, ::2] << 4 | codes[:, 1::2]).contiguous(), INNER_TILES)
    # The kernel counts codes from 8.
    both = torch.cat([scale, low + 8 * scale], 2).transpose(0, 1).contiguous().to(weight.dtype)
    return lambda x: torch._weight_int4pack_mm(x, packed, GROUP, both)


RECIPES: dict[str, Callable[[torch.Tensor], Layer]] = {
    "float8dq-tensor": lambda weight: _float8_dynamic(weight, None),
    "float8dq-row": lambda weight: _float8_dynamic(weight, 1),
    "int8dq": _int8_dynamic,
    "int8wo": _int8_weights,
    "float8wo": _float8_weights,
    f"int4wo-{GROUP}": _int4_weights,
}
