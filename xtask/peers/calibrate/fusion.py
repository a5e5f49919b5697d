"""What fusion is worth in PyTorch: eager against torch.compile, `python fusion.py SECONDS cpu|cuda`.

The patterns and sizes are those of `warpt calibrate --quick`. Runs of both ways alternate. Prints one line of JSON for
each pattern: its name, the milliseconds of both ways, pair by pair, and the largest relative error between them. On a
GPU a time is that of many calls between two events, divided by them.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable

import torch
from torch.nn import functional

Inputs = tuple[torch.Tensor, ...]

WARM_UP = 3
FEWEST_PAIRS = 11
# Calls between two events of a GPU.
CALLS = 20


def patterns() -> dict[str, tuple[Callable[..., torch.Tensor], Inputs]]:
    """The patterns by the names that a profile has, with their inputs."""
    x, w, b = torch.randn(512, 1024), torch.randn(1024, 1024) / 32, torch.randn(1024)
    image, kernel = torch.randn(4, 128, 28, 28), torch.randn(128, 128, 3, 3) / 34
    mean, var, gamma, beta = torch.randn(128), torch.rand(128) + 0.5, torch.randn(128), torch.randn(128)
    q, k, v = (torch.randn(4, 1, 256, 64) for _ in range(3))
    scale = 1 / math.sqrt(64)

    def norm(y: torch.Tensor, *statistics: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(y, *statistics)

    def conv(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return functional.conv2d(x, k, padding=1)

    norms = (mean, var, gamma, beta)
    return {
        "Linear_Bias": (lambda x, w, b: x @ w + b, (x, w, b)),
        "Linear_Bias_ReLU": (lambda x, w, b: torch.relu(x @ w + b), (x, w, b)),
        "Linear_Bias_GELU": (lambda x, w, b: functional.gelu(x @ w + b), (x, w, b)),
        "Conv2d_ReLU": (lambda x, k: torch.relu(conv(x, k)), (image, kernel)),
        "Conv2d_BatchNorm": (lambda x, k, *n: norm(conv(x, k), *n), (image, kernel, *norms)),
        "Conv2d_BatchNorm_ReLU": (lambda x, k, *n: torch.relu(norm(conv(x, k), *n)), (image, kernel, *norms)),
        "QK^T": (lambda q, k: (q @ k.transpose(-2, -1)) * scale, (q, k)),
        "QK^T_Softmax": (lambda q, k: torch.softmax((q @ k.transpose(-2, -1)) * scale, -1), (q, k)),
        "FullAttention": (lambda q, k, v: torch.softmax((q @ k.transpose(-2, -1)) * scale, -1) @ v, (q, k, v)),
    }


def milliseconds(way: Callable[..., torch.Tensor], inputs: Inputs) -> float:
    """The time of a call."""
    if inputs[0].device.type == "cpu":
        start = time.perf_counter()
        way(*inputs)
        return 1e3 * (time.perf_counter() - start)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(CALLS):
        way(*inputs)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / CALLS


def pairs(ways: list[Callable[..., torch.Tensor]], inputs: Inputs, seconds: float) -> list[list[float]]:
    """Milliseconds of both ways, in turn first."""
    for _ in range(WARM_UP):
        for way in ways:
            way(*inputs)
    found: list[list[float]] = []
    begin = time.perf_counter()
    while len(found) < FEWEST_PAIRS or time.perf_counter() - begin < seconds:
        taken = [0.0, 0.0]
        for at in (0, 1) if len(found) % 2 == 0 else (1, 0):
            taken[at] = milliseconds(ways[at], inputs)
        found.append(taken)
    return found


def main() -> None:
    """Times all patterns."""
    torch.manual_seed(0)
    seconds, device = float(sys.argv[1]), sys.argv[2]
    with torch.inference_mode():
        for name, (function, made) in patterns().items():
            inputs = tuple(tensor.to(device) for tensor in made)
            compiled = torch.compile(function)
            expected, found = function(*inputs), compiled(*inputs)
            error = float((expected - found).abs().max() / expected.abs().max())
            taken = pairs([function, compiled], inputs, seconds)
            print(json.dumps({"pattern": name, "pairs_ms": taken, "max_relative_error": error}), flush=True)


if __name__ == "__main__":
    main()
