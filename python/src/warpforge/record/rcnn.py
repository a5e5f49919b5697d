"""Faster R-CNN as torchvision's `fasterrcnn_resnet50_fpn` builds it, with frozen norms, from weights of one's own."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import torch
import torchvision
from safetensors.torch import load_file
from torch import nn
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.ops import FrozenBatchNorm2d, MultiScaleRoIAlign
from torchvision.ops.poolers import initLevelMapper

from warpforge.errors import TraceError
from warpforge.record import models, tfjs
from warpforge.record.coco import Coco

BACKBONES = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
# The levels of the pyramid that regions are read from: an element is 4, 8, 16 or 32 pixels.
LEVELS = ("0", "1", "2", "3")
SCALES = [0.25, 0.125, 0.0625, 0.03125]
POOLED = 7
# Sides of a batch are multiples of the coarsest of these.
COARSEST = 32
# Whole objects, which a configuration cannot name.
OBJECTS = {"self", "backbone", "num_classes", "kwargs", "image_mean", "image_std"} | {
    "rpn_anchor_generator", "rpn_head", "box_roi_pool", "box_head", "box_predictor", "bbox_reg_weights"
}  # fmt: skip
# Images that norms of random weights are fitted to.
FITTED = 4
SIDE = 128


class Detector(FasterRCNN):
    """torchvision's model, which returns the sum of its losses before them."""

    def forward(self, images: list[torch.Tensor], targets: list[dict[str, torch.Tensor]] | None = None) -> Any:  # noqa: ANN401
        """The losses, or what was found."""
        returned = super().forward(images, targets)
        return {"loss": sum(returned.values())} | returned if self.training else returned


def build(plan: dict[str, Any], data: Coco) -> Detector:
    """The detector in training mode. What is not pretrained is made from the seed."""
    config = dict(plan["model"]["config"])
    backbone = config.pop("backbone", "resnet50")
    trainable = config.pop("trainable_backbone_layers", 3)
    width = config.pop("representation_size", 1024)
    known = set(inspect.signature(FasterRCNN.__init__).parameters) - OBJECTS
    if backbone not in BACKBONES or not set(config) <= known:
        wrong = sorted(set(config) - known) or [backbone]
        raise TraceError(
            f"[model.config] has {', '.join(wrong)}, which torchvision's Faster R-CNN does not",
            f"backbone ({', '.join(BACKBONES)}), trainable_backbone_layers, representation_size, "
            f"{', '.join(sorted(known))}",
        )
    torch.manual_seed(plan["training"]["seed"])
    source = models.folder(plan)
    state, of_keras = _weights(source) if source else (None, False)
    body = _body(backbone, state if state is None or "conv1.weight" in state else {}, data)
    mean, std = (tfjs.MEAN, tfjs.STD) if of_keras else (MEAN, STD)
    if of_keras:
        tfjs.strides(body)
    pyramid = _resnet_fpn_extractor(body, trainable)
    pool = MultiScaleRoIAlign(featmap_names=list(LEVELS), output_size=POOLED, sampling_ratio=2)
    # All batches have one canvas, so that their scales cannot be told from the sizes of images.
    pool.scales, pool.map_levels = SCALES, initLevelMapper(2, 5)
    model = Detector(
        pyramid,
        None,
        image_mean=mean,
        image_std=std,
        box_roi_pool=pool,
        box_head=TwoMLPHead(pyramid.out_channels * POOLED**2, width),
        box_predictor=FastRCNNPredictor(width, data.classes),
        size_divisible=math.ceil(config.get("max_size", 1333) / COARSEST) * COARSEST,
        **config,
    )
    if state is not None and "conv1.weight" not in state:
        _load(model, state, str(source))
    return model.train()


def settings(model: Detector) -> dict[str, Any]:
    """What the second pass prepares images and chooses boxes by."""
    transform, rpn, heads = model.transform, model.rpn, model.roi_heads

    def proposals(mode: str) -> dict[str, Any]:
        return {
            "before": rpn._pre_nms_top_n[mode],
            "after": rpn._post_nms_top_n[mode],
            "threshold": rpn.nms_thresh,
        }

    def sampler(of: Any) -> dict[str, Any]:  # noqa: ANN401 (a sampler of torchvision)
        return {"count": of.batch_size_per_image, "positive": of.positive_fraction}

    return {
        "schema_version": 1,
        "min_size": transform.min_size[0],
        "max_size": transform.max_size,
        "canvas": transform.size_divisible,
        "mean": transform.image_mean,
        "std": transform.image_std,
        "classes": heads.box_predictor.cls_score.out_features,
        "proposals": proposals("testing"),
        "training_proposals": proposals("training"),
        "anchor_samples": sampler(rpn.fg_bg_sampler),
        "region_samples": sampler(heads.fg_bg_sampler),
        "detections": {
            "score": heads.score_thresh,
            "threshold": heads.nms_thresh,
            "most": heads.detections_per_img,
        },
    }


def _weights(source: Path) -> tuple[dict[str, torch.Tensor], bool]:
    """The tensors of a file, or of the one in a folder, and whether they are those of a Keras ResNet-50."""
    names = ("model.json", "*/model.json", "model.safetensors", "*.safetensors", "*.pth", "*.pt")
    found = [source] if source.is_file() else [path for name in names for path in sorted(source.glob(name))]
    if not found:
        raise TraceError(f"{source} has no weights", "a .safetensors or .pth file, or model.json of TensorFlow.js")
    path = found[0]
    if path.name == "model.json":
        return tfjs.state(path), True
    try:
        state = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
        return {name: value for name, value in state.items() if not name.startswith("fc.")}, False
    except (OSError, ValueError, RuntimeError, AttributeError) as error:
        raise TraceError(f"{path} has no weights: {error}") from error


def _body(name: str, state: dict[str, torch.Tensor] | None, data: Coco) -> nn.Module:
    """The backbone's body with frozen norms; without weights, norms are fitted to the first images."""
    make = getattr(torchvision.models, name)
    body = make(weights=None, norm_layer=FrozenBatchNorm2d)
    if state is None:
        fitted = make(weights=None, norm_layer=nn.BatchNorm2d)
        for module in fitted.modules():
            if isinstance(module, nn.BatchNorm2d):
                # The mean over all batches that it sees, of which there is one.
                module.momentum = None
        with torch.no_grad():
            fitted.train()(_first(data))
        body.load_state_dict(fitted.state_dict())
    elif state:
        _load(body, state, "the weights")
    return body


def _first(data: Coco) -> torch.Tensor:
    count = min(FITTED, len(data.examples["train"]))
    images = [data.image("train", example) for example in data.examples["train"][:count]]
    resized = [nn.functional.interpolate(image[None], (SIDE, SIDE)) for image in images]
    return (torch.cat(resized) - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


def _load(module: nn.Module, state: dict[str, torch.Tensor], what: str) -> None:
    counted = {name: value for name, value in state.items() if not name.endswith("num_batches_tracked")}
    try:
        missing, unexpected = module.load_state_dict(counted, strict=False)
    except RuntimeError as error:
        raise TraceError(f"{what} do not fit the model: {error}") from error
    missing = [name for name in missing if not name.startswith("fc.")]
    if missing or unexpected:
        raise TraceError(f"{what} are of another model: missing {missing[:3]}, unexpected {unexpected[:3]}")
