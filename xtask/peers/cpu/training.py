"""Training steps: models that give a loss, and what one step computes: the loss and the gradient of each parameter."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

Inputs = tuple[torch.Tensor, ...]

# Outputs smaller than this part of the largest are measured by that.
SMALL = 1e-3


class Loss(nn.Module):
    """A model whose value is its loss."""

    def __init__(self, model: nn.Module, loss: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        return self.loss(self.model, *inputs)


class Recurrent(nn.Module):
    """A language model of two layers of LSTM cells."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The logits of every position."""
        return self.head(self.layers(self.embedding(tokens))[0])


def _next_word(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _bert() -> tuple[Loss, Inputs]:
    from transformers import BertConfig, BertForQuestionAnswering  # noqa: PLC0415 (seconds to import)

    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

    def loss(model: nn.Module, tokens: torch.Tensor, mask: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        found = model(input_ids=tokens, attention_mask=mask, start_positions=answer, end_positions=answer)
        return found.loss

    tokens = torch.randint(0, config.vocab_size, (8, 128))
    return Loss(BertForQuestionAnswering(config), loss), (tokens, torch.ones_like(tokens), torch.randint(0, 128, (8,)))


def _resnet() -> tuple[Loss, Inputs]:
    import torchvision  # noqa: PLC0415

    def loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(images), labels)

    return Loss(torchvision.models.resnet18(), loss), (torch.randn(16, 3, 224, 224), torch.randint(0, 1000, (16,)))


def _llama() -> tuple[Loss, Inputs]:
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415

    sizes = {"num_hidden_layers": 8, "hidden_size": 512, "intermediate_size": 1408, "vocab_size": 32000}
    config = LlamaConfig(**sizes, num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=512)

    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return _next_word(model(input_ids=tokens, use_cache=False).logits, tokens)

    return Loss(LlamaForCausalLM(config), loss), (torch.randint(0, 32000, (4, 128)),)


def _lstm() -> tuple[Loss, Inputs]:
    def loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        return _next_word(model(tokens), tokens)

    return Loss(Recurrent(10000, 512), loss), (torch.randint(0, 10000, (16, 64)),)


STEPS: dict[str, Callable[[], tuple[Loss, Inputs]]] = {
    "bert_base_step_b8_s128": _bert,
    "resnet18_step_b16": _resnet,
    "llama_60m_step_b4_s128": _llama,
    "lstm_step_b16_s64": _lstm,
}


def results(module: Loss, run: Callable[..., torch.Tensor], inputs: Inputs) -> tuple[torch.Tensor, ...]:
    """What a step computes: running statistics, the loss, and the gradient of each parameter."""
    with torch.enable_grad():
        loss = run(*inputs)
        gradients = torch.autograd.grad(loss, [*module.parameters()])
    return (*(buffer for _, buffer in _statistics(module)), loss.detach(), *gradients)


def _statistics(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    """What a step changes beside the parameters."""
    layers = [(name, part) for name, part in module.named_modules() if isinstance(part, _BatchNorm)]
    return [(f"{name}.{own}", buffer) for name, layer in layers for own, buffer in layer.named_buffers()]


def least_scale(outputs: list[torch.Tensor]) -> float:
    """The scale by which differences of small outputs are measured."""
    return SMALL * max(output.abs().max().item() for output in outputs if output.is_floating_point())


def export(module: Loss, inputs: Inputs) -> tuple[Any, list[torch.Tensor]]:
    """The step as a program, and what its outputs are in f64, in their order."""
    from torch.export.experimental import _export_forward_backward  # noqa: PLC0415
    from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415

    # The decomposition of fused attention on CPUs gives wrong gradients; the plain form's are right.
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        program = _export_forward_backward(torch.export.export(module, inputs))
    exact = copy.deepcopy(module).double()
    wide = tuple(value.double() if value.is_floating_point() else value for value in inputs)
    outputs = [output.clone() for output in results(exact, exact, wide)]
    names = [*(name for name, _ in _statistics(module)), None, *(name for name, _ in module.named_parameters())]
    found = [spec.target for spec in program.graph_signature.output_specs]
    if found != names:
        raise ValueError(f"the program's outputs are {found}, not {names}")
    return program, outputs
