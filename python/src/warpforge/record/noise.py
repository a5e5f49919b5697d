"""The noise floor: how far PyTorch's run in f32 is from the same in f64, and which gradients are nothing but rounding.

A gradient that is zero by mathematics, such as that of a key's bias before a softmax, is rounding in f32. Adam turns it
into steps of the learning rate's size, so that no two runs whose sums have another order agree there.
"""

from __future__ import annotations

from typing import Any

import torch

from warpforge.record.training import Data, floats

# A gradient whose f32 and f64 values differ by more than this part of its largest value has no digit to compare.
ROUNDING = 0.5
# What weights and gradients may differ by, relatively and absolutely, and how many times the noise floor that may be,
# as `warpt validate` has it.
TOLERANCES = {"weights": (1e-4, 1e-6), "gradients": (1e-3, 1e-5), "losses": (1e-4, 1e-6)}
TIMES = 4
# Why a tensor of a deep model is listed.
DEEP = {
    "weights": "PyTorch in f32 is as far from its own run in f64",
    "gradients": "PyTorch is as far from its own run in f64, in f32 or with inputs of ReLU on the other side of zero",
    "losses": "PyTorch in f32 is as far from its own run in f64 up to the same step",
}
# What activations may differ by without being listed: far below any tolerance.
VISIBLE = 2e-6


class Widened:
    """Data whose floats are f64."""

    def __init__(self, data: Data) -> None:
        self.data, self.train, self.eval = data, data.train, data.eval
        self.evaluation_batch, self.metrics = data.evaluation_batch, data.metrics
        self.parts = getattr(data, "parts", ())

    def batch(self, indices: list[int]) -> dict[str, torch.Tensor]:
        """The inputs of a training step."""
        return floats(self.data.batch(indices), torch.float64)


class Noise:
    """Compares a run in f64 with the golden one, tensor by tensor.

    deep: whether rounding grows on its way through the model, so that any tensor may be further from f64 than its
    tolerance.
    """

    def __init__(self, *, deep: bool = False) -> None:
        self.deep = deep
        self.outside: set[tuple[str, str]] = set()
        self.largest: dict[tuple[str, str], float] = {}
        self.curves: dict[str, list[float]] = {}
        self.rounding: dict[str, list[tuple[float, float, float]]] = {}
        self.shifted: dict[str, float] = {}

    def compare(
        self, kind: str, golden: dict[str, torch.Tensor], other: dict[str, torch.Tensor], step: str = ""
    ) -> None:
        """Takes the tensors of a class in both runs, of a step or of the end."""
        for name, value in golden.items():
            difference = (value.double() - other[name].double()).abs()
            apart = difference.max().item() if difference.numel() else 0.0
            label = f"{step}/{name}" if step else name
            self.largest[kind, label] = max(self.largest.get((kind, label), 0.0), apart)
            relative, absolute = TOLERANCES[kind]
            if bool((TIMES * difference > absolute + relative * value.double().abs()).any()):
                self.outside.add((kind, label))

    def losses(self, golden: dict[str, list[float]], other: dict[str, list[float]]) -> None:
        """Takes the losses of both runs. What a step may differ by is the most that the runs were apart up to it."""
        for name, values in golden.items():
            single, wide = (torch.tensor(of, dtype=torch.float64) for of in (values, other[name]))
            self.compare("losses", {name: single}, {name: wide})
            self.curves[name] = (single - wide).abs().cummax(0).values.tolist()

    def gradients(self, golden: dict[str, torch.Tensor], wide: dict[str, torch.Tensor], step: str) -> None:
        """Takes the gradients of a step in both runs."""
        self.compare("gradients", golden, wide, step)
        for name, value in golden.items():
            numbers = (
                value.double().abs().max().item(),
                wide[name].abs().max().item(),
                (value.double() - wide[name]).abs().max().item(),
            )
            self.rounding.setdefault(name, []).append(numbers)

    def rounding_only(self) -> dict[str, str]:
        """The parameters whose gradient has no digit at any step, each with the reason."""
        found = {}
        for name, seen in self.rounding.items():
            if all(error > ROUNDING * single for single, _, error in seen):
                single, double = max(one for one, _, _ in seen), max(one for _, one, _ in seen)
                found[name] = f"its gradient is rounding: largest {single:.1e} in f32, {double:.1e} in f64"
        return found

    def activations(self, label: str, golden: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
        """Takes what the graph gives with the golden weights, and with other values of the parameters above."""
        for name, value in golden.items():
            if value.is_floating_point() and value.numel():
                apart = (value.double() - other[name].double()).abs().max().item()
                if apart > VISIBLE:
                    self.shifted[f"{label}/{name}"] = apart

    def report(self) -> dict[str, Any]:
        """What `warpt validate` reads: how far the runs are apart, by class and name, and why."""
        reasons = self.rounding_only()
        found: dict[str, dict[str, Any]] = {
            kind: {name: {"max_abs": self._largest(kind, name), "reason": reasons[name]} for name in reasons}
            for kind in ("weights", "gradients")
        } | {"losses": {}}
        if self.deep:
            for kind, label in sorted(self.outside):
                if label.rpartition("/")[2] not in reasons:
                    found[kind][label] = {"max_abs": self.largest[kind, label], "reason": DEEP[kind]}
            for name, listed in found["losses"].items():
                listed["each"] = self.curves[name]
        of = f"it depends on parameters whose gradient is rounding: {', '.join(reasons)}"
        found["activations"] = {label: {"max_abs": apart, "reason": of} for label, apart in self.shifted.items()}
        return {"schema_version": 1, "runs": ["f32", "f64"], "tensors": found}

    def _largest(self, kind: str, name: str) -> float:
        """Of all steps: rounding is no smaller at one than at another."""
        every = ((of, label.rpartition("/")[2], apart) for (of, label), apart in self.largest.items())
        return max((apart for of, label, apart in every if (of, label) == (kind, name)), default=0.0)


def shifted_by(value: torch.Tensor, distance: float) -> torch.Tensor:
    """The tensor with every element a distance away, to one side and the other in turn."""
    signs = torch.ones(value.numel())
    signs[1::2] = -1.0
    return value + distance * signs.reshape(value.shape)
