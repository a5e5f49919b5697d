"""Operations of torchvision's detectors."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torchvision
from calls import Call
from samples import call, normal, samples, uniform

vision = torch.ops.torchvision
# The operators are registered when the package is imported.
assert torchvision.ops.roi_align


def regions(count: int, images: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Regions of images of 20 pixels: some empty, some partly or wholly outside."""
    start = uniform(count, 2) * 30 - 5
    end = start + uniform(count, 2) * 15 - 1
    return torch.cat([torch.randint(0, images, (count, 1)), start, end], 1).to(dtype)


@samples
def aligned_regions() -> Iterator[Call]:
    """RoIAlign and its gradient, with each way of sampling."""
    for ratio in (2, -1, 1, 3):
        for aligned in (False, True):
            rois = regions(5, 2)
            yield call(vision.roi_align.default, normal(2, 3, 5, 6), rois, 0.25, 2, 3, ratio, aligned)
            grad, sizes = normal(5, 3, 2, 3), (2, 3, 5, 6)
            yield call(vision._roi_align_backward.default, grad, rois, 0.25, 2, 3, *sizes, ratio, aligned)
    rois = regions(4, 1, torch.float64)
    wide = normal(1, 2, 6, 4, dtype=torch.float64)
    yield call(vision.roi_align.default, wide, rois, 0.5, 1, 2, 2, False)
    grad = normal(4, 2, 1, 2, dtype=torch.float64)
    yield call(vision._roi_align_backward.default, grad, rois, 0.5, 1, 2, 1, 2, 6, 4, 2, False)
