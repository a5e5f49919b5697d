"""Images as PIL and torchvision see them: argv is a folder to write to and `random` or a folder of COCO.

For image N: `N.jpg` (random ones), `N.rgb`, the decoded pixels, `N.f32`, the prepared ones, and `N.boxes`. A line of
JSON for each on standard output.
"""

import json
import pathlib
import random
import sys

import numpy as np
import torch
from PIL import Image
from torchvision.models.detection.transform import GeneralizedRCNNTransform

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def write(target: pathlib.Path, file: pathlib.Path, boxes: list, min_size: int, max_size: int) -> None:
    pixels = np.array(Image.open(file).convert("RGB"))
    transform = GeneralizedRCNNTransform(min_size, max_size, MEAN, STD).eval()
    values = torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
    boxes = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
    images, targets = transform([values], [{"boxes": boxes}])
    target.with_suffix(".rgb").write_bytes(pixels.tobytes())
    target.with_suffix(".f32").write_bytes(images.tensors.contiguous().numpy().tobytes())
    target.with_suffix(".boxes").write_bytes(targets[0]["boxes"].contiguous().numpy().tobytes())
    sizes = {"file": str(file), "min_size": min_size, "max_size": max_size, "boxes": boxes.tolist()}
    print(json.dumps({**sizes, "dims": list(images.tensors.shape), "size": list(images.image_sizes[0])}))


def save_random(file: pathlib.Path, seed: int) -> None:
    """A JPEG of any kind that PIL writes."""
    draw = random.Random(seed)
    noise = np.random.default_rng(seed)
    width, height = draw.randint(1, 70), draw.randint(1, 70)
    coarse = noise.integers(0, 256, (draw.randint(1, 8), draw.randint(1, 8), 3), dtype=np.uint8)
    image = np.array(Image.fromarray(coarse).resize((width, height), Image.BICUBIC)).astype(int)
    image = image + noise.integers(-30, 31, image.shape)
    mode = draw.choice(["RGB", "RGB", "RGB", "L", "CMYK"])
    image = Image.fromarray(image.clip(0, 255).astype(np.uint8)).convert(mode)
    options = {"quality": draw.randint(20, 100), "subsampling": draw.randint(0, 2)}
    options["progressive"] = draw.random() < 0.5
    options["optimize"] = draw.random() < 0.5
    if draw.random() < 0.3:
        options["restart_marker_blocks"] = draw.randint(1, 5)
    if draw.random() < 0.3:
        exif = Image.Exif()
        exif[0x0112] = draw.randint(1, 8)
        options["exif"] = exif
    image.save(file, **options)


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    if sys.argv[2] == "random":
        for index in range(300):
            save_random(out / f"{index}.jpg", index)
            write(out / str(index), out / f"{index}.jpg", [[0.3, 0.7, 5.1, 9.9]], 64, 96)
        return
    coco = pathlib.Path(sys.argv[2])
    index = 0
    for split in ("train2017", "val2017"):
        data = json.loads((coco / f"annotations/instances_{split}.json").read_text())
        for image in data["images"]:
            boxes = [each["bbox"] for each in data["annotations"] if each["image_id"] == image["id"]]
            boxes = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
            boxes[:, 2:] += boxes[:, :2]
            for sizes in ((800, 1333), (128, 192)):
                write(out / str(index), coco / split / image["file_name"], boxes.tolist(), *sizes)
                index += 1


main()
