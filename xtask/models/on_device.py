"""PyTorch's own results on a GPU: `python on_device.py DEVICE`, a line with an archive's path for each answer.

An answer is a line of JSON. What the archive's graph gives there is written beside the archive,
`model.DEVICE.safetensors`, by the names that `warpt` has for its outputs. Nothing but PyTorch and safetensors is
needed: models come as archives.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.export.graph_signature import InputKind
from torch.export.passes import move_to_device_pass
from warpforge_signature import outputs


def main() -> None:
    """Answers until there are no more archives."""
    warnings.filterwarnings("ignore")
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    device = sys.argv[1]
    # f32 is f32, as it is for warpt.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for line in sys.stdin:
        archive = Path(line.rstrip("\n"))
        try:
            results = _run(archive, device)
            save_file(results, archive.with_suffix(f".{device}.safetensors"))
            answer = {"results": len(results)}
        except Exception as error:  # one model's trouble must not keep the others from being run
            answer = {"failed": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


def _run(archive: Path, device: str) -> dict[str, torch.Tensor]:
    program = move_to_device_pass(torch.export.load(archive), device)
    examples = iter(torch.utils._pytree.tree_leaves(program.example_inputs))
    state = {**program.constants, **program.state_dict}
    arguments = [
        _copied(next(examples) if spec.kind is InputKind.USER_INPUT else state[spec.target], device)
        for spec in program.graph_signature.input_specs
    ]
    with torch.no_grad():
        values = torch.fx.Interpreter(program.graph_module).run(*arguments)
    named, gradients = outputs(program, list(values))
    named |= {f"grad.{name}": value for name, value in gradients.items()}
    return {name: value.detach().to("cpu").clone().contiguous() for name, value in named.items()}


def _copied(value: Any, device: str) -> Any:  # noqa: ANN401 (an argument of a graph is of any type)
    return value.detach().to(device, copy=True) if isinstance(value, torch.Tensor) else value


main()
