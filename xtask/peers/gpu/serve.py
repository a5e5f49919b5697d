"""PyTorch's side of `cargo xtask peers gpu`: `python serve.py FOLDER`.

Requests and answers are lines of JSON: `prepare` a workload (export it unless it is there, bring it to the GPU), `warm`
one way of running it, `time` that way, `check` our outputs, `copy` for the bandwidth of a copy, `forget` all.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import workloads
from safetensors.torch import load_file, save_file

WARM_UP = 5
# Below this part of the largest gradient's norm, distances are parts of that.
SMALL = 1e-4


def _median(run: Callable[[], Any], times: int) -> float:
    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    found = []
    for _ in range(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return statistics.median(found)


def _step(module: torch.nn.Module, owner: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    loss = module(*inputs)
    loss.backward()
    owner.zero_grad(set_to_none=True)
    return loss


class Peer:
    """A workload on the GPU and the ways of running it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: workloads.Workload | None = None
        self.run: Callable[..., torch.Tensor] | None = None
        self.theirs: list[torch.Tensor] | dict[str, torch.Tensor] = {}
        self.ways: dict[str, Callable[[], Any]] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Does what a request asks for."""
        match request["do"]:
            case "prepare":
                return self._prepare(request["workload"])
            case "warm":
                return self._warm(request["way"])
            case "time":
                return self._time(request["way"], request["times"])
            case "check":
                return self._check(request["workload"])
            case "copy":
                return self._copy()
        self.made, self.run, self.theirs, self.ways = None, None, {}, {}
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        return {}

    def _prepare(self, name: str) -> dict[str, Any]:
        made = workloads.make(name)
        home = self.folder / name
        if not (home / "model.pt2").is_file():
            home.mkdir(parents=True, exist_ok=True)
            _export(made, home)
        made.module.to("cuda")
        made.inputs = tuple(tensor.to("cuda") for tensor in made.inputs)
        # f32 products stay f32 only where that is what is measured.
        exact = name == "matmul_4096_f32"
        torch.backends.cuda.matmul.allow_tf32 = not exact
        torch.backends.cudnn.allow_tf32 = True
        self.made = made
        # Before anything is compiled: the gradients of a module that was are not quite those of one that was not.
        with self._gradients():
            self.run = made.quantized(made.module) if made.quantized else made.module
            self.theirs = _trained(made) if made.training else [self.run(*made.inputs)]
        return {"training": made.training}

    def _warm(self, way: str) -> dict[str, Any]:
        made = self.made
        mode = {"eager": None, "compile": "default", "graphs": "reduce-overhead"}[way]
        module = self.run if mode is None else torch.compile(self.run, mode=mode)
        run = (lambda: _step(module, made.module, made.inputs)) if made.training else lambda: module(*made.inputs)
        with self._gradients():
            run()
        torch.cuda.synchronize()
        self.ways[way] = run
        return {}

    def _time(self, way: str, times: int) -> dict[str, Any]:
        with self._gradients():
            return {"median_ms": _median(self.ways[way], times)}

    def _gradients(self) -> contextlib.AbstractContextManager[Any]:
        return torch.enable_grad() if self.made.training else torch.no_grad()

    def _check(self, name: str) -> dict[str, Any]:
        """How far our outputs are from PyTorch's, as a part of their norm: the largest of all, and which it is."""
        ours = load_file(self.folder / name / "ours.safetensors")
        made, theirs = self.made, self.theirs
        if not made.training:
            theirs = dict(zip(ours, theirs, strict=True))
        if {name: one.shape for name, one in ours.items()} != {name: one.shape for name, one in theirs.items()}:
            missing = sorted(set(theirs) ^ set(ours))[:3]
            return {"failed": f"{len(ours)} outputs of ours, {len(theirs)} of PyTorch's, such as {missing}"}
        # Gradients that are nothing but rounding count by the size of the others.
        largest = max(other.double().norm().item() for other in theirs.values())
        least = largest * SMALL if made.training else 0.0
        distances = {name: _distance(one.to("cuda"), theirs[name], least) for name, one in ours.items()}
        worst = max(distances, key=distances.__getitem__)
        return {"distance": distances[worst], "worst": worst}

    def _copy(self) -> dict[str, Any]:
        source = torch.randn(1 << 29, device="cuda")
        target = torch.empty_like(source)
        milliseconds = _median(lambda: target.copy_(source), 20)
        return {"bytes_per_s": 2 * source.numel() * 4 / milliseconds * 1e3}


def _trained(made: workloads.Workload) -> dict[str, torch.Tensor]:
    """The loss and the gradient of each parameter, by the names that exported programs give them."""
    loss = made.module(*made.inputs)
    loss.backward()
    gradients = {f"grad.{name}": parameter.grad for name, parameter in made.module.named_parameters()}
    made.module.zero_grad(set_to_none=True)
    return {"loss": loss.detach(), **{name: grad for name, grad in gradients.items() if grad is not None}}


def _distance(one: torch.Tensor, other: torch.Tensor, least: float = 0.0) -> float:
    one, other = one.double(), other.double()
    if not torch.equal(one.isnan(), other.isnan()):
        return float("inf")
    return ((one - other).norm() / max(other.norm().item(), least, 1e-30)).item()


def _export(made: workloads.Workload, home: Path) -> None:
    if made.training:
        from torch.export.experimental import _export_forward_backward  # noqa: PLC0415
        from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: PLC0415

        # The decomposition of fused attention on CPUs gives wrong gradients; the plain form's are right.
        with sdpa_kernel(SDPBackend.MATH):
            program = _export_forward_backward(torch.export.export(made.module, made.inputs))
    else:
        with torch.no_grad():
            program = torch.export.export(made.module, made.inputs)
    save_file({f"arg{at}": tensor.contiguous() for at, tensor in enumerate(made.inputs)}, home / "inputs.safetensors")
    # What is cut off while it is written is not taken for whole the next time.
    part = home / "part.pt2"
    torch.export.save(program, part)
    part.rename(home / "model.pt2")


def main() -> None:
    """Answers requests until there are no more."""
    warnings.filterwarnings("ignore")
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = Peer(Path(sys.argv[1]))
    for line in sys.stdin:
        try:
            answer = peer.answer(json.loads(line))
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


main()
