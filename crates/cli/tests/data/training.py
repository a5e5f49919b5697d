"""Makes `whole_step.pt2`, a training step with its optimizer, and `training.json`, the same training by PyTorch.

Run it in this folder, with the package of `python/` installed. Model, weights, batch and seed are those of `step.pt2`.
"""

from __future__ import annotations

import json
from pathlib import Path

import make
import torch
from torch import nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

Tensors = list[torch.Tensor]

STEPS, RATE, DECAY, BETAS, EPS, CLIP, WARMUP, TOTAL = 12, 0.01, 0.1, (0.9, 0.999), 1e-8, 0.5, 3, 20


def prepared() -> tuple[nn.Module, Tensors]:
    """The model and the batch of `step.pt2`."""
    torch.manual_seed(0)
    return make.Step(), [torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])]


def eager() -> dict:
    """The losses, the norms of the gradients and the last parameters of a training loop."""
    model, batch = prepared()
    optimizer = AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, betas=BETAS, eps=EPS)
    factor = lambda step: step / WARMUP if step < WARMUP else (TOTAL - step) / (TOTAL - WARMUP)  # noqa: E731
    schedule = LambdaLR(optimizer, factor)
    losses, norms = [], []
    for _ in range(STEPS):
        loss = model(*batch)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    parameters = {name: value.detach().flatten().tolist() for name, value in model.named_parameters()}
    return {"torch": torch.__version__, "losses": losses, "norms": norms, "parameters": parameters}


def update(
    names: list[str], model: nn.Module, state: list[Tensors], scalars: Tensors, batch: Tensors
) -> tuple[torch.Tensor, torch.Tensor, list[Tensors], torch.Tensor]:
    """Loss and new state of one step: clipping and AdamW as `torch.optim` computes them."""
    step, rate = scalars
    parameters, means, squares = state
    inputs = [value.detach().requires_grad_(True) for value in parameters]
    loss = functional_call(model, dict(zip(names, inputs, strict=True)), tuple(batch))
    gradients = torch.autograd.grad(loss, inputs)
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(value) for value in gradients]))
    factor = torch.clamp(CLIP / (norm + 1e-6), max=1.0)
    step = step + 1
    new: list[Tensors] = [[], [], []]
    for parameter, gradient, mean, square in zip(parameters, gradients, means, squares, strict=True):
        clipped = gradient * factor
        new_mean = torch.lerp(mean, clipped, 1 - BETAS[0])
        new_square = square * BETAS[1] + (1 - BETAS[1]) * clipped * clipped
        spread = new_square.sqrt() / (1 - BETAS[1] ** step).sqrt() + EPS
        change = rate / (1 - BETAS[0] ** step) * new_mean / spread
        for values, value in zip(new, (parameter * (1 - rate * DECAY) - change, new_mean, new_square), strict=True):
            values.append(value)
    return loss.detach(), norm, new, step


class WholeStep(nn.Module):
    """A step that writes to buffers: parameters, moments, and the number of steps."""

    def __init__(self, model: nn.Module, batch: Tensors) -> None:
        super().__init__()
        self.names = [name for name, _ in model.named_parameters()]
        values = [value.detach() for value in model.parameters()]
        self.kinds = ("parameter", "exp_avg", "exp_avg_sq")
        for at, value in enumerate(values):
            for kind, content in zip(self.kinds, (value, *(torch.zeros_like(value) for _ in range(2))), strict=True):
                self.register_buffer(f"{kind}_{at}", content.clone())
        self.register_buffer("step", torch.zeros((), dtype=torch.float64))
        rate = torch.tensor(RATE)
        state = [[getattr(self, f"{kind}_{at}").clone() for at in range(len(values))] for kind in self.kinds]
        run = lambda state, scalars, batch: update(self.names, model, state, scalars, batch)  # noqa: E731
        self.graph = make_fx(run, tracing_mode="fake")(state, [self.step.clone(), rate], batch)

    def forward(self, rate: torch.Tensor, x: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One step of training."""
        count = range(len(self.names))
        state = [[getattr(self, f"{kind}_{at}") for at in count] for kind in self.kinds]
        loss, norm, new, step = self.graph(state, [self.step, rate], [x, label])
        for kind, values in zip(self.kinds, new, strict=True):
            for at, value in zip(count, values, strict=True):
                getattr(self, f"{kind}_{at}").copy_(value)
        self.step.copy_(step)
        return loss, norm


def main() -> None:
    """Writes both."""
    model, batch = prepared()
    program = torch.export.export(WholeStep(model, batch), (torch.tensor(RATE), *batch), strict=False)
    for node in program.graph.nodes:
        node.meta["stack_trace"] = ""
    torch.export.save(program, "whole_step.pt2")
    Path("training.json").write_text(json.dumps(eager()) + "\n")


if __name__ == "__main__":
    main()
