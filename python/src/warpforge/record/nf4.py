"""NF4 as plain ATen operations: what bitsandbytes' `Linear4bit` computes, over its own packed tensors.

bitsandbytes' module cannot be exported with its gradients. This one can, and it gives the same bits.
"""

from __future__ import annotations

import bitsandbytes as bnb
import torch
from torch import nn
from torch.nn import functional


class PackedLinear(nn.Module):
    """A linear layer whose weight is kept as bitsandbytes packs it: codes of 4 bits, scales of 8 bits."""

    def __init__(self, quantized: bnb.nn.Linear4bit) -> None:
        super().__init__()
        state = quantized.weight.quant_state
        self.in_features, self.out_features = quantized.in_features, quantized.out_features
        self.block, self.scale_block, self.scales = state.blocksize, state.state2.blocksize, state.absmax.numel()
        tensors = {
            "packed": quantized.weight.data.view(-1),
            "code": state.code,
            "scale_codes": state.absmax,
            "scale_map": state.state2.code,
            "scale_absmax": state.state2.absmax,
            "scale_offset": state.offset,
        }
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor.detach().clone().contiguous())

    def weight(self) -> torch.Tensor:
        """The weight in f32."""
        packed = self.packed.to(torch.int32)
        codes = torch.stack([packed >> 4, packed & 15], 1).reshape(-1)
        scales = functional.pad(self.scale_map[self.scale_codes.to(torch.int32)], (0, -self.scales % self.scale_block))
        scales = (scales.view(-1, self.scale_block) * self.scale_absmax[:, None]).reshape(-1)
        scales = scales[: self.scales] + self.scale_offset
        weight = self.code[codes].view(-1, self.block) * scales[:, None]
        return weight.reshape(self.out_features, self.in_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The product with the weight, which is unpacked for it."""
        return functional.linear(x, self.weight())


def quantize(model: nn.Module, targets: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """Puts `Linear4bit` in the place of linear layers whose names end so; gives the weights they had."""
    replaced = {}
    for name, linear in list(model.named_modules()):
        if not isinstance(linear, nn.Linear) or not name.endswith(targets):
            continue
        quantized = bnb.nn.Linear4bit(
            linear.in_features,
            linear.out_features,
            bias=False,
            compute_dtype=torch.float32,
            compress_statistics=True,
            quant_type="nf4",
        )
        weight = linear.weight.detach()
        replaced[name] = weight.clone()
        quantized.weight = bnb.nn.Params4bit(
            weight, requires_grad=False, compress_statistics=True, quant_type="nf4", module=quantized
        )
        parent, _, own = name.rpartition(".")
        # Moving it to a device is what quantizes.
        setattr(model.get_submodule(parent), own, quantized.to("cpu"))
    return replaced


def exportable(model: nn.Module) -> nn.Module:
    """The model with every `Linear4bit` as ATen operations."""
    for name, module in list(model.named_modules()):
        if isinstance(module, bnb.nn.Linear4bit):
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, PackedLinear(module))
    return model
