"""Whole models by a recipe: torchao's outputs and ours, each held to PyTorch's in f32.

`python quant_models.py FOLDER NAME THREADS` has one exported model. A request names the recipe and the file of our
outputs; the answer has the measures of both. Where torchao has no CPU kernel for activations in f32, the product is
that of what its quantizers give.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import answers
import files
import quant_engines
import torch
import workloads
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

Measures = dict[str, float]


class Float8(nn.Module):
    """A layer with the product of what float8 operands stand for."""

    def __init__(self, layer: nn.Linear, recipe: str) -> None:
        super().__init__()
        self.recipe, self.bias = recipe, layer.bias
        self.weight = quant_engines.float8(layer.weight, recipe).T

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The product in f64, then as the layer has it."""
        result = (quant_engines.float8(values, self.recipe) @ self.weight).to(values.dtype)
        return result if self.bias is None else result + self.bias


def _four_bits(weights: torch.Tensor, group: int, *, by_hqq: bool) -> torch.Tensor:
    """What torchao's codes of 4 bits stand for, as its `Int4OpaqueTensor` finds them."""
    from torchao.quantization import quant_primitives as primitives  # noqa: PLC0415 (each process only its own)

    block, kind = [1, group], (torch.int32, 0, 15)
    if by_hqq:
        codes, scales, offsets, _ = primitives._choose_qparams_and_quantize_affine_hqq(
            weights, nbits=4, group_size=group, compute_dtype=weights.dtype, device="cpu"
        )
    else:
        mapping = primitives.MappingType.ASYMMETRIC
        scales, offsets = primitives._choose_qparams_affine_tinygemm(
            weights, mapping, block, *kind, 1e-6, None, weights.dtype
        )
        codes = primitives._quantize_affine_tinygemm(weights, block, scales, offsets, *kind)
    return primitives._dequantize_affine_tinygemm(codes.to(torch.int32), block, scales, offsets, *kind)


def _quantized(module: nn.Module, recipe: str) -> nn.Module:
    """The module with all its linear layers quantized; embeddings that share a layer's weights keep them."""
    if recipe == "baseline":
        return module
    module = copy.deepcopy(module)
    grouped = quant_engines.GROUPED.fullmatch(recipe)
    if not grouped and not recipe.startswith("float8dq"):
        quant_engines.eight_bits(module, recipe)
        return module
    for name, layer in list(module.named_modules()):
        if not isinstance(layer, nn.Linear):
            continue
        if grouped:
            weights = _four_bits(layer.weight, int(grouped[1]), by_hqq=grouped[2] is not None)
            layer.weight = nn.Parameter(weights, requires_grad=False)
        else:
            module.set_submodule(name, Float8(layer, recipe))
    return module


def _distance(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def language(found: torch.Tensor, exact: torch.Tensor, tokens: torch.Tensor) -> Measures:
    """Of logits: of the text's next tokens, and against the exact ones at every position."""
    loss = divergence = flips = 0.0
    # A window at a time: in f64 all of them take gigabytes.
    for window, own, theirs in zip(tokens, found, exact, strict=True):
        logs, expected = (functional.log_softmax(logits.double(), -1) for logits in (own, theirs))
        loss += float(functional.nll_loss(logs[:-1], window[1:]))
        divergence += float(functional.kl_div(logs, expected, reduction="batchmean", log_target=True))
        flips += float((own.argmax(-1) != theirs.argmax(-1)).double().mean())
    windows = len(tokens)
    return {
        "perplexity": float(torch.tensor(loss / windows, dtype=torch.float64).exp()),
        "divergence": divergence / windows,
        "flips": 100 * flips / windows,
        "distance": _distance(found, exact),
    }


def sentences(found: torch.Tensor, exact: torch.Tensor, _tokens: torch.Tensor, mask: torch.Tensor) -> Measures:
    """Of hidden states of tokens, and of the means over a sentence, by which the nearest other sentence is found."""
    read = mask.bool()
    own, theirs = (functional.normalize((states * mask[..., None]).sum(1), dim=-1) for states in (found, exact))
    nearest = [(units @ units.T).fill_diagonal_(-1).argmax(-1) for units in (own, theirs)]
    return {
        "distance": _distance(found[read], exact[read]),
        "cosine": float((own * theirs).sum(-1).mean()),
        "flips": 100 * float((nearest[0] != nearest[1]).double().mean()),
    }


class Model:
    """An exported model with its inputs, and PyTorch's outputs in f32."""

    def __init__(self, folder: Path, name: str, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.module, _ = workloads.make(name)
        self.inputs = [torch.from_numpy(values) for values in files.read(files.inputs(folder, name))]
        self.exact = load_file(files.outputs(folder, name))["out0"]
        self.measures: Callable[..., Measures] = sentences if len(self.inputs) > 1 else language

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The measures of both sides, or why there are none."""
        sides = {"torchao": lambda: _quantized(self.module, request["recipe"])(*self.inputs)}
        if request["ours"]:
            sides["ours"] = lambda: next(iter(load_file(request["ours"]).values()))
        return {side: self._measured(outputs) for side, outputs in sides.items()}

    def _measured(self, outputs: Callable[[], torch.Tensor]) -> dict[str, Any]:
        try:
            measures = self.measures(outputs(), self.exact, *self.inputs)
            if not all(map(math.isfinite, measures.values())):
                raise ValueError(f"an output is not a number: {measures}")
            return measures
        except Exception as error:  # the other side has its measures all the same
            return answers.failed(error)


def main() -> None:
    """Answers requests about one model."""
    folder, name, threads = sys.argv[1:]
    answers.serve(lambda: Model(Path(folder), name, int(threads)).answer)


main()
