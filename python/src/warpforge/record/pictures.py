"""Pictures that are made up, in a folder as COCO lays it out: coloured shapes on a noisy ground."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

CATEGORIES = ("square", "disc", "bar")
# Sides of the pictures: some are wide, some are high.
SIZES = ((160, 120), (120, 160), (144, 144))
# Smallest and largest side of a shape.
SIDES = (24, 72)
MOST_SHAPES = 4
# Decoders differ in pictures that are progressive or grey: every so many-th is.
PROGRESSIVE, GREY = 4, 5
# The categories that are not squares.
DISC, BAR = 1, 2


def write(root: Path, sizes: dict[str, int], seed: int) -> Path:
    """Writes pictures to train on and to evaluate with, and their annotations."""
    random = np.random.default_rng(seed)
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    for name, count in (("train2017", sizes["paragraphs"]), ("val2017", sizes["evaluation"])):
        (root / name).mkdir(exist_ok=True)
        content: dict[str, list[dict[str, Any]]] = {
            "images": [],
            "categories": [{"id": at + 1, "name": shape} for at, shape in enumerate(CATEGORIES)],
            "annotations": [],
        }
        for at in range(count):
            picture, objects = _picture(random, SIZES[at % len(SIZES)])
            file = f"{at + 1:012d}.jpg"
            picture = picture.convert("L") if (at + 1) % GREY == 0 else picture
            picture.save(root / name / file, quality=90, progressive=(at + 1) % PROGRESSIVE == 0)
            width, height = picture.size
            content["images"].append({"id": at + 1, "file_name": file, "width": width, "height": height})
            for category, box in objects:
                number = len(content["annotations"]) + 1
                common = {"id": number, "image_id": at + 1, "category_id": category, "iscrowd": 0}
                content["annotations"].append(common | {"bbox": box, "area": box[2] * box[3]})
        (root / "annotations" / f"instances_{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return root


def _picture(random: np.random.Generator, size: tuple[int, int]) -> tuple[Image.Image, list[tuple[int, list[float]]]]:
    """A picture, and the category and box of each shape in it."""
    ground = random.integers(90, 166, (size[1], size[0], 3), dtype=np.uint8)
    picture = Image.fromarray(ground)
    draw = ImageDraw.Draw(picture)
    objects = []
    for _ in range(random.integers(1, MOST_SHAPES + 1)):
        category = int(random.integers(len(CATEGORIES)))
        width = int(random.integers(*SIDES))
        height = width // 3 if category == BAR else width
        left, top = (int(random.integers(0, side - length)) for side, length in zip(size, (width, height), strict=True))
        box = [left, top, left + width - 1, top + height - 1]
        colour = tuple(int(value) for value in np.eye(3)[category] * 200 + random.integers(0, 50, 3))
        (draw.ellipse if category == DISC else draw.rectangle)(box, fill=colour)
        objects.append((category + 1, [float(left), float(top), float(width), float(height)]))
    return picture, objects
