"""The models of `cargo xtask peers zoo`: public architectures at their published sizes, random weights.

`python zoo.py` prints the names with the two batch sizes of each as JSON: one, and one for throughput.
"""

from __future__ import annotations

import json

# Each adds its models.
import language  # noqa: F401
import others  # noqa: F401
import vision  # noqa: F401
from entries import ENTRIES, has, make

__all__ = ["has", "make"]

if __name__ == "__main__":
    print(json.dumps([{"name": name, "batches": [1, entry.batch]} for name, entry in ENTRIES.items()]))
