"""Operations of quantized models: torchao's, `torch.ao`'s and ATen's products of codes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import torch
import torch.ao.quantization.fx._decomposed
import torchao.quantization.quant_primitives
from calls import Call
from samples import call, integers, normal, samples, uniform

aten, decomposed, torchao = torch.ops.aten, torch.ops.quantized_decomposed, torch.ops.torchao
# The operators are registered when the packages are imported.
assert torchao.quantize_affine
F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
I8, U8, I16, I32, I64 = torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
MAPPINGS = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")
# One block for a tensor of 4 by 6, for each row, for each column, for groups of rows, for tiles.
BLOCKS = ([4, 6], [1, 6], [4, 1], [1, 3], [2, 3])


def halves(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Multiples of a quarter: many are as near to one whole number as to the next."""
    return (torch.randint(-40, 40, shape) / 4).to(dtype)


def scales(*shape: int, dtype: torch.dtype = F32) -> torch.Tensor:
    """Powers of two."""
    return 2.0 ** torch.randint(-4, 2, shape).to(dtype)


def counts(block: list[int]) -> list[int]:
    """How many blocks a tensor of 4 by 6 has along its dimensions."""
    return [size // part for size, part in zip((4, 6), block, strict=True)]


@samples
def chosen_blocks() -> Iterator[Call]:
    """Scales and zero points of blocks."""
    choose = torchao.choose_qparams_affine.default
    for mapping in MAPPINGS:
        for block in BLOCKS:
            yield call(choose, normal(4, 6), mapping, block, I8)
        yield call(choose, normal(4, 6, dtype=BF16), mapping, [1, 6], I8, scale_dtype=F32, zero_point_dtype=I8)
        yield call(choose, normal(4, 6), mapping, [1, 3], I8, -8, 7, 1e-3, F32, I64, keepdim=True)
        yield call(choose, torch.zeros(4, 6), mapping, [1, 6], I8, eps=torch.finfo(F32).eps, keepdim=True)
    yield call(choose, uniform(4, 6) + 1, "ASYMMETRIC", [1, 6], U8, 0, 15, 1e-6, BF16, F32)
    yield call(choose, normal(2, 3, 4, dtype=F16), "SYMMETRIC", [1, 1, 4], I8, -127, 127)


@samples
def quantized_blocks() -> Iterator[Call]:
    """Codes of blocks, and what they stand for."""
    quantize, dequantize = torchao.quantize_affine.default, torchao.dequantize_affine.default
    for block in BLOCKS:
        number = counts(block)
        scale, zero = scales(*number), integers(9, *number, low=-8, dtype=I32)
        yield call(quantize, halves(4, 6), block, scale, zero, I8)
        yield call(quantize, normal(4, 6), block, uniform(*number) + 0.01, zero, I8, -8, 7)
        yield call(quantize, halves(4, 6, dtype=BF16), block, scale.to(BF16), zero.to(I8), I8)
        codes = integers(127, 4, 6, low=-128, dtype=I8)
        yield call(dequantize, codes, block, uniform(*number), zero, I8)
        yield call(dequantize, codes, block, uniform(*number), None, I8, output_dtype=BF16)
        yield call(dequantize, codes, block, uniform(*number).to(BF16), zero.to(I8), I8, -8, 7, output_dtype=BF16)
    yield call(quantize, normal(4, 6) * 40, [1, 6], uniform(4) + 0.1, integers(200, 4, dtype=I64), U8, 3, 250)
    yield call(dequantize, integers(255, 4, 6, dtype=U8), [1, 6], uniform(4), integers(200, 4), U8, output_dtype=F16)


@samples
def scaled_floats() -> Iterator[Call]:
    """Scaled floats of 8 bits."""
    choose = torchao.choose_scale_float8.default
    quantize = torchao.quantize_affine_float8_non_decomposed.default
    dequantize = torchao.dequantize_affine_float8_non_decomposed.default
    for block in BLOCKS:
        yield call(choose, normal(4, 6), block)
        scale = uniform(*counts(block)) / 100
        yield call(quantize, normal(4, 6), scale)
        yield call(dequantize, normal(4, 6).to(E4M3), scale)
    yield call(choose, normal(4, 6, dtype=BF16), [1, 6], E5M2, F32, 0.5, 2.0)
    yield call(choose, normal(4, 6), [1, 6], E4M3, torch.float8_e8m0fnu)
    yield call(quantize, normal(4, 6, dtype=BF16), scales(4, 1) / 64, E5M2)
    yield call(quantize, normal(4, 6), torch.tensor(0.001))
    yield call(dequantize, normal(4, 6).to(E5M2), scales(1, 1), BF16)


@samples
def quantized_tensors() -> Iterator[Call]:
    """One scale and zero point for a tensor, as numbers and as tensors."""
    quantize, dequantize = decomposed.quantize_per_tensor, decomposed.dequantize_per_tensor
    for dtype, low, high in ((I8, -128, 127), (U8, 0, 255), (I16, -400, 300), (I32, -9, 9), (E4M3, -448, 448)):
        codes = halves(3, 4).round().clamp(low, high).to(dtype)
        for scale, zero in ((0.25, 3), (0.0173, -2)):
            given = (torch.tensor([scale], dtype=torch.float64), torch.tensor([zero]))
            bounds = (torch.tensor(low), torch.tensor(high))
            for x in (halves(3, 4), normal(3, 4) * 9, halves(3, 4, dtype=BF16)):
                yield call(quantize.default, x, scale, zero, low, high, dtype)
            yield call(quantize.tensor, halves(3, 4), *given, low, high, dtype)
            yield call(quantize.tensor2, halves(3, 4), *given, *bounds, dtype)
            yield call(dequantize.default, codes, scale, zero, low, high, dtype)
            yield call(dequantize.tensor, codes, *given, low, high, dtype)
            yield call(dequantize.tensor2, codes, *given, *bounds, dtype)
    yield call(dequantize.default, integers(127, 3, 4, dtype=I8), 0.1, 5, -128, 127, I8, out_dtype=BF16)
    yield call(decomposed.convert_element_type.no_fuse, normal(3, 4), BF16)
    yield call(decomposed.convert_element_type.no_fuse, integers(9, 3, 4, dtype=I8), F32)


@samples
def quantized_channels() -> Iterator[Call]:
    """A scale and a zero point for each channel, and for groups of rows."""
    quantize, dequantize = decomposed.quantize_per_channel.default, decomposed.dequantize_per_channel.default
    for axis, size in ((0, 3), (1, 4), (2, 2)):
        scale, zero = uniform(size) + 0.05, integers(5, size, low=-5)
        yield call(quantize, halves(3, 4, 2), scale, zero, axis, -128, 127, I8)
        yield call(quantize, halves(3, 4, 2, dtype=BF16), scale.double(), zero.to(I32), axis, -7, 7, I8)
        codes = integers(127, 3, 4, 2, low=-128, dtype=I8)
        yield call(dequantize, codes, scale, zero, axis, -128, 127, I8)
        yield call(dequantize, codes, scale, None, axis, -128, 127, I8, out_dtype=BF16)
        yield call(dequantize, codes.to(U8), scale.double(), zero.to(I32), axis, 0, 255, U8)
    quantize = decomposed.quantize_per_channel_group.default
    dequantize = decomposed.dequantize_per_channel_group.default
    for group, number in ((3, 2), (6, 1)):
        scale, zero = uniform(4, number) + 0.05, integers(5, 4, number, low=-5, dtype=I32)
        yield call(quantize, halves(4, 6), scale, zero, -8, 7, I8, group)
        codes = integers(8, 4, 6, low=-8, dtype=I8)
        yield call(dequantize, codes, scale, zero, -8, 7, I8, group, F32)
        yield call(dequantize, codes, scale.to(BF16), zero.to(I8), -8, 7, I8, group, BF16)
        yield call(dequantize, codes, scale, None, -8, 7, I8, group, F16)
    yield call(quantize, halves(4, 6), uniform(4, 1) + 0.05, integers(5, 4, 1), -8, 7, I8, 128)


@samples
def quantized_tokens() -> Iterator[Call]:
    """A scale and a zero point for each row."""
    quantize, dequantize = decomposed.quantize_per_token.default, decomposed.dequantize_per_token.default
    for dtype in (F32, torch.float64):
        scale, zero = (uniform(2, 3, 1) + 0.05).to(dtype), integers(5, 2, 3, 1, low=-5)
        yield call(quantize, halves(2, 3, 4), scale, zero, -128, 127, I8)
        codes = integers(127, 2, 3, 4, low=-128, dtype=I8)
        yield call(dequantize, codes, scale, zero, -128, 127, I8, F32)
        yield call(dequantize, codes, scale, zero, -128, 127, I8, BF16)


@samples
def chosen_ranges() -> Iterator[Call]:
    """Scales and zero points of `torch.ao`, of tensors and of rows."""
    for choose in (decomposed.choose_qparams.tensor, decomposed.choose_qparams_symmetric.tensor):
        for x in (normal(3, 4), normal(3, 4, dtype=BF16), uniform(3, 4) + 1, torch.zeros(2)):
            yield call(choose, x, -128, 127, 1.1920928955078125e-07, I8)
            yield call(choose, x, 0, 255, 0.01, U8)
    asymmetric = decomposed.choose_qparams_per_token_asymmetric.default
    for x in (normal(2, 3, 4), normal(3, 4, dtype=BF16), uniform(3, 4) + 1, -uniform(3, 4), torch.zeros(2, 3)):
        yield call(decomposed.choose_qparams_per_token.default, x, I8)
        yield call(asymmetric, x, I8)
        yield call(decomposed._choose_qparams_per_token_asymmetric_impl.default, x, I8)
    yield call(decomposed.choose_qparams_per_token.default, normal(3, 4, dtype=F16), I8)


@samples
def fake_codes() -> Iterator[Call]:
    """Floats rounded to what codes can hold."""
    channels = aten.fake_quantize_per_channel_affine.default
    whole = aten.fake_quantize_per_tensor_affine
    for x in (halves(3, 4), normal(3, 4) * 9):
        scale, zero = uniform(4) + 0.05, integers(5, 4, low=-5, dtype=I32)
        yield call(channels, x, scale, zero, 1, -8, 7)
        yield call(decomposed.fake_quant_per_channel.default, x, scale, zero, 1, -8, 7)
        yield call(whole.default, x, 0.25, 3, 0, 15)
        yield call(whole.tensor_qparams, x, torch.tensor([0.3]), torch.tensor([-1], dtype=I32), -8, 7)
    yield call(whole.default, halves(3, 4, dtype=BF16), 0.25, 3, 0, 15)


@samples
def products_of_codes() -> Iterator[Call]:
    """Products of codes."""
    for m, k, n in ((2, 3, 4), (5, 8, 1)):
        left, right = (integers(127, *shape, low=-128, dtype=I8) for shape in ((m, k), (k, n)))
        yield call(aten._int_mm.default, left, right)
        yield call(aten._int_mm.default, left, right.t().contiguous().t())
    for dtype in (F32, BF16, F16):
        codes = integers(127, 16, 32, low=-128, dtype=I8)
        yield call(aten._weight_int8pack_mm.default, normal(3, 32, dtype=dtype), codes, uniform(16).to(dtype))


@samples
def scaled_products() -> Iterator[Call]:
    """Scaled products of floats of 8 bits."""
    product = aten._scaled_mm.default
    left, right = normal(16, 32).to(E4M3), normal(16, 32).to(E4M3).t()
    one = torch.tensor(0.25), torch.tensor(0.5)
    for dtype in (F32, BF16):
        yield call(product, left, right, *one, out_dtype=dtype)
        yield call(product, left, right, *one, bias=normal(16, dtype=dtype), out_dtype=dtype)
    rows = uniform(16, 1), uniform(1, 16)
    instead = lambda a, b, s, t, out_dtype: ((a.float() @ b.float()) * s * t).to(out_dtype)  # noqa: E731
    # PyTorch has kernels for scales of rows and columns on GPUs only.
    yield Call(product, (left, right, *rows), {"out_dtype": BF16}, instead=instead)


def _tiled(packed: torch.Tensor, tiles: int) -> torch.Tensor:
    """What PyTorch's kernel for NVIDIA's GPUs packs, word by word: its threads and tiles one after the other."""
    rows, half = packed.shape
    words = torch.zeros(rows // 8, half // (8 * tiles), 32, tiles // 2, dtype=torch.int64)
    for tile, step, thread, word in itertools.product(*map(range, words.shape)):
        row, start = packed[8 * tile + thread // 4].to(torch.int64), (step * tiles + 2 * word) * 8 + thread % 4
        for at, byte in enumerate(row[start + offset] for offset in (0, 4, 8, 12)):
            words[tile, step, thread, word] |= (byte >> 4) << (4 * at) | (byte & 15) << (16 + 4 * at)
    return (words - ((words >> 31) << 32)).to(torch.int32)


def _restored(codes: torch.Tensor, x: torch.Tensor, _: torch.Tensor, group: int, factors: torch.Tensor) -> torch.Tensor:
    """A product with what codes stand for."""
    scale, zero = (factors[:, :, at].t().float().repeat_interleave(group, 1) for at in (0, 1))
    return (x.float() @ ((codes - 8) * scale + zero).t()).to(x.dtype)


@samples
def tiled_weights() -> Iterator[Call]:
    """Weights of 4 bits in the layout of NVIDIA's GPUs, which PyTorch has no kernels for on CPUs."""
    for tiles, rows, depth in ((2, 16, 64), (4, 8, 128), (8, 8, 128)):
        codes = integers(16, rows, depth, dtype=torch.int32)
        packed = (codes[:, ::2] << 4 | codes[:, 1::2]).to(torch.uint8)
        yield Call(aten._convert_weight_to_int4pack.default, (packed, tiles), instead=_tiled)
        factors = torch.stack([uniform(depth // 32, rows), normal(depth // 32, rows)], 2).to(BF16)
        arguments = normal(3, depth, dtype=BF16), _tiled(packed, tiles), 32, factors
        yield Call(aten._weight_int4pack_mm.default, arguments, instead=partial(_restored, codes))
