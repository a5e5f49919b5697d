"""PyTorch's own results on a GPU: `python on_device.py DEVICE`, a line with an archive's path for each answer.

An answer is a line of JSON. What the archive's graph gives there is written beside the archive,
`model.DEVICE.safetensors`, by the names that `warpt` has for its outputs. Nothing but PyTorch and safetensors is
needed, since models come as archives; but for those with operations of transformers, which it must bring.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors.torch import save_file
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.export.passes import move_to_device_pass
from torch.utils._pytree import SERIALIZED_TYPE_TO_PYTHON_TYPE, register_pytree_node, tree_leaves
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
    _make_known(archive)
    program = _moved(torch.export.load(archive), device)
    examples = iter(tree_leaves(program.example_inputs))
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


def _make_known(archive: Path) -> None:
    """Makes known what loading an archive looks up by name.

    That is operations of transformers, and the types that hold what a model takes and gives. For a type any class will
    do, since the graph has nothing but the tensors in it.
    """
    with zipfile.ZipFile(archive) as parts:
        name = next((name for name in parts.namelist() if name.endswith("/models/model.json")), None)
        text = parts.read(name) if name else b"{}"
    if b'"torch.ops.transformers.' in text:
        importlib.import_module("transformers.integrations.moe")
    types: set[str | None] = set()
    for call in json.loads(text).get("graph_module", {}).get("module_call_graph", []):
        for spec in ("in_spec", "out_spec") if call["signature"] else ():
            json.loads(call["signature"][spec], object_hook=lambda part: types.add(part.get("type")))
    for missing in types - {None} - SERIALIZED_TYPE_TO_PYTHON_TYPE.keys():
        register_pytree_node(type(missing, (), {}), _refuse, _refuse, serialized_type_name=missing)


def _refuse(*_: object) -> NoReturn:
    raise TypeError("a class that stands in for one of transformers has only its name")


def _moved(program: ExportedProgram, device: str) -> ExportedProgram:
    program = move_to_device_pass(program, device)
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        # They name the device that the model was exported on.
        for node in list(module.graph.nodes):
            if node.target is torch.ops.aten._assert_tensor_metadata.default:
                module.graph.erase_node(node)
        # The pass changes the nodes of inner graphs, but what runs is the code made of them.
        module.recompile()
    return program


def _copied(value: Any, device: str) -> Any:  # noqa: ANN401 (an argument of a graph is of any type)
    return value.detach().to(device, copy=True) if isinstance(value, torch.Tensor) else value


main()
