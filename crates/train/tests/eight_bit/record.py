"""Makes `cases.safetensors`: steps of bitsandbytes' AdamW8bit on a CPU. Run it with bitsandbytes 0.50 and torch 2.15.

    python record.py
"""

from pathlib import Path

import bitsandbytes
import torch
from safetensors.torch import save_file
from torch import nn

STEPS = 6
torch.set_num_threads(1)
torch.manual_seed(0)
# The last block of the large one is not full; the small one keeps its moments in f32.
parameters = {"layer.weight": nn.Parameter(torch.randn(65, 64)), "layer.bias": nn.Parameter(torch.randn(64))}
optimizer = bitsandbytes.optim.AdamW8bit(parameters.values(), lr=1e-3, weight_decay=0.01)
cases = {f"initial.{name}": value.detach().clone() for name, value in parameters.items()}
for step in range(STEPS):
    for name, value in parameters.items():
        # Rows of other sizes, and the first row without a gradient.
        sizes = torch.rand(value.shape[0]) ** 3 * (torch.arange(value.shape[0]) > 0)
        value.grad = torch.randn(value.shape) * sizes.reshape(-1, *[1] * (value.dim() - 1))
        cases[f"{step}.gradient.{name}"] = value.grad.clone()
    optimizer.step()
    for name, value in parameters.items():
        cases[f"{step}.{name}"] = value.detach().clone()
        state = optimizer.state[value]
        cases |= {
            f"{step}.{part}.{name}": state[part].clone()
            for part in ("state1", "absmax1", "state2", "absmax2")
            if part in state
        }
facts = {"torch": torch.__version__, "bitsandbytes": bitsandbytes.__version__}
save_file(cases, Path(__file__).with_name("cases.safetensors"), facts)
