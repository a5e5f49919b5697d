"""PyTorch's side of `resnet50_train`, with the settings as JSON in the first argument.

`do` is `trace`: writes the training graph, a batch, PyTorch's own losses and how far apart its own runs are into
`folder`; or `time`: prints the seconds of single steps, for about `seconds`.
"""

import copy
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torchvision
from torch import nn

CLASSES = 1000


class Classifier(nn.Module):
    """A model with the cross entropy of its scores."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return nn.functional.cross_entropy(self.model(images), labels)


def trace(settings: dict, model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Write the graph and the batch."""
    from safetensors.torch import save_file  # noqa: PLC0415 (timing needs neither)

    from warpforge import Model, trace  # noqa: PLC0415

    folder = Path(settings["folder"])
    trace(Model(model, batch), output=folder / "step.pt2", train=True, seed=settings["seed"])
    save_file(dict(zip(("images", "labels"), batch, strict=True)), folder / "batch.safetensors")


def training(settings: dict, model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> Callable[[], float]:
    """A function that trains for one step and gives the loss before its update."""
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=settings["lr"],
        momentum=settings["momentum"],
        weight_decay=settings["weight_decay"],
    )

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=settings["bf16"]):
            loss = model(*batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def losses_and_noise(
    settings: dict, models: list[nn.Module], batch: tuple[torch.Tensor, torch.Tensor]
) -> tuple[list[float], list[float]]:
    """The losses of the first steps, and how far those on another number of threads and in f64 are from them."""

    def losses(model: nn.Module, dtype: torch.dtype) -> list[float]:
        step = training(settings, model.to(dtype), (batch[0].to(dtype), batch[1]))
        return [step() for _ in range(settings["steps"])]

    first = losses(models[0], torch.float32)
    exact = losses(models[1], torch.float64)
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    other = losses(models[2], torch.float32)
    torch.set_num_threads(threads)
    return first, [max(abs(a - b), abs(a - c)) for a, b, c in zip(first, exact, other, strict=True)]


def main() -> None:
    """Make the model and the batch, and do what is asked."""
    settings = json.loads(sys.argv[1])
    if settings["threads"]:
        torch.set_num_threads(settings["threads"])
    torch.manual_seed(settings["seed"])
    model = Classifier(getattr(torchvision.models, settings["model"])(num_classes=CLASSES)).train()
    side, count = settings["side"], settings["batch"]
    batch = (torch.randn(count, 3, side, side), torch.randint(0, CLASSES, (count,)))
    if settings["do"] == "trace":
        models = [copy.deepcopy(model) for _ in range(3)]
        trace(settings, model, batch)
        losses, noise = losses_and_noise(settings, models, batch)
        # Last: its presence says that the folder is whole.
        Path(settings["folder"], "steps.json").write_text(json.dumps({"losses": losses, "noise": noise}))
        return
    step = training(settings, model, batch)
    step()
    seconds, began = [], time.perf_counter()
    while not seconds or time.perf_counter() - began < settings["seconds"]:
        before = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - before)
    print(json.dumps(seconds))


main()
