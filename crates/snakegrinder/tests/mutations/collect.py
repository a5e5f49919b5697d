"""Collects one small graph for every operation that occurs in `.pt2` archives, as seeds for the fuzzers.

    python collect.py FOLDER > nodes.jsonl

Every line has one node, and the element type (its code in the export schema) and sizes of its tensors. Dynamic sizes are
those of the example inputs. Of each operation, two nodes are kept whose arguments are of different kinds.
"""

import json
import sys
import zipfile
from pathlib import Path

KEPT = 2


def tensor_names(argument: dict) -> list[str]:
    """The names of the tensors in an argument."""
    (kind, value), *_ = argument.items()
    if kind == "as_tensor":
        return [value["name"]]
    if kind == "as_tensors":
        return [each["name"] for each in value]
    if kind == "as_optional_tensor":
        return tensor_names(value)
    if kind == "as_optional_tensors":
        return [name for each in value for name in tensor_names(each)]
    return []


def fixed(size: dict) -> int:
    """A size as a number."""
    expression = size.get("as_expr")
    return expression["hint"]["as_int"] if expression else size["as_int"]


def seed_of(node: dict, values: dict) -> dict | None:
    """The node with its tensors; none where it takes something else than tensors and constants."""
    kinds = [next(iter(argument["arg"])) for argument in node["inputs"]]
    if any(kind in ("as_graph", "as_custom_obj", "as_sym_bool") for kind in kinds):
        return None
    if '"as_name"' in json.dumps(node["inputs"]):
        return None
    inputs = [name for argument in node["inputs"] for name in tensor_names(argument["arg"])]
    outputs = [name for output in node["outputs"] for name in tensor_names(output)]
    if not outputs or any(name not in values for name in inputs + outputs):
        return None
    arguments = [{"name": argument["name"], "arg": argument["arg"]} for argument in node["inputs"]]
    tensors = {
        name: [values[name]["dtype"], [fixed(size) for size in values[name]["sizes"]]] for name in inputs + outputs
    }
    return {"target": node["target"], "inputs": arguments, "outputs": node["outputs"], "tensors": tensors}


def shape_of(node: dict) -> tuple[str, ...]:
    """The kinds of a node's arguments."""
    return tuple(f"{argument['name']}:{next(iter(argument['arg']))}" for argument in node["inputs"])


def main() -> None:
    """Prints the seeds, smallest first for each operation."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for path in sorted(Path(sys.argv[1]).rglob("*.pt2")):
        with zipfile.ZipFile(path) as archive:
            entry = next(name for name in archive.namelist() if name.endswith("models/model.json"))
            graph = json.loads(archive.read(entry))["graph_module"]["graph"]
        for node in graph["nodes"]:
            seed = seed_of(node, graph["tensor_values"])
            if seed is None:
                continue
            line = json.dumps(seed, separators=(",", ":"))
            kinds = found.setdefault(node["target"], {})
            kinds[shape_of(node)] = min(kinds.get(shape_of(node), line), line, key=len)
    for target in sorted(found):
        for line in sorted(found[target].values(), key=len)[:KEPT]:
            print(line)


if __name__ == "__main__":
    main()
