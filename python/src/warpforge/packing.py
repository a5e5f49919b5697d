"""What an archive must say besides of weights that PyTorch packs for the processor it runs on."""

from __future__ import annotations

import json

import torch
from torch.export import ExportedProgram

FILE = "warpforge_packing.json"
PACKED = {"aten._weight_int4pack_mm_for_cpu.default", "aten._weight_int4pack_mm.default"}


def written(program: ExportedProgram) -> dict[str, str]:
    """The file for the archive; none where no weight is packed."""
    if all(str(node.target) not in PACKED for node in program.graph.nodes):
        return {}
    gpu = "hip" if torch.version.hip else "cuda"
    recorded = {"schema_version": 1, "cpu_capability": torch.backends.cpu.get_cpu_capability(), "gpu": gpu}
    return {FILE: json.dumps(recorded)}
