"""The workloads that warpt and its peers run: each name makes a module and its inputs, the same ones every time."""

from __future__ import annotations

import re
from collections.abc import Callable

import real_models
import torch
import training
import zoo
from torch import nn
from torch.nn import functional

SEED = 0
# The part of inputs whose weights are large.
OUTLIERS = 0.01

Workload = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Function(nn.Module):
    """A function of the inputs and of tensors that are part of the model."""

    def __init__(self, function: Callable[..., torch.Tensor], *constants: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        self.count = len(constants)
        for index, constant in enumerate(constants):
            self.register_buffer(f"constant{index}", constant)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Applies the function."""
        return self.function(*inputs, *(getattr(self, f"constant{index}") for index in range(self.count)))


class Bert(nn.Module):
    """An encoder with its embeddings and pooler; random weights."""

    def __init__(self, layers: int, width: int, inner: int, positions: int) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel  # noqa: PLC0415 (seconds to import, not always needed)

        self.heads = 12
        config = BertConfig(
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=self.heads,
            intermediate_size=inner,
            max_position_embeddings=positions,
        )
        self.model = BertModel(config)
        self.words = config.vocab_size

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The last hidden states and the pooled first one."""
        out = self.model(input_ids=tokens, attention_mask=mask)
        return out.last_hidden_state, out.pooler_output


def _bert(layers: int, width: int, inner: int, batch: int, length: int) -> Workload:
    model = Bert(layers, width, inner, max(512, length))
    tokens = torch.randint(0, model.words, (batch, length))
    return model, (tokens, torch.ones_like(tokens))


def _minilm(batch: int, length: int) -> Workload:
    return _bert(6, 384, 1536, batch, length)


def _llama() -> Workload:
    """A decoder of 8 layers of width 512; random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415

    config = LlamaConfig(
        num_hidden_layers=8,
        hidden_size=512,
        num_attention_heads=8,
        num_key_value_heads=4,
        intermediate_size=1408,
        vocab_size=32000,
        max_position_embeddings=512,
    )
    return real_models.Decoder(LlamaForCausalLM(config)), (torch.randint(0, 32000, (1, 128)),)


def _vision(name: str) -> Workload:
    import torchvision  # noqa: PLC0415

    return getattr(torchvision.models, name)(weights=None), (torch.randn(1, 3, 224, 224),)


def _product(size: int, dtype: torch.dtype) -> Workload:
    operands = (torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype))
    return Function(torch.matmul), operands


def _linear(rows: int, columns: int, inner: int) -> Workload:
    return Function(functional.linear, torch.randn(columns, inner) * 0.02), (torch.randn(rows, inner),)


def _outlier_linear(rows: int, columns: int, inner: int) -> Workload:
    """A layer as trained ones are: about one input in a hundred has weights eight times as large."""
    gains = torch.where(torch.rand(inner) < OUTLIERS, 8.0, 1.0) * inner**-0.5
    return Function(functional.linear, torch.randn(columns, inner) * gains), (torch.randn(rows, inner),)


def _linear_gelu() -> Workload:
    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.gelu(functional.linear(x, weight, bias))

    return Function(function, torch.randn(1024, 1024) * 0.02, torch.randn(1024)), (torch.randn(512, 1024),)


def _conv_bn_relu() -> Workload:
    conv = nn.Conv2d(128, 128, 3, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(128), nn.ReLU()), (torch.randn(4, 128, 28, 28),)


def _attention() -> Workload:
    function = functional.scaled_dot_product_attention
    return Function(function), tuple(torch.randn(4, 8, 256, 64) for _ in range(3))


def _elementwise() -> Workload:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu(x) * y + 0.5) * torch.sigmoid(x)

    return Function(function), (torch.randn(4096, 1024), torch.randn(4096, 1024))


def _norm_softmax() -> Workload:
    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.softmax(functional.layer_norm(x, (1024,), weight, bias), -1)

    return Function(function, torch.ones(1024), torch.zeros(1024)), (torch.randn(4096, 1024),)


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "matmul_2048": lambda: _product(2048, torch.float32),
    "linear_gelu_512x1024x1024": _linear_gelu,
    "conv_bn_relu_4x128x28": _conv_bn_relu,
    "attention_4x8x256x64": _attention,
    "elementwise_chain_4M": _elementwise,
    "layernorm_softmax_4096x1024": _norm_softmax,
    "bert_base_b1_s128": lambda: _bert(12, 768, 3072, 1, 128),
    "resnet50_b1": lambda: _vision("resnet50"),
    "vit_b16_b1": lambda: _vision("vit_b_16"),
    "llama_8x512_b1_s128": _llama,
    "matmul_2048_bf16": lambda: _product(2048, torch.bfloat16),
}


def make(name: str) -> Workload:
    """The module, ready to run, and its inputs. minilm_bB_sS and (outlier_)linear_RxCxI come in any size."""
    if zoo.has(name):
        return zoo.make(name)
    torch.manual_seed(SEED)
    for ready in (training.STEPS, real_models.MODELS):
        if name in ready:
            return ready[name]()
    if sizes := re.fullmatch(r"minilm_b(\d+)_s(\d+)", name):
        module, inputs = _minilm(*map(int, sizes.groups()))
    elif sizes := re.fullmatch(r"linear_(\d+)x(\d+)x(\d+)", name):
        module, inputs = _linear(*map(int, sizes.groups()))
    elif sizes := re.fullmatch(r"outlier_linear_(\d+)x(\d+)x(\d+)", name):
        module, inputs = _outlier_linear(*map(int, sizes.groups()))
    else:
        module, inputs = WORKLOADS[name]()
    return module.eval(), inputs


def is_exact(name: str) -> bool:
    """Whether outputs are held to the module in f64, not to PyTorch's in f32."""
    return name.startswith("outlier_linear_")


def leaves(outputs: torch.Tensor | tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """The outputs as a list."""
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
