"""Classification, segmentation and video models of torchvision, and vision models of transformers."""

from __future__ import annotations

import torch
from entries import Dict, Inputs, Tensors, add, transformer
from torch import nn

# Classifiers by the side of the square image that their weights were trained for.
CLASSIFIERS = {
    "alexnet": 224,
    "convnext_tiny": 224,
    "densenet121": 224,
    "efficientnet_b0": 224,
    "efficientnet_v2_s": 384,
    "googlenet": 224,
    "inception_v3": 299,
    "maxvit_t": 224,
    "mnasnet1_0": 224,
    "mobilenet_v2": 224,
    "mobilenet_v3_large": 224,
    "mobilenet_v3_small": 224,
    "regnet_x_800mf": 224,
    "regnet_y_800mf": 224,
    "resnet18": 224,
    "resnet50": 224,
    "resnext50_32x4d": 224,
    "shufflenet_v2_x1_0": 224,
    "squeezenet1_1": 224,
    "swin_t": 224,
    "swin_v2_t": 256,
    "vgg16": 224,
    "vit_b_16": 224,
    "wide_resnet50_2": 224,
}
SEGMENTATION = ("deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large")
VIDEO = ("mc3_18", "r2plus1d_18", "r3d_18")
# Of transformers: class, settings, side of the image, outputs.
SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}
IMAGE_MODELS = {
    "beit_base": ("BeitForImageClassification", {"use_relative_position_bias": True}, 224, ("logits",)),
    "convnextv2_tiny": ("ConvNextV2ForImageClassification", {}, 224, ("logits",)),
    "deit_small": ("DeiTForImageClassification", SMALL, 224, ("logits",)),
    "dinov2_small": (
        "Dinov2Model",
        {"hidden_size": 384, "num_attention_heads": 6, "image_size": 518},
        224,
        ("last_hidden_state",),
    ),
    "focalnet_tiny": ("FocalNetForImageClassification", {}, 224, ("logits",)),
    "mobilevit_small": ("MobileViTForImageClassification", {}, 256, ("logits",)),
    "poolformer_s12": ("PoolFormerForImageClassification", {}, 224, ("logits",)),
    "pvt_tiny": ("PvtForImageClassification", {}, 224, ("logits",)),
    "segformer_b0": ("SegformerForSemanticSegmentation", {}, 512, ("logits",)),
    "siglip_base": ("SiglipVisionModel", {}, 224, ("last_hidden_state",)),
}


def _images(side: int, batch: int) -> Inputs:
    return (torch.randn(batch, 3, side, side),)


def _classifier(name: str) -> nn.Module:
    import torchvision  # noqa: PLC0415 (seconds to import, not always needed)

    return torchvision.models.get_model(name, weights=None)


def _segmentation(name: str) -> nn.Module:
    import torchvision  # noqa: PLC0415

    return Dict(torchvision.models.get_model(name, weights=None, weights_backbone=None))


def _video(name: str) -> nn.Module:
    import torchvision  # noqa: PLC0415

    return torchvision.models.get_model(name, weights=None)


for _name, _side in CLASSIFIERS.items():
    add(_name, lambda name=_name: _classifier(name), lambda batch, side=_side: _images(side, batch), 8)
for _name in SEGMENTATION:
    add(_name, lambda name=_name: _segmentation(name), lambda batch: _images(520, batch), 2)
for _name in VIDEO:
    add(_name, lambda name=_name: _video(name), lambda batch: (torch.randn(batch, 3, 16, 112, 112),), 2)
for _name, (_kind, _config, _side, _outputs) in IMAGE_MODELS.items():
    add(
        _name,
        lambda kind=_kind, config=_config, outputs=_outputs: Tensors(
            transformer(kind, config), outputs, ("pixel_values",)
        ),
        lambda batch, side=_side: _images(side, batch),
        8,
    )
