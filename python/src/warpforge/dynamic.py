"""Dimensions that stay symbolic in the exported graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch.export import Dim, ShapesCollection

from warpforge.errors import TraceError
from warpforge.factory import Model

FORM = re.compile(
    r"(?P<name>[A-Za-z_]\w*)"
    r"(?:=(?:(?P<input>[A-Za-z_][\w.]*)\.)?(?P<dim>\d+)(?::(?P<min>\d*)(?::(?P<max>\d*))?)?)?"
)
# torch.export makes 0 and 1 constants of the graph, whatever is asked for
SMALLEST_EXAMPLE = 2


@dataclass(frozen=True)
class DynamicDim:
    """One symbolic dimension: its name, where it is, and its range.

    As text `NAME`, `NAME=DIM`, `NAME=DIM:MIN:MAX` or `NAME=INPUT.DIM:MIN:MAX`. Without INPUT it is that dimension
    of every tensor argument that has it; DIM is 0 unless given.
    """

    name: str
    dim: int = 0
    input: str | None = None
    min: int | None = None
    max: int | None = None

    @classmethod
    def parse(cls, text: str) -> DynamicDim:
        """Reads the textual form."""
        match = FORM.fullmatch(text)
        if match is None:
            raise TraceError(
                f"`{text}` does not describe a dynamic dimension",
                "write NAME, NAME=DIM, NAME=DIM:MIN:MAX or NAME=INPUT.DIM:MIN:MAX, such as batch or seq=1:2:512",
            )
        low, high = (int(match[key]) if match[key] else None for key in ("min", "max"))
        if low is not None and high is not None and low > high:
            raise TraceError(f"the dynamic dimension `{text}` has the empty range {low} to {high}")
        return cls(match["name"], int(match["dim"] or 0), match["input"], low, high)

    def __str__(self) -> str:
        place = f"{self.input}.{self.dim}" if self.input else str(self.dim)
        limits = "".join(f":{limit}" for limit in (self.min, self.max) if limit is not None)
        return f"{self.name}={place}{limits}"


def dynamic_shapes(model: Model, dims: list[DynamicDim]) -> Any | None:  # noqa: ANN401 (torch's own nested form)
    """The shapes that `torch.export.export` takes for these dimensions; nothing when there are none."""
    if not dims:
        return None
    tensors = model.named_tensors()
    marks: dict[str, dict[int, Dim]] = {}
    symbols: dict[str, Dim] = {}
    for dim in dims:
        places = [(name, tensor) for name, tensor in tensors if dim.input in (None, name) and tensor.dim() > dim.dim]
        if not places:
            names = ", ".join(f"{name}{list(tensor.shape)}" for name, tensor in tensors)
            raise TraceError(f"no tensor argument has the dynamic dimension {dim}", f"the arguments are: {names}")
        symbol = symbols.setdefault(dim.name, Dim(dim.name, min=dim.min, max=dim.max))
        for name, tensor in places:
            if tensor.shape[dim.dim] < SMALLEST_EXAMPLE:
                raise TraceError(
                    f"dimension {dim.dim} of the example for `{name}` is {tensor.shape[dim.dim]}, "
                    f"so torch.export cannot keep it dynamic as `{dim.name}`",
                    f"give an example of at least {SMALLEST_EXAMPLE} there",
                )
            marks.setdefault(name, {})[dim.dim] = symbol
    shapes = ShapesCollection()
    for name, tensor in tensors:
        if name in marks:
            shapes[tensor] = marks[name]
    return shapes.dynamic_shapes(model.module, model.args, model.kwargs)
