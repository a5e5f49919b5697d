"""Records what PyTorch's optimizers make of given gradients: `python record.py > cases.json`.

Needs torch and transformers (for the schedules with warm-up). Every case has its own seed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

import torch
import transformers
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler, StepLR
from transformers import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

RUNS = 12
SHAPES = {"layer.weight": (2, 3), "layer.bias": (3,)}
Schedule = Callable[[Optimizer], LRScheduler]

# Recipe, optimizer of groups (with decay, without), schedule, largest norm, runs for each update, element type.
CASES: list[tuple[str, Callable[..., Optimizer], Schedule | None, float | None, int, torch.dtype]] = [
    ("sgd,lr=0.1", lambda g: SGD(g, lr=0.1), None, None, 1, torch.float32),
    (
        "sgd,lr=0.1,momentum=0.9,weight-decay=0.05",
        lambda g: SGD(g, lr=0.1, momentum=0.9, weight_decay=0.05),
        None,
        None,
        1,
        torch.float32,
    ),
    (
        "sgd,lr=0.1,momentum=0.9,dampening=0.3",
        lambda g: SGD(g, lr=0.1, momentum=0.9, dampening=0.3),
        None,
        None,
        1,
        torch.float32,
    ),
    (
        "sgd,lr=0.1,momentum=0.9,nesterov",
        lambda g: SGD(g, lr=0.1, momentum=0.9, nesterov=True),
        None,
        None,
        1,
        torch.float32,
    ),
    (
        "sgd,lr=0.1,schedule=step,every=3,gamma=0.5",
        lambda g: SGD(g, lr=0.1),
        lambda o: StepLR(o, 3, 0.5),
        None,
        1,
        torch.float32,
    ),
    ("adam,lr=0.01", lambda g: Adam(g, lr=0.01), None, None, 1, torch.float32),
    ("adam,lr=0.01", lambda g: Adam(g, lr=0.01), None, None, 1, torch.float64),
    (
        "adam,lr=0.01,betas=0.8:0.95,eps=1e-6,weight-decay=0.1",
        lambda g: Adam(g, lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
        None,
        None,
        1,
        torch.float32,
    ),
    (
        "adam,lr=0.01,schedule=cosine,warmup=3,total=10",
        lambda g: Adam(g, lr=0.01),
        lambda o: get_cosine_schedule_with_warmup(o, 3, 10),
        None,
        1,
        torch.float32,
    ),
    ("adamw,lr=0.01", lambda g: AdamW(g, lr=0.01), None, None, 1, torch.float32),
    (
        "adamw,lr=0.01,weight-decay=0.2,no-decay=bias,clip=0.5,schedule=linear,warmup=2,total=10",
        lambda g: AdamW(g, lr=0.01, weight_decay=0.2),
        lambda o: get_linear_schedule_with_warmup(o, 2, 10),
        0.5,
        1,
        torch.float32,
    ),
    (
        "adamw,lr=0.01,clip=2,accumulate=3,warmup=2",
        lambda g: AdamW(g, lr=0.01),
        lambda o: get_constant_schedule_with_warmup(o, 2),
        2.0,
        3,
        torch.float32,
    ),
]


def flat(tensors: Sequence[torch.Tensor]) -> dict[str, list[float]]:
    """The elements of the parameters, by name."""
    return {name: tensor.detach().flatten().tolist() for name, tensor in zip(SHAPES, tensors, strict=True)}


def record(seed: int, case: tuple) -> dict:
    """Runs one case."""
    recipe, make, schedule, most, every, dtype = case
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: [torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES.values()]  # noqa: E731
    parameters = [torch.nn.Parameter(tensor) for tensor in draw()]
    initial = flat(parameters)
    groups = [{"params": parameters[:1]}, {"params": parameters[1:]}]
    if "no-decay" in recipe:
        groups[1]["weight_decay"] = 0.0
    optimizer = make(groups)
    scheduler = schedule(optimizer) if schedule else None
    runs = []
    for run in range(RUNS):
        gradients = draw()
        for parameter, gradient in zip(parameters, gradients, strict=True):
            share = gradient / every
            parameter.grad = share if parameter.grad is None else parameter.grad + share
        norm = None
        if (run + 1) % every == 0:
            if most is not None:
                norm = torch.nn.utils.clip_grad_norm_(parameters, most).item()
            optimizer.step()
            optimizer.zero_grad()
            if scheduler:
                scheduler.step()
        runs.append({"gradients": flat(gradients), "norm": norm, "parameters": flat(parameters)})
    return {"recipe": recipe, "seed": seed, "f64": dtype == torch.float64, "initial": initial, "runs": runs}


def main() -> None:
    """Writes all cases."""
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    cases = [record(seed, case) for seed, case in enumerate(CASES)]
    json.dump({"versions": versions, "shapes": SHAPES, "cases": cases}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
