"""Lists the operators that `warpt import` refuses as they are and takes after PyTorch's decompositions.

`decomposed.py FOLDER > crates/snakegrinder/src/lower/decomposed.txt`, FOLDER being that of the lowerings. Each operator
is exported from samples of PyTorch's own tests, decomposed, and held against the names that the lowerings have.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db

# Samples of one operator.
SAMPLES = 3


class Called(nn.Module):
    """A function with all but its tensors given."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

    def forward(self, x: object) -> object:
        """What the function gives."""
        return self.function(x, *self.args, **self.kwargs)


def main() -> None:
    """Prints the list."""
    warnings.filterwarnings("ignore")
    lowered = names(Path(sys.argv[1]))
    wanted = {str(op) for op in torch.export.default_decompositions() if not has_lowering(lowered, str(op))}
    found: dict[str, bool] = {}
    for module, args in calls(wanted):
        try:
            program = torch.export.export(module, args)
            refused = {target for target in targets(program) if target in wanted}
            if not refused:
                continue
            rest = targets(program.run_decompositions())
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        taken = all(has_lowering(lowered, target) for target in rest)
        for target in refused:
            found[target] = found.get(target, True) and taken
    print("\n".join(sorted(target for target, taken in found.items() if taken)))


def names(folder: Path) -> set[str]:
    """The operators that the tables of lowerings have."""
    source = "\n".join(file.read_text(encoding="utf-8") for file in folder.glob("**/*.rs"))
    others = (re.findall(r'"([^"]+)"', listed) for listed in re.findall(r"\.also\(&\[([^\]]*)\]", source))
    return {*re.findall(r'\b(?:op|view)\(\s*"([^"]+)"', source), *(name for found in others for name in found)}


def has_lowering(lowered: set[str], target: str) -> bool:
    """Whether there is a lowering, perhaps that of the operator which does not write in place."""
    space, base, overload = ([*target.split("."), "", ""])[:3]
    ways = [target]
    if overload == "out":
        ways.append(f"{space}.{base}.default")
    ways.append(f"{space}.{base.removesuffix('_copy')}.{overload}")
    ways.append(f"{space}.{base.removesuffix('_')}.{overload}")
    return any(way in lowered for way in ways)


def targets(program: torch.export.ExportedProgram) -> set[str]:
    """The operators of a graph."""
    called = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    return {target for target in called if "getitem" not in target}


def calls(wanted: set[str]) -> Iterator[tuple[nn.Module, tuple]]:
    """Calls of functions that may be among the operators."""
    bases = {target.split(".")[1] for target in wanted if target.count(".") > 1}
    for info in op_db:
        own = {info.name.replace(".", "_"), info.aten_name, *(alias.name.replace(".", "_") for alias in info.aliases)}
        if not own & bases or torch.float32 not in info.dtypes:
            continue
        functions = [info.op, *(alias.op for alias in info.aliases)]
        for sample in islice(info.sample_inputs("cpu", torch.float32), SAMPLES):
            yield from ((Called(function, sample.args, sample.kwargs), (sample.input,)) for function in functions)
    x = torch.rand(4, 3)
    for cell in (nn.GRUCell(3, 5), nn.LSTMCell(3, 5), nn.RNNCell(3, 5), nn.RNNCell(3, 5, nonlinearity="relu")):
        yield cell, (x,)


if __name__ == "__main__":
    main()
