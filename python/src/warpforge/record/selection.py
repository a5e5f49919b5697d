"""A detector's step with static shapes: what torchvision chooses is recorded, and comes in as tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as PyTorch calls it)
from safetensors.torch import load_file, save_file
from torch import nn
from torchvision.models.detection.rpn import concat_box_prediction_layers
from torchvision.ops import roi_align

from warpforge.errors import TraceError
from warpforge.factory import Model
from warpforge.golden import GoldenFolder
from warpforge.record.coco import Coco
from warpforge.record.rcnn import LEVELS, POOLED, SCALES, Detector
from warpforge.tracing import Captured, capture

# Where the smooth L1 losses of torchvision become linear.
BETA = 1 / 9
# The graphs of a step, and of the two stages of the evaluation.
STEP, FIRST, SECOND = "model.pt2", "eval.pt2", "eval-regions.pt2"


class Step(nn.Module):
    """The losses of a training step on chosen anchors and regions. The names of its parameters are the detector's."""

    def __init__(self, model: Detector) -> None:
        super().__init__()
        self.backbone, self.rpn, self.roi_heads = model.backbone, model.rpn, model.roi_heads

    def forward(  # noqa: PLR0913 (each is an input of the graph)
        self,
        *,
        images: torch.Tensor,
        rpn_index: torch.Tensor,
        rpn_label: torch.Tensor,
        rpn_target: torch.Tensor,
        rpn_valid: torch.Tensor,
        rpn_positive: torch.Tensor,
        regions: torch.Tensor,
        region_level: torch.Tensor,
        region_label: torch.Tensor,
        region_target: torch.Tensor,
        region_valid: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """The sum of the losses, then the losses."""
        features = list(self.backbone(images).values())
        objectness, deltas = concat_box_prediction_layers(*self.rpn.head(features))
        count = rpn_valid.sum()
        of_anchors = F.binary_cross_entropy_with_logits(objectness.flatten()[rpn_index], rpn_label, reduction="none")
        to_anchors = F.smooth_l1_loss(deltas[rpn_index], rpn_target, beta=BETA, reduction="none")
        logits, codes = second_stage(self.roi_heads, features[: len(LEVELS)], regions, region_level)
        number = region_valid.sum()
        of_regions = F.cross_entropy(logits, region_label, reduction="none")
        rows = torch.arange(codes.shape[0], device=codes.device)
        codes = codes.reshape(codes.shape[0], -1, 4)[rows, region_label]
        to_regions = F.smooth_l1_loss(codes, region_target, beta=BETA, reduction="none")
        objects = ((region_label > 0) * region_valid)[:, None]
        losses = {
            "loss_classifier": (of_regions * region_valid).sum() / number,
            "loss_box_reg": (to_regions * objects).sum() / number,
            "loss_objectness": (of_anchors * rpn_valid).sum() / count,
            "loss_rpn_box_reg": (to_anchors * rpn_positive[:, None]).sum() / count,
        }
        return {"loss": sum(losses.values())} | losses


class FirstStage(nn.Module):
    """From images to features, and how sure the first stage is of each anchor and where its object is."""

    def __init__(self, model: Detector) -> None:
        super().__init__()
        self.backbone, self.rpn = model.backbone, model.rpn

    def forward(self, *, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """Rows are images."""
        features = list(self.backbone(images).values())
        objectness, deltas = concat_box_prediction_layers(*self.rpn.head(features))
        count = images.shape[0]
        found = {"objectness": objectness.reshape(count, -1), "deltas": deltas.reshape(count, -1, 4)}
        return found | {f"features_{at}": level for at, level in enumerate(features)}


class SecondStage(nn.Module):
    """From features and regions to classes and boxes."""

    def __init__(self, model: Detector) -> None:
        super().__init__()
        self.roi_heads = model.roi_heads

    def forward(  # noqa: PLR0913 (each is an input of the graph)
        self,
        *,
        features_0: torch.Tensor,
        features_1: torch.Tensor,
        features_2: torch.Tensor,
        features_3: torch.Tensor,
        regions: torch.Tensor,
        region_level: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """Rows are regions."""
        features = [features_0, features_1, features_2, features_3]
        logits, codes = second_stage(self.roi_heads, features, regions, region_level)
        return {"logits": logits, "codes": codes}


def second_stage(
    heads: nn.Module, features: list[torch.Tensor], regions: torch.Tensor, level: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The classes and boxes of regions, each of which is read from one level of the pyramid."""
    bins = torch.zeros((), dtype=features[0].dtype, device=features[0].device)
    for at, (values, scale) in enumerate(zip(features, SCALES, strict=True)):
        own = roi_align(values, regions, (POOLED, POOLED), scale, 2)
        bins = bins + torch.where((level == at)[:, None, None, None], own, 0.0)
    return heads.box_predictor(heads.box_head(bins))


class Replaying(Step):
    """The step as the training loop calls it, on choices that were made before: for another element type."""

    def __init__(self, model: Detector, chosen: Selection) -> None:
        super().__init__(model)
        self.transform, self.chosen = model.transform, chosen

    def forward(self, images: list[torch.Tensor], targets: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """The losses of images whose choices are being replayed."""
        prepared, _ = self.transform(images, targets)
        wide = prepared.tensors.dtype
        given = {
            name: value.to(wide) if value.is_floating_point() else value for name, value in self.chosen.last.items()
        }
        return super().forward(images=prepared.tensors, **given)


class Selection:
    """The choices of all forward passes of a run: made in the golden run, taken from there in another."""

    draws = False

    def __init__(self, folder: GoldenFolder, model: Detector) -> None:
        self.folder, self.model = folder, model
        self.last: dict[str, torch.Tensor] = {}
        self.images = torch.empty(0)

    @contextmanager
    def record(self, run: int) -> Iterator[None]:
        """Around a forward pass of the golden run."""
        with watched(self.model) as seen:
            yield
        inputs = static_inputs(self.model, seen)
        self.images = inputs.pop("images")
        self.last = inputs
        path = self.folder.path / file_name(run)
        path.parent.mkdir(exist_ok=True)
        save_file(self.last, path)
        self.folder.add(file_name(run))

    @contextmanager
    def replay(self, run: int) -> Iterator[None]:
        """Around a forward pass of another run."""
        self.last = load_file(self.folder.path / file_name(run))
        yield

    def inputs(self, _batch: object) -> dict[str, torch.Tensor]:
        """The inputs of the exported graph for the last forward pass."""
        return {"images": self.images} | self.last


def file_name(run: int) -> str:
    """The file of a forward pass's choices."""
    return f"selection/run_{run:06d}.safetensors"


@contextmanager
def watched(model: Detector) -> Iterator[dict[str, Any]]:
    """Fills a dictionary with what the model chooses. What computes is torchvision, unchanged."""
    seen: dict[str, Any] = {}

    def keep(owner: Any, name: str, what: Callable[[tuple[Any, ...], Any], dict[str, Any]]) -> Callable[[], None]:  # noqa: ANN401
        own, had = getattr(owner, name), name in vars(owner)

        def wrapper(*args: Any) -> Any:  # noqa: ANN401 (whatever it takes and gives)
            returned = own(*args)
            seen.update(what(args, returned))
            return returned

        vars(owner)[name] = wrapper

        def restore() -> None:
            if had:
                vars(owner)[name] = own
            else:
                del vars(owner)[name]

        return restore

    rpn, heads = model.rpn, model.roi_heads
    with ExitStack() as stack:
        for owner, name, what in (
            (model.transform, "forward", lambda _, given: {"images": given[0].tensors.detach().clone()}),
            (rpn, "fg_bg_sampler", lambda _, given: {"positive": given[0], "negative": given[1]}),
            (rpn, "compute_loss", lambda args, _: {"labels": args[2], "targets": args[3]}),
            (heads, "select_training_samples", lambda _, given: {"regions": (given[0], given[2], given[3])}),
        ):
            stack.callback(keep(owner, name, what))
        yield seen


def static_inputs(model: Detector, seen: dict[str, Any]) -> dict[str, torch.Tensor]:
    """What was chosen as tensors of a fixed size, with what counts marked."""
    images = seen["images"].cpu()
    count = len(images)
    positive = torch.where(torch.cat(seen["positive"]))[0].cpu()
    negative = torch.where(torch.cat(seen["negative"]))[0].cpu()
    index = torch.cat([positive, negative])
    anchors = model.rpn.fg_bg_sampler.batch_size_per_image * count
    of_anchor = torch.cat(seen["labels"]).cpu()[index]
    # The target of an anchor without an object is no number, and none is asked for.
    to_anchor = torch.cat(seen["targets"]).cpu()[index]
    to_anchor[len(positive) :] = 0.0
    boxes, labels, targets = ([value.detach().cpu() for value in values] for values in seen["regions"])
    number = torch.cat([torch.full((len(of), 1), float(at)) for at, of in enumerate(boxes)])
    regions, label = torch.cat([number, torch.cat(boxes)], 1), torch.cat(labels)
    target = torch.where((label > 0)[:, None], torch.cat(targets), 0.0)
    most = model.roi_heads.fg_bg_sampler.batch_size_per_image * count
    level = model.roi_heads.box_roi_pool.map_levels(boxes)
    return {
        "images": images,
        "rpn_index": _padded(index, anchors),
        "rpn_label": _padded(of_anchor, anchors),
        "rpn_target": _padded(to_anchor, anchors),
        "rpn_valid": _padded(torch.ones(len(index)), anchors),
        "rpn_positive": _padded(torch.ones(len(positive)), anchors),
        "regions": _padded(regions, most),
        "region_level": _padded(level, most),
        "region_label": _padded(label, most),
        "region_target": _padded(target, most),
        "region_valid": _padded(torch.ones(len(regions)), most),
    }


def _padded(values: torch.Tensor, count: int) -> torch.Tensor:
    if len(values) > count:
        raise TraceError(f"{len(values)} were chosen, more than the {count} that a step may have")
    return torch.cat([values, values.new_zeros((count - len(values), *values.shape[1:]))]).contiguous()


def graphs(plan: dict[str, Any], model: Detector, batch: dict[str, Any], folder: GoldenFolder) -> Captured:
    """Exports a step, and both stages of the evaluation."""
    name = plan["benchmark"]
    model = copy.deepcopy(model)
    with torch.no_grad(), watched(model) as seen:
        model(**batch)
    inputs = static_inputs(model, seen)
    captured = capture(Model(Step(model), (), inputs), name, train=True, parts=Coco.parts)
    captured.save(folder.path / STEP)
    model.eval()
    size = plan["training"]["eval_batch_size"]
    images = inputs["images"][:1].expand(size, -1, -1, -1).contiguous()
    first = capture(Model(FirstStage(model), (), {"images": images}), name, train=False)
    first.save(folder.path / FIRST)
    most = model.rpn.post_nms_top_n() * size
    given = {f"features_{at}": first.outputs[f"features_{at}"] for at in range(len(LEVELS))}
    given |= {"regions": torch.tensor([[0.0, 0.0, 0.0, 32.0, 32.0]]).repeat(most, 1)}
    given |= {"region_level": torch.zeros(most, dtype=torch.int64)}
    capture(Model(SecondStage(model), (), given), name, train=False).save(folder.path / SECOND)
    for file in (FIRST, SECOND):
        folder.add(file)
    return captured
