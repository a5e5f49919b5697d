"""Models of torchvision, from random weights, on images as small as they allow."""

from __future__ import annotations

from collections import OrderedDict

import torch
import torchvision.models as tv
from catalogue import add, entry, unsettle
from torch import nn
from torchvision.models import detection, optical_flow, video

from warpforge import Model

# Classifiers by the side of the square image that they get.
CLASSIFIERS = {
    "alexnet": 64,
    "convnext_tiny": 64,
    "densenet121": 64,
    "efficientnet_b0": 64,
    "efficientnet_v2_s": 64,
    "googlenet": 64,
    "inception_v3": 96,
    "mnasnet0_5": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "mobilenet_v3_large": 64,
    "regnet_x_400mf": 64,
    "regnet_y_400mf": 64,
    "resnet18": 64,
    "resnet50": 64,
    "resnext50_32x4d": 64,
    "shufflenet_v2_x0_5": 64,
    "squeezenet1_0": 64,
    "swin_t": 64,
    "swin_v2_t": 64,
    "vgg11_bn": 32,
}
VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18")


def _images(batch: int, side: int) -> torch.Tensor:
    return torch.randn(batch, 3, side, side)


def _classifier(name: str, side: int) -> Model:
    return Model(unsettle(tv.get_model(name, weights=None)), (_images(2, side),))


for _name, _side in CLASSIFIERS.items():
    add(_name, lambda name=_name, side=_side: _classifier(name, side))

add("resnet18_dynamic", lambda: _classifier("resnet18", 64), dynamic=("batch=0:2:64",))
add("swin_dynamic", lambda: _classifier("swin_t", 64), dynamic=("batch=0:2:64",))


@entry("vit_b_16")
def vit_b_16() -> Model:
    """The transformer at the size of its name, on a small image."""
    return Model(unsettle(tv.vit_b_16(image_size=64)), (_images(1, 64),))


@entry("maxvit_t")
def maxvit_t() -> Model:
    """Attention over blocks and grids."""
    return Model(unsettle(tv.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0)), (_images(1, 64),))


class _Out(nn.Module):
    """The dict of a segmentation model as a tuple."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Runs the model."""
        return tuple(self.inner(x).values())


def _segmentation(name: str, **options: object) -> Model:
    inner = tv.get_model(name, weights=None, weights_backbone=None, num_classes=21, **options)
    return Model(_Out(unsettle(inner)), (_images(1, 64),))


add("fcn_resnet50", lambda: _segmentation("fcn_resnet50", aux_loss=True))
add("deeplabv3_mobilenet_v3_large", lambda: _segmentation("deeplabv3_mobilenet_v3_large"))
add("lraspp_mobilenet_v3_large", lambda: _segmentation("lraspp_mobilenet_v3_large"))


def _faster_rcnn() -> detection.FasterRCNN:
    return unsettle(detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91))


def _feature_maps(side: int) -> list[torch.Tensor]:
    return [torch.randn(1, 256, side >> level, side >> level) for level in range(5)]


@entry("fasterrcnn_backbone")
def fasterrcnn_backbone() -> Model:
    """ResNet-50 with its feature pyramid."""
    return Model(_Out(_faster_rcnn().backbone), (_images(1, 64),))


class _RpnHead(nn.Module):
    """The head with its maps as separate arguments."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, *maps: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Scores and box deltas of each level."""
        return self.head(list(maps))


@entry("fasterrcnn_rpn_head")
def fasterrcnn_rpn_head() -> Model:
    """The region proposal network's head."""
    return Model(_RpnHead(_faster_rcnn().rpn.head), tuple(_feature_maps(16)))


class _BoxHead(nn.Module):
    """The two stages behind the pooled regions."""

    def __init__(self, heads: nn.Module) -> None:
        super().__init__()
        self.head = heads.box_head
        self.predictor = heads.box_predictor

    def forward(self, regions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Class scores and boxes of each region."""
        return self.predictor(self.head(regions))


@entry("fasterrcnn_box_head")
def fasterrcnn_box_head() -> Model:
    """The box head and predictor."""
    return Model(_BoxHead(_faster_rcnn().roi_heads), (torch.randn(4, 256, 7, 7),))


class _SsdLite(nn.Module):
    """Backbone and head of the single-shot detector."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.backbone = model.backbone
        self.head = model.head

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Class scores and boxes of each anchor."""
        return self.head(list(OrderedDict(self.backbone(x)).values()))


@entry("ssdlite320_backbone_head")
def ssdlite() -> Model:
    """The single-shot detector up to its anchors."""
    model = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    return Model(_SsdLite(unsettle(model)), (_images(1, 96),))


@entry("retinanet_backbone_head")
def retinanet() -> Model:
    """The one-stage detector with its pyramid."""
    model = detection.retinanet_resnet50_fpn_v2(weights=None, weights_backbone=None)
    return Model(_SsdLite(unsettle(model)), (_images(1, 64),))


for _name in VIDEO:
    add(_name, lambda name=_name: Model(unsettle(tv.get_model(name, weights=None)), (_clip(4, 64),)))


def _clip(frames: int, side: int) -> torch.Tensor:
    return torch.randn(1, 3, frames, side, side)


@entry("s3d")
def s3d() -> Model:
    """Separable convolutions over a clip, with a last pooling that fits a small image."""
    model = unsettle(tv.get_model("s3d", weights=None))
    model.avgpool = nn.AvgPool3d(2, stride=1)
    return Model(model, (_clip(16, 64),))


@entry("mvit_small")
def mvit() -> Model:
    """Multiscale attention with relative positions over a short clip."""
    blocks = [
        video.mvit.MSBlockConfig(1, 16, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 4, 4]),
        video.mvit.MSBlockConfig(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2]),
    ]
    model = video.MViT(
        (32, 32), 4, blocks, residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True, proj_after_attn=True
    )
    return Model(unsettle(model), (_clip(4, 32),))


@entry("swin3d_small")
def swin3d() -> Model:
    """Shifted windows over a short clip."""
    model = video.SwinTransformer3d([2, 4, 4], 24, [2, 2], [2, 4], [2, 4, 4], num_classes=10)
    return Model(unsettle(model), (_clip(4, 32),))


@entry("raft_small")
def raft() -> Model:
    """Optical flow: correlation pyramids, grid sampling and a recurrent update."""
    model = unsettle(optical_flow.raft_small(weights=None))
    return Model(model, (_images(1, 128), _images(1, 128)), {"num_flow_updates": 2})


@entry("assorted_layers")
def assorted_layers() -> Model:
    """Layers of torch.nn that the libraries above leave out."""
    return Model(unsettle(_Layers()), (_images(2, 16),))


class _Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1, dilation=1, padding_mode="reflect")
        self.norm = nn.GroupNorm(4, 8)
        self.up = nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.instance = nn.InstanceNorm2d(6, affine=True)
        self.shuffle = nn.PixelShuffle(2)
        self.unshuffle = nn.PixelUnshuffle(2)
        self.prelu = nn.PReLU(6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Runs every layer once."""
        y = nn.functional.leaky_relu(self.norm(self.down(x)), 0.1)
        z = self.prelu(self.instance(self.up(y)))
        resized = [
            nn.functional.interpolate(z, scale_factor=2, mode="nearest"),
            nn.functional.interpolate(z, size=(9, 11), mode="bilinear", align_corners=False),
            nn.functional.interpolate(z, size=(9, 11), mode="bilinear", align_corners=True),
            nn.functional.interpolate(z, size=(20, 9), mode="bicubic", align_corners=False),
        ]
        pooled = [
            nn.functional.avg_pool2d(z, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            nn.functional.max_pool2d(z, 3, 2, 1, dilation=2, ceil_mode=True),
            nn.functional.adaptive_avg_pool2d(z, (3, 5)),
            nn.functional.adaptive_max_pool2d(z, (2, 4)),
            nn.functional.lp_pool2d(z.abs() + 0.1, 2, 2),
        ]
        return (*resized, *pooled, self.unshuffle(self.shuffle(y)), nn.functional.unfold(z, 3, padding=1))
