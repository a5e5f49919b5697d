"""Graphs of one node, written by PyTorch's own serializer, without what an importer does not read."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from calls import Call
from torch._export.serde import serialize as serde
from torch.utils import _pytree as pytree


@dataclass
class Case:
    """A graph, what goes in and what PyTorch says comes out, by the names that the importer gives them."""

    op: str
    graph: dict
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    by_hand: bool = True

    def size(self) -> int:
        """The bytes of its tensors."""
        tensors = [*self.inputs.values(), *self.outputs.values()]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def of_call(op: str, call: Call) -> Case:
    """The case of one call: the result, and the arguments that it wrote to, are the outputs."""
    given = call.copied()
    ours = given.copied()
    result = ours.run()
    graph = torch.fx.Graph()
    inputs: dict[str, torch.Tensor] = {}
    outputs: dict[str, torch.Tensor] = {}
    nodes: dict[int, torch.fx.Node] = {}
    for at, (tensor, after) in enumerate(zip(given.tensors(), ours.tensors(), strict=True)):
        node = graph.placeholder(f"x{at}")
        node.meta["val"] = tensor
        nodes[id(tensor)] = node
        inputs[node.name] = tensor
        if not same(tensor, after):
            outputs[node.name] = after
    replace = lambda leaf: nodes.get(id(leaf), leaf)  # noqa: E731 (as short as what it is given to)
    args, kwargs = pytree.tree_map(replace, (given.args, given.kwargs))
    node = graph.call_function(given.target, args, kwargs)
    node.name = "y"
    node.meta["val"] = result
    returned = _results(graph, node, result, given.used)
    graph.output(tuple(returned))
    for at, result_node in enumerate(returned):
        outputs[f"out{at}"] = _as_tensor(result_node.meta["val"], given)
    return Case(op, serialized(torch.fx.GraphModule({}, graph)), inputs, outputs)


def _as_tensor(value: object, call: Call) -> torch.Tensor:
    """A result as a tensor. A number that was taken out of a tensor has the tensor's element type."""
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=call.tensors()[0].dtype)


def _results(
    graph: torch.fx.Graph, node: torch.fx.Node, result: object, used: int | None = None
) -> list[torch.fx.Node]:
    """A node for each tensor or number of a result; of several results, for those that are used."""
    if not isinstance(result, (tuple, list)):
        return [] if result is None else [node]
    found = []
    for at, item in enumerate(result[:used]):
        if item is None:
            continue
        part = graph.call_function(operator.getitem, (node, at))
        part.meta["val"] = item
        found += _results(graph, part, item)
    return found


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors hold the same values; NaN is NaN."""
    if left.is_floating_point():
        left, right = left.double(), right.double()
    return left.shape == right.shape and torch.equal(torch.nan_to_num(left), torch.nan_to_num(right))


def serialized(module: torch.fx.GraphModule, ranges: dict | None = None) -> dict:
    """A graph as archives have it: nodes, inputs, outputs, and tensors as element type, sizes and strides."""
    signature = torch.export.graph_signature.ExportGraphSignature([], [])
    graph = serde.GraphModuleSerializer(signature, []).serialize_graph(module)
    whole = serde._dataclass_to_dict(graph)
    return compact_graph(whole) | ({"ranges": ranges} if ranges else {})


def compact_graph(graph: dict) -> dict:
    """A serialized graph without the fields that are for rebuilding Python objects."""
    kept = {
        "inputs": graph["inputs"],
        "outputs": graph["outputs"],
        "nodes": [_node(node) for node in graph["nodes"]],
        "tensors": {name: _tensor(meta) for name, meta in graph["tensor_values"].items()},
    }
    if graph["sym_int_values"]:
        kept["sizes"] = graph["sym_int_values"]
    return kept


def _node(node: dict) -> dict:
    arguments = [{"name": each["name"], "arg": _argument(each["arg"])} for each in node["inputs"]]
    return {"target": node["target"], "inputs": arguments, "outputs": node["outputs"], "name": node["name"]}


def _argument(argument: dict) -> dict:
    """An argument; the graph of a higher-order operator in full, since an importer reads it as it is."""
    if "as_graph" in argument:
        inner = argument["as_graph"]["graph"]
        nodes = [_node(node) for node in inner["nodes"]]
        return {"as_graph": {"name": argument["as_graph"]["name"], "graph": inner | {"nodes": nodes}}}
    return argument


def _tensor(meta: dict) -> list:
    """Element type and sizes; strides only where they are not row-major, an offset only where there is one."""
    sizes = [_size(size) for size in meta["sizes"]]
    strides = [_size(stride) for stride in meta["strides"]]
    offset = _size(meta["storage_offset"])
    if offset != 0:
        return [_code(meta), sizes, strides, offset]
    if all(isinstance(size, int) for size in sizes) and strides == _row_major(sizes):
        return [_code(meta), sizes]
    return [_code(meta), sizes, strides]


def _code(meta: dict) -> int:
    return int(meta["dtype"])


def _size(size: dict) -> int | dict:
    return size.get("as_int", size)


def _row_major(sizes: list[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides
