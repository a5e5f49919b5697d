"""The nodes of an exported graph: running them one by one, and saying where each came from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

FRAME = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)
TORCH = str(Path(torch.__file__).parent)


class _Recorder(torch.fx.Interpreter):
    """Keeps a copy of each computed value, since a later node may change it in place."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__(program.graph_module)
        self.values: dict[str, torch.Tensor] = {}

    def run_node(self, n: torch.fx.Node) -> Any:  # noqa: ANN401 (a node's value is of any type)
        value = super().run_node(n)
        if n.op == "call_function":
            self.values.update((name, leaf.detach().clone()) for name, leaf in named_leaves(n.name, value))
        return value


def named_leaves(name: str, value: object) -> list[tuple[str, torch.Tensor]]:
    """The tensors of a node's value: `name`, or `name.0`, `name.1`, … where it is a tuple."""
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if isinstance(value, (tuple, list)):
        return [pair for i, item in enumerate(value) for pair in named_leaves(f"{name}.{i}", item)]
    return []


def run(program: ExportedProgram) -> list[Any]:
    """Runs the graph on its example inputs and returns its outputs; what no later node reads is freed."""
    with torch.no_grad():
        outputs = torch.fx.Interpreter(program.graph_module).run(*_graph_arguments(program, {}, None))
    return list(outputs)


def record(
    program: ExportedProgram, state: Mapping[str, torch.Tensor] | None = None, inputs: Sequence[Any] | None = None
) -> tuple[list[Any], dict[str, torch.Tensor]]:
    """Runs the graph, and returns its outputs and the value of every node.

    state: other parameters and buffers than the program's own.
    inputs: other inputs than its example inputs.
    """
    recorder = _Recorder(program)
    with torch.no_grad():
        outputs = recorder.run(*_graph_arguments(program, state or {}, inputs))
    return list(outputs), recorder.values


def describe(program: ExportedProgram) -> list[dict[str, Any]]:
    """The computing nodes in execution order, each with its operation, module, source and tensors."""
    return [
        {
            "name": node.name,
            "target": str(node.target),
            "module": module_path(node),
            "source": source_line(node.meta.get("stack_trace")),
            "tensors": [name for name, _ in named_leaves(node.name, node.meta.get("val"))],
        }
        for node in program.graph.nodes
        if node.op == "call_function"
    ]


def module_path(node: torch.fx.Node) -> str | None:
    """The innermost module that the node was traced in, such as `encoder.layer.0.attention`; empty for the model."""
    stack = node.meta.get("nn_module_stack")
    return list(stack.values())[-1][0] if stack else None


def source_line(stack_trace: str | None) -> str | None:
    """The innermost line of the trace outside of torch itself, as file:line; inside if there is no other."""
    frames = [(match["file"], match["line"]) for match in FRAME.finditer(stack_trace or "")]
    # A graph traced from another graph has frames in generated code, which nobody can open.
    real = [frame for frame in frames if not frame[0].startswith("<")]
    chosen = [frame for frame in real if not frame[0].startswith(TORCH)] or real
    return ":".join(chosen[-1]) if chosen else None


def _graph_arguments(
    program: ExportedProgram, state: Mapping[str, torch.Tensor], inputs: Sequence[Any] | None
) -> list[Any]:
    """The graph's arguments in the order of its signature, copied since a graph may change them in place."""
    examples = iter(torch.utils._pytree.tree_leaves(program.example_inputs) if inputs is None else inputs)
    held = {**program.constants, **program.state_dict, **state}
    return [
        _copied(next(examples) if spec.kind is InputKind.USER_INPUT else held[spec.target])
        for spec in program.graph_signature.input_specs
    ]


def _copied(value: object) -> object:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
