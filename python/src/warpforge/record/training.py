"""The training loop: nothing but PyTorch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from warpforge.errors import TraceError


class Data(Protocol):
    """What a task gives: batches, and metrics of what the model made of them."""

    train: dict[str, np.ndarray]
    eval: dict[str, np.ndarray]

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]: ...  # noqa: D102
    def evaluation_batch(self, indices: list[int]) -> dict[str, torch.Tensor]: ...  # noqa: D102
    def metrics(self, outputs: dict[str, np.ndarray]) -> tuple[dict[str, float], dict[str, str]]: ...  # noqa: D102


@dataclass
class Shape:
    """How many steps of what: an order of examples, and the schedule's counts."""

    order: list[list[int]]
    steps: int
    warmup: int
    # The steps from which on the learning rate is smaller.
    milestones: list[int] = field(default_factory=list)


@dataclass
class Curve:
    """The numbers of each step."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    grad_norm: list[float] = field(default_factory=list)
    # What the loss is the sum of, where the data name it.
    parts: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def shape(plan: dict[str, Any], examples: int) -> Shape:
    """The order of the data, shuffled anew each epoch, and what the schedule counts."""
    training = plan["training"]
    size, accumulate = training["batch_size"], training["accumulate"]
    batches = examples // size
    if batches == 0:
        raise TraceError(f"the data have {examples} examples, fewer than a batch of {size}", "choose a smaller batch")
    epochs = training["epochs"]
    steps = training.get("steps") or max(batches * epochs // accumulate, 1)
    generator = torch.Generator().manual_seed(training["seed"])
    order: list[list[int]] = []
    while len(order) < steps * accumulate:
        shuffled = torch.randperm(examples, generator=generator).tolist()
        order += [shuffled[at * size : (at + 1) * size] for at in range(batches)]
    warmup = plan["schedule"]["warmup"]
    warmup = round(warmup * steps) if warmup < 1 else int(warmup)
    milestones = [epoch * batches // accumulate for epoch in plan["schedule"].get("milestones", [])]
    return Shape(order[: steps * accumulate], steps, warmup, milestones)


def train(  # noqa: PLR0913 (what a loop is made of)
    model: nn.Module,
    data: Data,
    plan: dict[str, Any],
    run: Shape,
    device: str,
    *,
    before_step: Callable[[int, dict[str, torch.Tensor]], Callable[[], None] | None] | None = None,
    after_step: Callable[[int, Curve], None] | None = None,
    around: Callable[[int], AbstractContextManager[None]] = lambda _run: nullcontext(),
    at_end: Callable[[torch.optim.Optimizer], None] | None = None,
) -> Curve:
    """Trains the model in place.

    before_step: sees the first micro-batch of each step; what it returns is called when the gradients are there.
    after_step: sees the numbers so far.
    around: a context for each forward pass, by its number.
    at_end: sees the optimizer after the last step.
    """
    optimizer = _optimizer(model, plan["optimizer"])
    factor = _factor(plan["schedule"], run)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    accumulate, clip = plan["training"]["accumulate"], plan["optimizer"].get("clip")
    curve = Curve()
    for step in range(run.steps):
        begin = time.perf_counter()
        curve.lr.append(schedule.get_last_lr()[0])
        losses = []
        sums = dict.fromkeys(getattr(data, "parts", ()), 0.0)
        for micro in range(accumulate):
            batch = data.batch(run.order[step * accumulate + micro])
            batch = moved(batch, device)
            observed = before_step(step, batch) if before_step and micro == 0 else None
            with around(step * accumulate + micro):
                returned = model(**batch)
                loss = first(returned)
            (loss / accumulate if accumulate > 1 else loss).backward()
            if observed is not None:
                observed()
            losses.append(loss.item())
            for name in sums:
                sums[name] += returned[name].item() / accumulate
        if not all(math.isfinite(loss) for loss in losses):
            raise TraceError(f"the loss of step {step} is {losses}", "a smaller learning rate, or clipping, may help")
        if clip is not None:
            curve.grad_norm.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        curve.loss.append(_mean(sum(losses) / len(losses)))
        for name, value in sums.items():
            curve.parts.setdefault(name, []).append(value)
        curve.seconds.append(time.perf_counter() - begin)
        if after_step:
            after_step(step, curve)
    if at_end:
        at_end(optimizer)
    return curve


def _mean(value: float) -> float:
    """The mean of a number over all ranks."""
    if not dist.is_available() or not dist.is_initialized():
        return value
    numbers = torch.tensor([value], dtype=torch.float64)
    if dist.get_backend() == "nccl":
        numbers = numbers.cuda()
    dist.all_reduce(numbers)
    return numbers.item() / dist.get_world_size()


def moved(batch: dict[str, Any], device: str) -> dict[str, Any]:
    """The tensors of a batch on a device, lists of them too."""
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda value: value.to(device), batch)


def floats(batch: dict[str, Any], element: torch.dtype) -> dict[str, Any]:
    """A batch whose floats are of a type."""

    def of(value: torch.Tensor) -> torch.Tensor:
        return value.to(element) if value.is_floating_point() else value

    return torch.utils._pytree.tree_map_only(torch.Tensor, of, batch)


def first(returned: object) -> torch.Tensor:
    """The loss: the first tensor that the model returns."""
    return torch.utils._pytree.tree_leaves(returned)[0]


def evaluate(model: nn.Module, data: Data, size: int, device: str) -> dict[str, np.ndarray]:
    """What the model gives for all examples of the evaluation, by name."""
    model.eval()
    found: dict[str, list[np.ndarray]] = {}
    with torch.no_grad():
        for indices in batches(len(next(iter(data.eval.values()))), size):
            batch = {name: value.to(device) for name, value in data.evaluation_batch(indices).items()}
            for name, value in dict(model(**batch)).items():
                if value.dim() > 0:
                    found.setdefault(name, []).append(value.float().cpu().numpy())
    model.train()
    return {name: np.concatenate(values) for name, values in found.items()}


def batches(count: int, size: int) -> Iterator[list[int]]:
    """The numbers below `count` in order, so many at a time."""
    for begin in range(0, count, size):
        yield list(range(begin, min(begin + size, count)))


def _optimizer(model: nn.Module, settings: dict[str, Any]) -> torch.optim.Optimizer:
    decay, spared = settings["weight_decay"], settings["no_decay"]
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for n, p in named if not any(part in n for part in spared)], "weight_decay": decay},
        {"params": [p for n, p in named if any(part in n for part in spared)], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if settings["name"] == "sgd":
        names = ("lr", "momentum", "dampening", "nesterov")
        return torch.optim.SGD(groups, **{name: settings[name] for name in names})
    if settings["name"] == "adamw-8bit":
        import bitsandbytes  # noqa: PLC0415 (only this optimizer needs it)

        return bitsandbytes.optim.PagedAdamW8bit(
            groups, lr=settings["lr"], betas=tuple(settings["betas"]), eps=settings["eps"]
        )
    kind = torch.optim.Adam if settings["name"] == "adam" else torch.optim.AdamW
    return kind(groups, lr=settings["lr"], betas=tuple(settings["betas"]), eps=settings["eps"])


def _factor(schedule: dict[str, Any], run: Shape) -> Callable[[int], float]:
    """The learning rate of a step as a part of the largest, as transformers has it."""
    shape, warmup, total = schedule["shape"], run.warmup, run.steps

    def factor(step: int) -> float:
        if step < warmup:
            return step / max(1, warmup)
        if shape == "linear":
            return max(0.0, (total - step) / max(1, total - warmup))
        if shape == "cosine":
            return max(0.0, 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / max(1, total - warmup))))
        if shape == "step":
            return schedule["gamma"] ** ((step - warmup) // schedule["every"])
        if shape == "milestones":
            return schedule["gamma"] ** sum(step >= milestone for milestone in run.milestones)
        return 1.0

    return factor
