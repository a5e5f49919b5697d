"""Progress on standard error, and the numbers of each step in a file as they come."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from warpforge.record.training import Curve

# Seconds between two lines where standard error is no terminal.
PERIOD = 5.0


class Progress:
    """Tells how far a run is."""

    def __init__(self, label: str, steps: int, file: Path | None) -> None:
        self.label, self.steps = label, steps
        self.file = file.open("w", encoding="utf-8") if file else None
        self.begin = time.perf_counter()
        self.said = 0.0

    def after_step(self, step: int, curve: Curve) -> None:
        """Writes the last step's numbers."""
        if self.file:
            numbers = {"step": step, "loss": curve.loss[-1], "lr": curve.lr[-1], "seconds": curve.seconds[-1]}
            self.file.write(json.dumps(numbers) + "\n")
            self.file.flush()
        now, last = time.perf_counter(), step + 1 == self.steps
        terminal = sys.stderr.isatty()
        if not (last or terminal or now - self.said >= PERIOD):
            return
        self.said = now
        rate = (step + 1) / max(now - self.begin, 1e-9)
        left = (self.steps - step - 1) / rate
        numbers = f"loss {curve.loss[-1]:.4f}, {rate:.2f} steps/s, {left:.0f} s left"
        text = f"{self.label}: step {step + 1}/{self.steps}, {numbers}"
        print(
            f"\r\x1b[K{text}" if terminal else text,
            end="" if terminal and not last else "\n",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Ends the file."""
        if self.file:
            self.file.close()
