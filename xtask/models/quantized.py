"""Quantized models: torchao's configurations and PT2E, as their users export them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from catalogue import add, unsettle
from torch import nn
from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    MappingType,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

from warpforge import Model

HIDDEN = 64
GROUP = 32
ROWS = 20

CONFIGS: dict[str, Callable[[], object]] = {
    "int8wo": Int8WeightOnlyConfig,
    "int8wo_groups": lambda: Int8WeightOnlyConfig(granularity=PerGroup(GROUP)),
    "int8dq": Int8DynamicActivationInt8WeightConfig,
    "int8dq_asymmetric": lambda: Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC),
    "float8wo": Float8WeightOnlyConfig,
    "int4wo": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(GROUP)),
    "int4wo_packed": lambda: PrototypeInt4WeightOnlyConfig(group_size=GROUP, set_inductor_config=False),
    "int4wo_rows": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerAxis(0)),
    "int8_int4": lambda: Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(GROUP)
    ),
}


def mlp() -> tuple[nn.Module, tuple]:
    """Two linear layers."""
    layers = nn.Sequential(nn.Linear(HIDDEN, 2 * HIDDEN), nn.ReLU(), nn.Linear(2 * HIDDEN, HIDDEN, bias=False))
    return layers, (torch.randn(ROWS, HIDDEN),)


def bert() -> tuple[nn.Module, tuple]:
    """Two layers of BERT."""
    config = BertConfig(
        vocab_size=99,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * HIDDEN,
        attn_implementation="sdpa",
    )
    return BertModel(config, add_pooling_layer=False), (torch.randint(0, 99, (2, 12)),)


def llama() -> tuple[nn.Module, tuple]:
    """Two layers of Llama."""
    config = LlamaConfig(
        vocab_size=96,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=2 * HIDDEN,
        use_cache=False,
    )
    return LlamaForCausalLM(config), (torch.randint(0, 96, (2, 12)),)


def quantized(make: Callable[[], tuple[nn.Module, tuple]], config: Callable[[], object], dtype: torch.dtype) -> Model:
    """A model with quantized weights."""
    module, args = make()
    module = unsettle(module).eval().to(dtype)
    quantize_(module, config())
    args = tuple(arg.to(dtype) if arg.is_floating_point() else arg for arg in args)
    return Model(module, args)


# Activations are quantized while running: in a deep model of f32 one rounding more or less makes another code, and
# PyTorch's own graphs do not agree with each other.
DYNAMIC = ("int8dq", "int8dq_asymmetric", "int8_int4")

for _name, _config in CONFIGS.items():
    for _made in (mlp, bert, llama):
        if _made is not mlp and _name in DYNAMIC:
            continue
        add(
            f"quantized_{_made.__name__}_{_name}",
            lambda made=_made, config=_config: quantized(made, config, torch.float32),
        )
    add(f"quantized_mlp_{_name}_bf16", lambda config=_config: quantized(mlp, config, torch.bfloat16))


class Convolutions(nn.Module):
    """Convolutions with a residual, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The scores of five classes."""
        x = torch.relu(self.first(image))
        x = torch.relu(self.second(x) + x)
        return self.last(x.mean((2, 3)))


def pt2e(*, dynamic: bool) -> Model:
    """A model quantized by PT2E: statically after it has seen its example, or with ranges found while running."""
    module, args = mlp() if dynamic else (Convolutions(), (torch.randn(2, 3, 12, 12),))
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic))
    prepared = prepare_pt2e(torch.export.export(unsettle(module).eval(), args).module(), quantizer)
    prepared(*args)
    return Model(convert_pt2e(prepared), args)


add("quantized_pt2e_convolutions", lambda: pt2e(dynamic=False))
add("quantized_pt2e_dynamic", lambda: pt2e(dynamic=True))
