"""Operations of torchvision's detectors, run by `warpt` without a fallback, are those of torchvision."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from warpforge import Model, trace

torchvision = pytest.importorskip("torchvision")

BUILT = (Path(__file__).parents[2] / "target" / kind / "warpt" for kind in ("debug", "release"))
WARPT = os.environ.get("WARPT") or next((str(path) for path in BUILT if path.is_file()), None) or shutil.which("warpt")

pytestmark = pytest.mark.skipif(WARPT is None, reason="warpt is not built; set WARPT to the program")

LEVELS = ((0.25, 16), (0.125, 8))


def run(model: Path, inputs: Path, outputs: Path) -> dict[str, torch.Tensor]:
    """What `warpt` gives on the CPU; a fallback to the reference is an error."""
    command = [str(WARPT), "run", str(model), "--inputs", str(inputs), "--outputs", str(outputs), "--no-fallback"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return load_file(outputs)


class Pyramid(nn.Module):
    """Regions of two levels of features, of which both are trained."""

    def __init__(self, ratio: int, *, aligned: bool) -> None:
        super().__init__()
        self.levels = nn.ParameterList([torch.randn(2, 5, size, size) for _, size in LEVELS])
        self.weight = nn.Parameter(torch.randn(5, 3, 2))
        self.ratio, self.aligned = ratio, aligned

    def forward(self, regions: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """A loss that every bin is a part of."""
        found = torch.zeros(())
        for at, (features, (scale, _)) in enumerate(zip(self.levels, LEVELS, strict=True)):
            bins = torchvision.ops.roi_align(features, regions, (3, 2), scale, self.ratio, self.aligned)
            found = found + torch.where((level == at)[:, None, None, None], bins, 0.0)
        return (torch.sin(found) * self.weight).sum()


def regions(count: int) -> torch.Tensor:
    """Regions of two images of 64 pixels; some are empty, some partly or wholly outside."""
    start = torch.rand(count, 2) * 90 - 15
    end = start + torch.rand(count, 2) * 40 - 3
    return torch.cat([torch.randint(0, 2, (count, 1)), start, end], 1)


@pytest.mark.parametrize(("ratio", "aligned"), [(2, False), (-1, False), (2, True), (-1, True)])
def test_regions_and_their_gradients(tmp_path: Path, ratio: int, *, aligned: bool) -> None:
    torch.manual_seed(ratio + 10 * aligned)
    module = Pyramid(ratio, aligned=aligned)
    args = (regions(40), torch.randint(0, 2, (40,)))
    traced = trace(Model(module, args), output=tmp_path / "regions.pt2", train=True)
    given = run(traced.archive, traced.golden / "inputs.safetensors", tmp_path / "out.safetensors")
    loss = module(*args)
    loss.backward()
    torch.testing.assert_close(given["loss"], loss.detach())
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(given[f"grad.{name}"], parameter.grad, rtol=1e-5, atol=1e-5)


class Suppressed(nn.Module):
    """Non-maximum suppression alone."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The places of the boxes that are kept."""
        return torchvision.ops.nms(boxes, scores, 0.4)


def test_the_boxes_that_are_kept(tmp_path: Path) -> None:
    torch.manual_seed(0)
    archive = tmp_path / "nms.pt2"
    count = 150
    torch.export.save(torch.export.export(Suppressed(), (torch.rand(count, 4), torch.rand(count))), archive)
    for case in range(10):
        start = torch.rand(count, 2) * 60
        boxes = torch.cat([start, start + torch.rand(count, 2) * 30], 1)
        # Every other case has many equal scores and equal boxes.
        if case % 2:
            boxes = boxes[torch.randint(0, count // 2, (count,))]
        scores = torch.randint(0, 9, (count,)) / 9 if case % 2 else torch.rand(count)
        save_file({"boxes": boxes.contiguous(), "scores": scores}, tmp_path / "in.safetensors")
        kept = run(archive, tmp_path / "in.safetensors", tmp_path / "out.safetensors")
        kept = next(iter(kept.values()))
        expected = torchvision.ops.nms(boxes, scores, 0.4)
        assert kept.shape == (count,)
        assert torch.equal(kept[: len(expected)], expected)
        assert bool((kept[len(expected) :] == -1).all())


class Chosen(nn.Module):
    """Boxes that are kept, whose number depends on the data."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The boxes themselves."""
        return boxes[torchvision.ops.nms(boxes, scores, 0.4)]


def test_sizes_that_depend_on_the_data_are_refused_by_name(tmp_path: Path) -> None:
    archive = tmp_path / "chosen.pt2"
    torch.export.save(torch.export.export(Chosen(), (torch.rand(9, 4), torch.rand(9))), archive)
    command = [str(WARPT), "import", str(archive), "-o", str(tmp_path / "chosen.mlir")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "how many boxes are kept depends on the data" in done.stderr
