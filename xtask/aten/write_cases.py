"""Writes cases for lowerings: `write_cases.py ENTRIES.json FOLDER`.

ENTRIES.json has the operators of each family, a family being a file of lowerings. FOLDER gets two files for each
family, graphs and tensors, and `made.json` with the version of PyTorch and the seed. These are candidates:
`cargo xtask aten-cases` keeps those that the importer takes.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import zip_longest
from pathlib import Path

import torch
from calls import Call, name_of
from graphs import Case, of_call
from programs import programs
from record import SEED, TYPES, record, seed
from safetensors.torch import save
from samples import written

# Candidates of one operator from the database, at most.
CANDIDATES = 16
# Tensors of one case, results included, in bytes.
LARGEST = 4096


def main() -> None:
    """Writes the families of a file."""
    warnings.filterwarnings("ignore")
    families: dict[str, list[str]] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(sys.argv[2])
    wanted = {name for names in families.values() for name in names}
    by_hand: dict[str, list[Call]] = {}
    for call in written():
        by_hand.setdefault(name_of(call.target), []).append(call)
    several: dict[str, list[Case]] = {}
    for case in programs():
        several.setdefault(case.op, []).append(case)
    recorded = record(wanted)
    for family, names in sorted(families.items()):
        cases = []
        for name in sorted(names):
            # An operator with a graph of its own needs one: a single node would not do.
            cases += several.get(name) or chosen(name, by_hand.get(name, []), recorded.get(name, []))
        if cases:
            write(folder, family, cases)
    made = {"torch": torch.__version__.split("+")[0], "seed": SEED}
    (folder / "made.json").write_text(json.dumps(made) + "\n", encoding="utf-8")


def chosen(name: str, written: list[Call], recorded: list[Call]) -> list[Case]:
    """All that were written by hand, and recorded ones of different kinds: element types in turn, the best first."""
    found: list[Case] = []
    by_type: dict[int, list[Call]] = {}
    for call in sorted(recorded, key=lambda call: (call.worth()[0], -len(call.args) - len(call.kwargs), call.worth())):
        by_type.setdefault(_type(call), []).append(call)
    turns = (calls for _, calls in sorted(by_type.items()))
    in_turn = [call for turn in zip_longest(*turns) for call in turn if call is not None]
    for at, call in enumerate([*written, *in_turn[:CANDIDATES]]):
        seed(f"{name} {at}")
        try:
            case = of_call(name, call)
        except Exception as error:
            if at < len(written):
                raise
            # Some samples are of kinds that no archive can hold.
            print(f"{name}: {type(error).__name__}: {str(error).splitlines()[-1]}", file=sys.stderr)
            continue
        case.by_hand = at < len(written)
        if case.by_hand or (case.outputs and case.size() <= LARGEST):
            found.append(case)
    return found


def _type(call: Call) -> int:
    """The place of a call's element type in the order of types."""
    types = [TYPES.index(tensor.dtype) for tensor in call.tensors() if tensor.dtype in TYPES]
    return min(types, default=0)


def write(folder: Path, family: str, cases: list[Case]) -> None:
    """Writes the graphs and tensors of a family."""
    lines, tensors = [], {}
    for at, case in enumerate(cases):
        mark = {"by_hand": True} if case.by_hand else {}
        lines.append(json.dumps({"op": case.op, **mark, **case.graph}, separators=(",", ":")))
        for side, values in (("in", case.inputs), ("out", case.outputs)):
            tensors |= {f"{at}.{side}.{name}": stored(tensor) for name, tensor in values.items()}
    (folder / family).parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{family}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / f"{family}.safetensors").write_bytes(save(tensors))


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as the format has it: complex numbers of 128 bits have their parts side by side."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return (torch.view_as_real(tensor) if tensor.dtype == torch.complex128 else tensor).contiguous().clone()


if __name__ == "__main__":
    main()
