"""Which node of an exported graph gives what a module returned."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping

import torch
from torch.export import ExportedProgram

from warpforge.nodes import named_leaves

# Where an archive has them, among the files that `torch.export.save` adds for others.
FILE = "warpforge_modules.json"

CALL = re.compile(r"^(?P<path>.*?)(?:@(?P<call>\d+))?(?:\[\d+\])?$")

Agreement = Callable[[torch.Tensor, torch.Tensor], bool]


def find(
    program: ExportedProgram,
    returned: Mapping[str, torch.Tensor],
    recorded: Mapping[str, torch.Tensor],
    agree: Agreement,
) -> dict[str, dict[str, str]]:
    """For each tensor that a module returned the node that gives it, `{"node": name}`, or `{"unknown": reason}`.

    returned: what the modules gave when they ran by themselves, named as by `modules.recorded`.
    recorded: what the nodes of the graph gave, named as by `nodes.record`.

    The graph does not say what a module returned, but it does say which module each node belongs to, and both runs were
    on the same inputs. So the node is the last one of that call of the module with the very same value, else one
    elsewhere with the very same value (a module that hands its argument on), else the last one of that call whose value
    differs only by rounding.
    """
    inside = _by_call(program)
    same: dict[str, list[str]] = {}
    for name, value in recorded.items():
        same.setdefault(_digest(value), []).append(name)

    def place(name: str, value: torch.Tensor) -> dict[str, str]:
        match = CALL.match(name)
        within = inside.get((match["path"], int(match["call"] or 1)), []) if match else []
        equal = same.get(_digest(value), [])
        close = [node for node in within if node in recorded and agree(value, recorded[node])]
        for choice in ([node for node in equal if node in set(within)][-1:], equal[:1], close[-1:]):
            if choice:
                return {"node": choice[0]}
        if not within:
            return {"unknown": "the module has no operation of its own in the graph"}
        return {"unknown": "no node of the graph has the value that the module returned"}

    return {name: place(name, value) for name, value in returned.items()}


def written(places: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The file for the archive; none where there is nothing to say."""
    return {FILE: json.dumps({"schema_version": 1, "modules": places}, indent=1)} if places else {}


def _by_call(program: ExportedProgram) -> dict[tuple[str, int], list[str]]:
    """The tensors of the nodes that were traced inside each call of each module."""
    found: dict[tuple[str, int], list[str]] = {}
    for node in program.graph.nodes:
        for key, (path, _) in node.meta.get("nn_module_stack", {}).items():
            # The keys of later calls end in @1, @2, …
            call = re.search(r"@(\d+)$", key)
            names = [name for name, _ in named_leaves(node.name, node.meta.get("val"))]
            found.setdefault((path.partition("@")[0], int(call[1]) + 1 if call else 1), []).extend(names)
    return found


def _digest(value: torch.Tensor) -> str:
    """What tells tensors of different types, shapes or bytes apart."""
    flat = value.detach().contiguous().reshape(-1).view(torch.uint8) if value.numel() else torch.empty(0)
    head = f"{value.dtype} {tuple(value.shape)} ".encode()
    return hashlib.sha256(head + flat.numpy().tobytes()).hexdigest()
