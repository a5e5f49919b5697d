"""The workloads of `cargo xtask peers gpu`: functions and models with their inputs, on any device."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import quantized
import torch

F = torch.nn.functional
BF16 = torch.bfloat16


@dataclass
class Workload:
    """What runs: a module with its inputs."""

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    # Whether loss and gradients are what it gives.
    training: bool = False
    # What PyTorch runs instead of the module, where that has quantized weights: made from the module on the GPU.
    quantized: Callable[[torch.nn.Module], Callable[..., torch.Tensor]] | None = None


class Function(torch.nn.Module):
    """A function of tensors; what else it needs are buffers."""

    def __init__(self, function: Callable[..., torch.Tensor], **buffers: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The function's value."""
        return self.function(*inputs, **dict(self.named_buffers()))


class Part(torch.nn.Module):
    """One output of a transformer."""

    def __init__(self, model: torch.nn.Module, part: str, **fixed: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.model, self.part, self.fixed = model, part, fixed

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The part."""
        return getattr(self.model(*inputs, **self.fixed), self.part)


class Question(torch.nn.Module):
    """The loss of a BERT that answers questions."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """The loss of answers that begin at `start` and are two words long."""
        return self.model(ids, attention_mask=mask, start_positions=start, end_positions=start + 1).loss


def _random(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, dtype=dtype)


def _chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.relu(x) * y + 0.5) * torch.sigmoid(x)


def _bert(**more: Any) -> Any:  # noqa: ANN401
    from transformers import BertConfig  # noqa: PLC0415 (only some workloads need it)

    sizes = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
    return BertConfig(**sizes, **more)


def _tokens(most: int, *sizes: int) -> torch.Tensor:
    return torch.randint(0, most, sizes)


def _elementwise() -> Workload:
    return Workload(Function(_chain), (_random(8192, 8192), _random(8192, 8192)))


def _norm_softmax() -> Workload:
    return Workload(Function(lambda x: torch.softmax(F.layer_norm(x, (1024,)), -1)), (_random(32768, 1024),))


def _linear_gelu() -> Workload:
    weight, bias = _random(4096, 1024, dtype=BF16) * 0.02, _random(4096, dtype=BF16)
    module = Function(lambda x, weight, bias: F.gelu(F.linear(x, weight, bias)), weight=weight, bias=bias)
    return Workload(module, (_random(8192, 1024, dtype=BF16),))


def _heads() -> tuple[torch.Tensor, ...]:
    return tuple(_random(8, 16, 2048, 64, dtype=BF16) for _ in range(3))


def _attention() -> Workload:
    return Workload(Function(F.scaled_dot_product_attention), _heads())


def _unfused() -> Workload:
    return Workload(Function(lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v), _heads())


def _convolution() -> Workload:
    weight, scale, shift = _random(256, 256, 3, 3) * 0.02, _random(256), _random(256)

    def function(
        x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, variance: torch.Tensor, shift: torch.Tensor
    ) -> torch.Tensor:
        return F.relu(F.batch_norm(F.conv2d(x, weight, padding=1), shift, variance, scale, shift))

    module = Function(function, weight=weight, scale=scale, variance=scale.abs(), shift=shift)
    return Workload(module, (_random(64, 256, 28, 28),))


def _bert_inputs() -> tuple[torch.Tensor, ...]:
    ids = _tokens(30000, 8, 384)
    return ids, torch.ones_like(ids)


def _bert_f32() -> Workload:
    from transformers import BertModel  # noqa: PLC0415

    return Workload(Part(BertModel(_bert()), "last_hidden_state"), _bert_inputs())


def _bert_bf16() -> Workload:
    made = _bert_f32()
    return Workload(made.module.to(BF16), made.inputs)


def _resnet() -> Workload:
    import torchvision  # noqa: PLC0415

    return Workload(torchvision.models.resnet50(weights=None), (_random(32, 3, 224, 224),))


def _llama() -> Workload:
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415

    sizes = {"num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8}
    config = LlamaConfig(**sizes, intermediate_size=8192, vocab_size=128256)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = LlamaForCausalLM(config).to(BF16).cpu()
    return Workload(Part(model, "logits", use_cache=False), (_tokens(128000, 1, 2048),))


def _training() -> Workload:
    from transformers import BertForQuestionAnswering  # noqa: PLC0415

    config = _bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    start = torch.zeros(8, dtype=torch.long)
    return Workload(Question(BertForQuestionAnswering(config)), (*_bert_inputs(), start), training=True)


def _product(size: int, dtype: torch.dtype) -> Workload:
    return Workload(Function(torch.matmul), (_random(size, size, dtype=dtype), _random(size, size, dtype=dtype)))


def _quantized(recipe: str, m: int, n: int, k: int) -> Workload:
    linear = torch.nn.Linear(k, n, bias=False, dtype=BF16)
    # About one channel in a hundred is eight times as large, as in language models.
    x = _random(m, k, dtype=BF16)
    x[:, ::97] *= 8
    return Workload(linear, (x,), quantized=lambda module: quantized.RECIPES[recipe](module.weight.detach()))


def _scaled_product(m: int, n: int, k: int) -> Workload:
    weight, x = _random(n, k).to(quantized.F8), _random(m, k).to(quantized.F8)
    scales = torch.rand(n) + 0.5, torch.rand(m, 1) + 0.5

    def function(x: torch.Tensor, own: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(x, weight.t(), own, scale, out_dtype=BF16, use_fast_accum=False)

    return Workload(Function(function, weight=weight, scale=scales[0][None, :]), (x, scales[1]))


ALL: dict[str, Callable[[], Workload]] = {
    "elementwise_chain_64M_f32": _elementwise,
    "layernorm_softmax_32768x1024_f32": _norm_softmax,
    "linear_gelu_8192x1024x4096_bf16": _linear_gelu,
    "attention_8x16x2048x64_bf16_sdpa": _attention,
    "attention_8x16x2048x64_bf16_unfused": _unfused,
    "conv_bn_relu_64x256x28_f32": _convolution,
    "bert_large_infer_b8_s384_tf32": _bert_f32,
    "bert_large_infer_b8_s384_bf16": _bert_bf16,
    "resnet50_infer_b32_tf32": _resnet,
    "llama_1b_prefill_b1_s2048_bf16": _llama,
    "bert_large_train_b8_s384_tf32": _training,
    "matmul_8192_bf16": lambda: _product(8192, BF16),
    "matmul_4096_f32": lambda: _product(4096, torch.float32),
}

# Rows, columns, depth, after a recipe or what else is measured.
SHAPED = re.compile(r"(.+)_(\d+)x(\d+)x(\d+)")


def make(name: str) -> Workload:
    """A workload, always the same numbers."""
    torch.manual_seed(0)
    shaped = SHAPED.fullmatch(name)
    if shaped:
        kind, *sizes = shaped.groups()
        sizes = [int(size) for size in sizes]
        made = _scaled_product(*sizes) if kind == "scaled_product" else _quantized(kind, *sizes)
    else:
        made = ALL[name]()
    made.module.train(made.training)
    return made
