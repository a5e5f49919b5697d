"""Pass 1 of detection: the static step is torchvision's, data are read by COCO's rules, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from warpforge.errors import TraceError

pytest.importorskip("torchvision")
pytest.importorskip("pycocotools")

from warpforge.record import pictures, rcnn, selection, tfjs
from warpforge.record.coco import Coco

CONFIG = {"backbone": "resnet18", "representation_size": 32, "min_size": 48, "max_size": 64}
SAMPLES = {"rpn_batch_size_per_image": 32, "rpn_post_nms_top_n_train": 50, "box_batch_size_per_image": 16}


def _plan(root: Path | None = None, **config: Any) -> dict[str, Any]:  # noqa: ANN401 (whatever torchvision takes)
    data = {"train": str(root)} if root else {"generated": {"paragraphs": 4, "evaluation": 2}}
    return {
        "model": {"architecture": "faster-rcnn", "config": CONFIG | SAMPLES | config, "weights": None},
        "data": {"format": "coco"} | data,
        "training": {"seed": 3, "batch_size": 2},
    }


def test_a_static_step_is_that_of_torchvision(tmp_path: Path) -> None:
    data = Coco(_plan(), tmp_path)
    model = rcnn.build(_plan(), data)
    batch = data.batch([0, len(data.examples["train"]) + 1])
    # An image without objects has targets that are no numbers.
    batch["targets"][1] = {"boxes": torch.empty(0, 4), "labels": torch.empty(0, dtype=torch.int64)}
    with selection.watched(model) as seen:
        losses = model(**batch)
    losses["loss"].backward()
    expected = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    static = selection.Step(model)(**selection.static_inputs(model, seen))
    assert list(static) == list(losses)
    for name, value in static.items():
        torch.testing.assert_close(value, losses[name], rtol=1e-5, atol=1e-6)
    static["loss"].backward()
    for name, value in model.named_parameters():
        if value.grad is not None:
            torch.testing.assert_close(value.grad, expected.pop(name), rtol=1e-4, atol=1e-5)
    assert not expected


def test_boxes_are_clipped_and_mirrored(tmp_path: Path) -> None:
    root = pictures.write(tmp_path, {"paragraphs": 2, "evaluation": 1}, 0)
    path = root / "annotations" / "instances_train2017.json"
    content = json.loads(path.read_text())
    width, height = content["images"][0]["width"], content["images"][0]["height"]
    content["annotations"] = [
        {"id": 1, "image_id": 1, "category_id": 2, "bbox": [-5.0, 10.0, 25.0, 1e6], "area": 1.0},
        {"id": 2, "image_id": 1, "category_id": 1, "bbox": [3.0, 4.0, 0.0, 9.0], "area": 0.0},
        {"id": 3, "image_id": 1, "category_id": 1, "bbox": [3.0, 4.0, 5.0, 9.0], "area": 1.0, "iscrowd": 1},
    ]
    path.write_text(json.dumps(content))
    data = Coco(_plan(root), tmp_path)
    # The second image has no objects.
    assert len(data.examples["train"]) == 1
    [example] = data.examples["train"]
    assert example.boxes.tolist() == [[0.0, 10.0, 20.0, height]]
    assert example.mirrored().tolist() == [[width - 20.0, 10.0, width, height]]
    assert [len(row) for row in data.rows("train")] == [4 * 8 + 16 + 8] * 2
    plain, mirrored = data.batch([0, 1])["images"]
    assert torch.equal(mirrored.flip(-1), plain)
    order = data.mirrored([[0]] * 64, 7)
    assert 16 < sum(index for [index] in order) < 48


def test_images_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    root = pictures.write(tmp_path, {"paragraphs": 1, "evaluation": 1}, 0)
    data = Coco(_plan(root), tmp_path)
    image = root / "train2017" / data.examples["train"][0].file
    content = image.read_bytes()
    image.write_bytes(content[: len(content) // 2])
    with pytest.raises(TraceError, match=f"{image.name}.*truncated"):
        data.batch([0])
    image.unlink()
    with pytest.raises(TraceError, match=image.name):
        data.batch([0])


def test_boxes_and_formats_that_pass_2_cannot_read_are_named(tmp_path: Path) -> None:
    root = pictures.write(tmp_path, {"paragraphs": 2, "evaluation": 1}, 0)
    path = root / "annotations" / "instances_train2017.json"
    content = json.loads(path.read_text())
    right = content["annotations"][0]["bbox"]
    for wrong in ([1, 2, 3], [float("nan"), 2, 3, 4], [1, 2, "3", 4], None):
        content["annotations"][0]["bbox"] = wrong
        path.write_text(json.dumps(content))
        with pytest.raises(TraceError, match=r"annotation \d+: the box is"):
            Coco(_plan(root), tmp_path)
    content["annotations"][0]["bbox"] = right
    path.write_text(json.dumps(content))
    data = Coco(_plan(root), tmp_path)
    image = root / "train2017" / data.examples["train"][0].file
    Image.open(image).save(image, format="PNG")
    with pytest.raises(TraceError, match=f"{image.name}: it is PNG"):
        data.batch([0])


def test_a_configuration_that_is_not_torchvisions_is_refused(tmp_path: Path) -> None:
    data = Coco(_plan(), tmp_path)
    with pytest.raises(TraceError, match="anchor_sizes"):
        rcnn.build(_plan(anchor_sizes=3), data)
    with pytest.raises(TraceError, match="vgg16"):
        rcnn.build(_plan(backbone="vgg16"), data)


def test_a_file_of_other_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"weightsManifest": [{"paths": ["shard"], "weights": []}]}))
    (tmp_path / "shard").write_bytes(np.zeros(4, "<f4").tobytes())
    with pytest.raises(TraceError, match="no ResNet-50 of Keras"):
        tfjs.state(tmp_path / "model.json")
    (tmp_path / "shard").unlink()
    with pytest.raises(TraceError, match=r"no weights of TensorFlow\.js"):
        tfjs.state(tmp_path / "model.json")
