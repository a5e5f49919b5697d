"""What a run is judged by at chosen steps: inputs, weights, activations and gradients before the update."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from warpforge import modules, nodes
from warpforge.golden import GoldenFolder
from warpforge.record.dropout import Kept

Seen = dict[str, dict[str, torch.Tensor]]


def step_name(step: int) -> str:
    """The folder of a step."""
    return f"step_{step:06d}"


def chosen(plan: dict[str, Any], step: int, steps: int) -> bool:
    """Whether a step is looked at: every so many, and the last."""
    return step % plan["record"]["every"] == 0 or step == steps - 1


class Observer:
    """Keeps what chosen steps have, by `step/class`, and hands it to `keep`."""

    def __init__(
        self,
        plan: dict[str, Any],
        model: nn.Module,
        program: ExportedProgram,
        masks: Kept,
        keep: Callable[[int, Seen], None],
    ) -> None:
        self.record, self.accumulate = plan["record"], plan["training"]["accumulate"]
        self.model, self.program, self.masks, self.keep = model, program, masks, keep

    def begin(self, step: int, batch: dict[str, torch.Tensor], *, apart: bool = False) -> Callable[[], None]:
        """Starts to look at a step; what is returned ends it, when the gradients are there.

        apart: the step itself sees a part of the batch only, so activations are those of a forward pass for them alone.
        """
        stack = ExitStack()
        level = self.record["activations"]
        by_module = stack.enter_context(modules.recorded(self.model)) if level != "none" and not apart else {}
        state = {name: value.detach().cpu().clone() for name, value in self.model.state_dict().items()}

        def end() -> None:
            stack.close()
            named = self.model.named_parameters()
            # On the host they are complete: all ranks have sent theirs, and written their masks before.
            gradients = {n: v.grad.detach().cpu() * self.accumulate for n, v in named if v.grad is not None}
            seen: Seen = {"gradients": gradients}
            if level != "none":
                seen["activations/modules"] = self._by_module(step, batch) if apart else by_module
            if level == "nodes":
                seen["inputs"] = self.masks.inputs(batch)
                inputs = [value.cpu() for value in seen["inputs"].values()]
                _, seen["activations"] = nodes.record(self.program, state, inputs)
                trained = [name for name, value in self.model.named_parameters() if value.requires_grad]
                seen["weights"] = {name: state[name] for name in trained}
            self.keep(step, {kind: {n: v.cpu() for n, v in values.items()} for kind, values in seen.items()})

        return end

    def _by_module(self, step: int, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The activations of a forward pass of its own, on the whole batch and with the masks of the step."""
        with modules.recorded(self.model) as found, self.masks.replay(step * self.accumulate), torch.no_grad():
            self.model(**batch)
        return found


def write(folder: GoldenFolder, step: int, seen: Seen) -> None:
    """Writes what was seen to the folder of the step."""
    for kind, values in seen.items():
        folder.tensors(f"{step_name(step)}/{kind}", values)
