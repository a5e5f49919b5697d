"""The twelve numbers of pycocotools for each line of standard input: a dataset and detections."""

import contextlib
import io
import json
import sys

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def coco(dataset: dict) -> COCO:
    loaded = COCO()
    loaded.dataset = dataset
    loaded.createIndex()
    return loaded


def stats(case: dict) -> list[float]:
    truth = coco(case["dataset"])
    # loadRes cannot load an empty list.
    empty = {**case["dataset"], "annotations": []}
    found = truth.loadRes(case["detections"]) if case["detections"] else coco(empty)
    evaluation = COCOeval(truth, found, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats.tolist()


for line in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()):
        numbers = stats(json.loads(line))
    print(json.dumps(numbers))
