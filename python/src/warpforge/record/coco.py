"""COCO as torchvision's reference scripts read it: images, boxes, mirrored pictures, and the metrics of pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torch import nn

from warpforge.errors import TraceError
from warpforge.record import pictures, sources
from warpforge.record.training import batches, moved

# The folder of the images of each part; the annotations are those of the same name.
FOLDERS = {"train": "train2017", "eval": "val2017"}
# The numbers of COCOeval.stats, in its order.
METRICS = (
    "AP",
    "AP50",
    "AP75",
    "AP_small",
    "AP_medium",
    "AP_large",
    "AR1",
    "AR10",
    "AR100",
    "AR_small",
    "AR_medium",
    "AR_large",
)
# Left, top, width and height.
BOX = 4
# The part of the examples that is mirrored.
MIRRORED = 0.5


@dataclass
class Example:
    """An image and what is to be found in it."""

    id: int
    file: str
    width: int
    height: int
    boxes: np.ndarray
    labels: np.ndarray

    def mirrored(self) -> np.ndarray:
        """The boxes in the mirrored image."""
        boxes = self.boxes.copy()
        boxes[:, [0, 2]] = np.float32(self.width) - self.boxes[:, [2, 0]]
        return boxes

    def row(self, *, mirrored: bool) -> bytes:
        """What identifies the example to the second pass."""
        head = np.array([self.id, self.width, self.height, mirrored], "<i8")
        boxes = self.mirrored() if mirrored else self.boxes
        return head.tobytes() + boxes.astype("<f4").tobytes() + self.labels.astype("<i8").tobytes()


class Coco:
    """Images with boxes. The examples to train on are the images that have any, then the same ones mirrored."""

    # What the loss is the sum of.
    parts = ("loss_classifier", "loss_box_reg", "loss_objectness", "loss_rpn_box_reg")

    def __init__(self, plan: dict[str, Any], out: Path) -> None:
        data = plan["data"]
        if data.get("generated"):
            root = pictures.write(out / "data", data["generated"], plan["training"]["seed"])
        else:
            root = sources.resolve(data["train"], "the folder of COCO")
        self.files = {part: root / "annotations" / f"instances_{name}.json" for part, name in FOLDERS.items()}
        self.folders = {part: root / name for part, name in FOLDERS.items()}
        read = {part: _read(path) for part, path in self.files.items()}
        if read["train"][1] != read["eval"][1]:
            differing = sorted(set(read["train"][1].items()) ^ set(read["eval"][1].items()))
            raise TraceError(
                f"{self.files['train'].name} and {self.files['eval'].name} have other categories: {differing[:3]}",
                "both files need the same numbers and names",
            )
        trained = [example for example in read["train"][0] if len(example.boxes)]
        self.examples = {
            "train": trained[: data.get("limit_train") or None],
            "eval": read["eval"][0][: data.get("limit_eval") or None],
        }
        # Labels are the numbers of the categories; 0 is the background.
        self.classes = max(read["train"][1], default=0) + 1
        self.train, self.eval = ({"image": np.array([one.id for one in self.examples[part]])} for part in FOLDERS)
        self.checksums: dict[str, dict[str, int]] = {part: {} for part in FOLDERS}

    def mirrored(self, order: list[list[int]], seed: int) -> list[list[int]]:
        """The order with half of the examples mirrored, by chance."""
        generator = torch.Generator().manual_seed(seed + 1)
        count = len(self.examples["train"])
        chance = [torch.rand(len(indices), generator=generator).tolist() for indices in order]
        return [
            [index + count * (drawn < MIRRORED) for index, drawn in zip(*pair, strict=True)]
            for pair in zip(order, chance, strict=True)
        ]

    def batch(self, indices: list[int]) -> dict[str, Any]:
        """The inputs of a training step."""
        count = len(self.examples["train"])
        images, targets = [], []
        for index in indices:
            example, mirrored = self.examples["train"][index % count], index >= count
            image = self.image("train", example)
            images.append(image.flip(-1) if mirrored else image)
            boxes = example.mirrored() if mirrored else example.boxes
            targets.append({"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(example.labels)})
        return {"images": images, "targets": targets}

    def evaluation_batch(self, indices: list[int]) -> dict[str, Any]:
        """The inputs of a run without a loss."""
        return {"images": [self.image("eval", self.examples["eval"][index]) for index in indices]}

    def image(self, part: str, example: Example) -> torch.Tensor:
        """The image, red, green and blue from 0 to 1."""
        path = self.folders[part] / example.file
        try:
            content = path.read_bytes()
            opened = Image.open(io.BytesIO(content))
            if opened.format != "JPEG":
                raise TraceError(f"{path}: it is {opened.format}, and pass 2 reads JPEG", "convert the image to JPEG")
            pixels = np.array(opened.convert("RGB"))
        except FileNotFoundError as error:
            raise TraceError(f"{path}: there is no such image", f"is {path.parent} that of the annotations?") from error
        except (OSError, ValueError, SyntaxError) as error:
            raise TraceError(f"{path}: {error}", "is the image whole?") from error
        if pixels.shape[:2] != (example.height, example.width):
            height, width = pixels.shape[:2]
            raise TraceError(
                f"{path}: it has {width} by {height} pixels, its annotation says {example.width} by {example.height}"
            )
        self.checksums[part][str(example.id)] = zlib.crc32(content)
        return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255

    def rows(self, part: str) -> list[bytes]:
        """The bytes of each example."""
        plain = [example.row(mirrored=False) for example in self.examples[part]]
        if part == "eval":
            return plain
        return plain + [example.row(mirrored=True) for example in self.examples[part]]

    def judge(self, model: nn.Module, size: int, device: str) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """The metrics of COCO for the trained model, in points, and what it found."""
        model.eval()
        found: list[dict[str, Any]] = []
        with torch.no_grad():
            for indices in batches(len(self.examples["eval"]), size):
                examples = [self.examples["eval"][index] for index in indices]
                images = moved(self.evaluation_batch(indices), device)["images"]
                for example, result in zip(examples, model(images), strict=True):
                    boxes = result["boxes"].cpu()
                    boxes[:, 2:] -= boxes[:, :2]
                    labels, scores = result["labels"].tolist(), result["scores"].tolist()
                    found += [
                        {"image_id": example.id, "category_id": label, "bbox": box, "score": score}
                        for box, label, score in zip(boxes.tolist(), labels, scores, strict=True)
                    ]
        model.train()
        return self.metrics(found), found

    def metrics(self, found: list[dict[str, Any]]) -> dict[str, float]:
        """The numbers of COCOeval in points; those that no annotation counts for are left out."""
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO(str(self.files["eval"]))
            known = set(truth.getCatIds())
            # pycocotools adds to what it is given.
            found = [dict(one) for one in found if one["category_id"] in known]
            results = truth.loadRes(found) if found else COCO()
            evaluation = COCOeval(truth, results, "bbox")
            evaluation.params.imgIds = sorted(example.id for example in self.examples["eval"])
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        numbers = zip(METRICS, evaluation.stats.tolist(), strict=True)
        return {name: 100.0 * number for name, number in numbers if number >= 0}


def _read(path: Path) -> tuple[list[Example], dict[int, str]]:
    """The images of a file of annotations with their objects, and the categories."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        categories = {category["id"]: category.get("name", "") for category in content["categories"]}
        objects: dict[int, list[dict[str, Any]]] = {image["id"]: [] for image in content["images"]}
        for annotation in content["annotations"]:
            if annotation["id"] == 0:
                raise TraceError(f"{path}: the number 0 means no match to pycocotools", "number annotations from 1")
            if annotation["image_id"] not in objects:
                raise TraceError(f"{path}: annotation {annotation['id']}: there is no image {annotation['image_id']}")
            if annotation["category_id"] not in categories:
                number = annotation["category_id"]
                raise TraceError(f"{path}: annotation {annotation['id']}: there is no category {number}")
            if not _is_box(annotation["bbox"]):
                raise TraceError(
                    f"{path}: annotation {annotation['id']}: the box is {annotation['bbox']}",
                    "a box is left, top, width and height in pixels",
                )
            if not annotation.get("iscrowd"):
                objects[annotation["image_id"]].append(annotation)
        examples = [_example(image, objects[image["id"]]) for image in content["images"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: no annotations of COCO: {type(error).__name__}: {error}") from error
    if not examples:
        raise TraceError(f"{path}: it has no images")
    return examples, categories


def _is_box(value: object) -> bool:
    numbers = isinstance(value, list) and len(value) == BOX
    return numbers and all(isinstance(one, int | float) and math.isfinite(one) for one in value)


def _example(image: dict[str, Any], objects: list[dict[str, Any]]) -> Example:
    """Crowds are left out already; boxes are clipped to the image, and those without an area are left out."""
    boxes = torch.tensor([one["bbox"] for one in objects], dtype=torch.float32).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    boxes[:, 0::2].clamp_(min=0, max=image["width"])
    boxes[:, 1::2].clamp_(min=0, max=image["height"])
    kept = (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 2] > boxes[:, 0])
    labels = torch.tensor([one["category_id"] for one in objects], dtype=torch.int64)
    return Example(
        image["id"],
        image["file_name"],
        image["width"],
        image["height"],
        boxes[kept].numpy(),
        labels[kept].numpy(),
    )
