"""A workload in PyTorch as it is, some times: `python eager.py NAME TIMES THREADS`. For its memory."""

from __future__ import annotations

import sys

import torch
import workloads


def main() -> None:
    """Makes the model and runs it."""
    torch.set_num_threads(int(sys.argv[3]))
    torch.set_grad_enabled(False)
    module, inputs = workloads.make(sys.argv[1])
    for _ in range(int(sys.argv[2])):
        module(*inputs)


main()
