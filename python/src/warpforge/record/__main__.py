"""`python -m warpforge.record PLAN.json --out DIR`: what `warpt golden record` starts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from warpforge.errors import TraceError

BAD_INPUT = 2
INTERRUPTED = 130


def main() -> int:
    """Records the run that a plan describes. Returns the exit code: 0, or 2 with a message on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m warpforge.record",
        description="Train with PyTorch and write a golden folder; `warpt golden record` makes the plan.",
    )
    parser.add_argument("plan", type=Path, metavar="PLAN.json")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    try:
        # Imported here, so that a library that is missing is named without a stack of frames.
        from warpforge.record.run import record  # noqa: PLC0415

        plan = json.loads(options.plan.read_text(encoding="utf-8"))
        record(plan, options.out, options.device)
    except ModuleNotFoundError as error:
        print(f"error: the module {error.name} is not installed in {sys.executable}", file=sys.stderr)
        return BAD_INPUT
    except (TraceError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
