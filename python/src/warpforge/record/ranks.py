"""Pass 1 by several ranks: PyTorch's DistributedDataParallel, each process with its part of every batch."""

from __future__ import annotations

import copy
import os
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from warpforge.errors import TraceError
from warpforge.record import models, training
from warpforge.record.dropout import recorded
from warpforge.record.training import Data, Shape

# Seconds that rank 0 waits for the others to end.
PATIENCE = 60


class Part:
    """The data of one rank: the same examples, of each batch its own part."""

    def __init__(self, data: Data, rank: int, ranks: int) -> None:
        self.data, self.rank, self.ranks = data, rank, ranks
        self.train, self.eval = data.train, data.eval
        self.evaluation_batch, self.metrics = data.evaluation_batch, data.metrics

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a training step."""
        return self.data.batch(part(indices, self.rank, self.ranks))


class Arrays:
    """Examples without the task that made them: what another process is given."""

    def __init__(self, train: dict[str, np.ndarray]) -> None:
        self.train, self.eval = train, train

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a training step."""
        return {name: torch.from_numpy(values[indices]) for name, values in self.train.items()}

    evaluation_batch = batch

    def metrics(self, _outputs: dict[str, np.ndarray]) -> tuple[dict[str, float], dict[str, str]]:
        """Other ranks judge nothing."""
        return {}, {}


def part(indices: list[int], rank: int, ranks: int) -> list[int]:
    """The examples of a batch that a rank has."""
    return indices[len(indices) * rank // ranks : len(indices) * (rank + 1) // ranks]


@contextmanager
def group(  # noqa: PLR0913, PLR0917 (what a run is made of)
    plan: dict[str, Any],
    model: nn.Module,
    data: Data,
    run: Shape,
    device: str,
    vocabulary_size: int,
    masks: Path | None,
) -> Iterator[tuple[nn.Module, nn.Module, Data]]:
    """Starts the other ranks; within, what rank 0 trains, the model inside of it, and the data of rank 0.

    masks: the folder in which the other ranks keep the masks that dropout draws, where it draws any.
    """
    ranks = plan["training"].get("ranks", 1)
    if ranks == 1:
        yield model, model, data
        return
    if device != "cpu" and torch.cuda.device_count() < ranks:
        raise TraceError(f"{ranks} ranks need as many GPUs, there are {torch.cuda.device_count()}")
    port = _free_port()
    threads = torch.get_num_threads()
    state = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    count = len(next(iter(data.train.values())))
    examples = {name: value.numpy() for name, value in data.batch(list(range(count))).items()}
    context = mp.get_context("spawn")
    others = [
        context.Process(
            target=_work,
            args=(rank, ranks, port, plan, examples, run, state, device, vocabulary_size, masks),
            daemon=True,
        )
        for rank in range(1, ranks)
    ]
    for other in others:
        other.start()
    _join(0, ranks, port, device)
    try:
        # A copy, since what makes a model parallel stays with it.
        inner = copy.deepcopy(model)
        yield _parallel(inner, device), inner, Part(data, 0, ranks)
        model.load_state_dict(inner.state_dict())
        for rank, other in enumerate(others, 1):
            other.join(PATIENCE)
            if other.exitcode != 0:
                raise TraceError(f"rank {rank} of PyTorch's pass failed (exit code {other.exitcode})")
    finally:
        torch.set_num_threads(threads)
        dist.destroy_process_group()
        for other in others:
            other.terminate()


def _join(rank: int, ranks: int, port: int, device: str) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    if device != "cpu":
        torch.cuda.set_device(rank)
    backend = "gloo" if device == "cpu" else "nccl"
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)


def _parallel(model: nn.Module, device: str) -> nn.Module:
    return DistributedDataParallel(model, device_ids=None if device == "cpu" else [torch.cuda.current_device()])


def _work(  # noqa: PLR0913, PLR0917 (what a rank is told)
    rank: int,
    ranks: int,
    port: int,
    plan: dict[str, Any],
    examples: dict[str, np.ndarray],
    run: Shape,
    state: dict[str, torch.Tensor],
    device: str,
    vocabulary_size: int,
    masks: Path | None,
) -> None:
    """A rank that is not the first: it trains as well, and keeps nothing but the masks of its part."""
    _join(rank, ranks, port, device)
    model = models.build(plan, vocabulary_size)
    model.load_state_dict(state)
    model.to(device)

    def around(at: int) -> AbstractContextManager[None]:
        return recorded(masks, at, rank) if masks else nullcontext()

    # Each part of a batch has masks of its own.
    torch.manual_seed(plan["training"]["seed"] + rank)
    training.train(_parallel(model, device), Part(Arrays(examples), rank, ranks), plan, run, device, around=around)
    dist.destroy_process_group()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
