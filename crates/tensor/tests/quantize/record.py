"""Makes `cases.safetensors`: what bitsandbytes' quantizers give on a CPU. Run it with bitsandbytes 0.50 and torch 2.15.

    python record.py
"""

from pathlib import Path

import bitsandbytes
import bitsandbytes.functional as bnb
import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.manual_seed(0)
cases = {"map.signed": bnb.create_dynamic_map(signed=True), "map.unsigned": bnb.create_dynamic_map(signed=False)}

# Whole blocks, a last block of scales that is not full, a weight that is 0 in places, and heavy tails.
weights = {
    "square": torch.randn(64, 64) * 0.02,
    "wide": torch.randn(96, 192) * 0.05,
    "zeros": torch.randn(32, 64).where(torch.rand(32, 64) < 0.5, 0.0) * (torch.arange(32) % 3 > 0)[:, None],
    "tails": torch.randn(128, 64) ** 3,
}
for name, weight in weights.items():
    packed, state = bnb.quantize_4bit(weight, blocksize=64, compress_statistics=True, quant_type="nf4")
    cases |= {
        f"nf4.{name}.weight": weight,
        f"nf4.{name}.packed": packed.view(-1),
        f"nf4.{name}.scale_codes": state.absmax,
        f"nf4.{name}.scale_absmax": state.state2.absmax,
        f"nf4.{name}.scale_offset": state.offset.reshape(1),
        f"nf4.{name}.dequantized": bnb.dequantize_4bit(packed, state),
    }

# The last block is not full.
moments = {"signed": torch.randn(1000) * 1e-3, "unsigned": (torch.randn(1000) * 1e-4) ** 2}
for name, values in moments.items():
    codes, absmax = torch.ops.bitsandbytes.quantize_blockwise(values, cases[f"map.{name}"], 256)
    cases |= {f"block.{name}.values": values, f"block.{name}.codes": codes, f"block.{name}.absmax": absmax}

facts = {
    "torch": torch.__version__,
    "bitsandbytes": bitsandbytes.__version__,
    "cpu_capability": torch.backends.cpu.get_cpu_capability(),
}
cases = {name: tensor.contiguous().clone() for name, tensor in cases.items()}
save_file(cases, Path(__file__).with_name("cases.safetensors"), facts)
