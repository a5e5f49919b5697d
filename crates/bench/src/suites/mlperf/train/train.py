"""PyTorch's side of `resnet50_train`, with the settings as JSON in the first argument.

`do` is `trace`: writes the training graph, a batch and PyTorch's own losses into `folder`; or `time`: prints the
seconds of single steps, for about `seconds`.
"""

import json
import sys
import time
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
        trace(settings, model, batch)
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

    if settings["do"] == "trace":
        losses = [step() for _ in range(settings["steps"])]
        # Last: its presence says that the folder is whole.
        (Path(settings["folder"]) / "losses.json").write_text(json.dumps(losses))
        return
    step()
    seconds, began = [], time.perf_counter()
    while not seconds or time.perf_counter() - began < settings["seconds"]:
        before = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - before)
    print(json.dumps(seconds))


main()
