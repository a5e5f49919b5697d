"""The rate at which PyTorch solves a dense f64 system on a GPU, with its residual: ORDER TIMES SEED.

`torch.linalg.lu_factor` and `lu_solve` are timed together by events of the device. The matrix lies column by column,
which is how the library below wants it.
"""

import json
import statistics
import sys

import torch


def main() -> None:
    """Solve once to warm up, then as often as asked."""
    order, times, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(seed)
    matrix = (torch.rand(order, order, dtype=torch.float64, device="cuda") - 0.5).mT
    right = torch.rand(order, 1, dtype=torch.float64, device="cuda") - 0.5

    def run() -> tuple[float, torch.Tensor]:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        factors, pivots, info = torch.linalg.lu_factor_ex(matrix)
        solution = torch.linalg.lu_solve(factors, pivots, right)
        end.record()
        torch.cuda.synchronize()
        if info.item() != 0:
            sys.exit(f"torch: lu_factor says {info.item()}")
        return begin.elapsed_time(end) / 1e3, solution

    run()
    seconds = []
    for _ in range(times):
        took, solution = run()
        seconds.append(took)
    norm = matrix.abs().sum(dim=1).max() * solution.abs().max() + right.abs().max()
    residual = ((matrix @ solution - right).abs().max() / (2.0**-53 * norm * order)).item()
    took = statistics.median(seconds)
    gflops = (2 / 3 * order**3 + 3 / 2 * order**2) / took / 1e9
    print(json.dumps({"gflops": gflops, "seconds": took, "residual": residual, "torch": torch.__version__}))


main()
