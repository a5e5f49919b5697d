"""What torchvision's Faster R-CNN decides by data, as a line of JSON for each case."""

import json

import torch
from torchvision.models.detection._utils import BoxCoder, Matcher
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import _default_anchorgen
from torchvision.models.detection.image_list import ImageList
from torchvision.models.detection.roi_heads import RoIHeads
from torchvision.models.detection.rpn import RegionProposalNetwork
from torchvision.ops import box_iou
from torchvision.ops.poolers import LevelMapper

CASES = 12
CATEGORIES = 7


def anchors(generator: AnchorGenerator, size: tuple[int, int], grids: list[tuple[int, int]]) -> torch.Tensor:
    images = ImageList(torch.zeros(1, 3, *size), [size])
    return generator(images, [torch.zeros(1, 1, *grid) for grid in grids])[0]


def boxes(count: int, size: tuple[int, int]) -> torch.Tensor:
    start = torch.rand(count, 2) * torch.tensor([size[1], size[0]]) * 0.9
    return torch.cat([start, start + torch.rand(count, 2) * 60 + 1], 1)


def case(seed: int) -> dict:
    torch.manual_seed(seed)
    size = (64 * (1 + seed % 3), 96)
    grids = [(-(-size[0] // stride), -(-size[1] // stride)) for stride in (4, 8, 16, 32, 64)]
    all_anchors = anchors(_default_anchorgen(), size, grids)
    levels = [rows * columns * 3 for rows, columns in grids]
    count = sum(levels)
    objectness, deltas = torch.randn(1, count) * 2, torch.randn(count, 4) * 0.4
    # Few and many boxes are suppressed in different ways.
    most = {"training": (300, 100, 1000)[seed % 3], "testing": 10}
    rpn = RegionProposalNetwork(None, None, 0.7, 0.3, 256, 0.5, most, {"training": 80, "testing": 10}, 0.7).train()
    decoded = BoxCoder((1.0, 1.0, 1.0, 1.0)).decode(deltas, [all_anchors]).view(1, -1, 4)
    proposals = rpn.filter_proposals(decoded, objectness, [(size[0] - 5, size[1] - 9)], levels)[0][0]
    objects = boxes(4, size)
    matched = {
        "anchors": Matcher(0.7, 0.3, allow_low_quality_matches=True)(box_iou(objects, all_anchors)).tolist(),
        "proposals": Matcher(0.5, 0.5)(box_iou(objects, proposals)).tolist(),
    }
    logits, codes = torch.randn(len(proposals), CATEGORIES) * 2, torch.randn(len(proposals), CATEGORIES * 4)
    heads = RoIHeads(None, None, None, 0.5, 0.5, 512, 0.25, None, 0.05, 0.5, 30)
    found = heads.postprocess_detections(logits, codes, [proposals], [size])
    coder = BoxCoder((10.0, 10.0, 5.0, 5.0))
    targets = coder.encode_single(objects[:1].expand(len(proposals), 4), proposals)
    return {
        "size": size,
        "grids": grids,
        "anchors": all_anchors.tolist(),
        "objectness": objectness[0].tolist(),
        "deltas": deltas.tolist(),
        "before": most["training"],
        "proposals": proposals.tolist(),
        "levels": LevelMapper(2, 5)([proposals]).tolist(),
        "objects": objects.tolist(),
        "matched": matched,
        "targets": targets.tolist(),
        "logits": logits.flatten().tolist(),
        "codes": codes.view(-1, 4).tolist(),
        "found": {"boxes": found[0][0].tolist(), "scores": found[1][0].tolist(), "labels": found[2][0].tolist()},
    }


for seed in range(CASES):
    print(json.dumps(case(seed)))
