"""Graphs of several nodes: sizes that are computed with, checks, unused random numbers, operators that call graphs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from called import called
from calls import Call
from graphs import Case, serialized
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

aten = torch.ops.aten
# What dynamic sizes may be.
RANGE = {"min_val": 2, "max_val": 64}


@dataclass
class Value:
    """A value of a graph: its node, and what it is in the run that gives the expected results."""

    node: torch.fx.Node
    real: object


class Program:
    """A graph while it is built, node by node, each with PyTorch's own result."""

    def __init__(self) -> None:
        self.graph = torch.fx.Graph()
        self.shapes = ShapeEnv()
        self.mode = FakeTensorMode(shape_env=self.shapes)
        self.inputs: dict[str, torch.Tensor] = {}

    def input(self, tensor: torch.Tensor, *, dynamic: bool = False) -> Value:
        """An input; where it is dynamic, the graph has a symbol for each of its sizes."""
        node = self.graph.placeholder(f"x{len(self.inputs)}")
        kind = DimDynamic.DYNAMIC if dynamic else DimDynamic.STATIC
        context = StatelessSymbolicContext([kind] * tensor.dim())
        node.meta["val"] = self.mode.from_tensor(tensor, symbolic_context=context)
        self.inputs[node.name] = tensor
        return Value(node, tensor)

    def call(self, target: Callable, *args: object, **kwargs: object) -> Value:
        """A node."""
        take = lambda kind: [kind(arg) if isinstance(arg, Value) else arg for arg in args]  # noqa: E731
        node = self.graph.call_function(target, tuple(take(lambda value: value.node)), kwargs)
        with self.mode:
            node.meta["val"] = target(*take(lambda value: value.node.meta["val"]), **kwargs)
        return Value(node, target(*take(lambda value: value.real), **kwargs))

    def case(self, op: str, *outputs: Value, dynamic: bool = False) -> Case:
        """The case for an operation; a dynamic one is imported without the sizes too."""
        self.graph.output(tuple(output.node for output in outputs))
        limits = {str(symbol): RANGE for symbol in self.shapes.var_to_range}
        graph = serialized(torch.fx.GraphModule({}, self.graph), limits if dynamic else None)
        expected = {f"out{at}": number(output.real) for at, output in enumerate(outputs)}
        return Case(op, graph, self.inputs, expected)


def number(value: object) -> torch.Tensor:
    """A result as a tensor: Python's numbers are the widest of their kind."""
    if isinstance(value, torch.Tensor):
        return value
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
    return torch.tensor(value, dtype=kinds[type(value)])


def unused(op: str, call: Call) -> Case:
    """A graph with a node whose result, if there is one, nothing uses."""
    program = Program()
    names = {id(tensor): program.input(tensor) for tensor in call.tensors()}
    program.call(call.target, *(names.get(id(arg), arg) for arg in call.args), **call.kwargs)
    return program.case(op, program.call(aten.neg.default, program.input(torch.tensor([1.0, -2.5]))))


def random_numbers() -> Iterator[Case]:
    """Operators that draw random numbers, in graphs that do not use them."""
    x, half, shape = torch.rand(2, 3), torch.full((2, 3), 0.5), [2, 3]
    calls = {
        "bernoulli.default": (x,),
        "bernoulli.p": (x, 0.5),
        "multinomial.default": (x, 2),
        "normal.Tensor_Tensor": (x, half),
        "normal.Tensor_float": (x, 1.0),
        "normal.float_Tensor": (1.0, half),
        "normal_functional.default": (x, 0.0, 1.0),
        "rand.default": (shape,),
        "rand_like.default": (x,),
        "randint.default": (9, shape),
        "randint.low": (2, 9, shape),
        "randint_like.default": (x, 9),
        "randint_like.low_dtype": (x, 2, 9),
        "randn.default": (shape,),
        "randn_like.default": (x,),
        "randperm.default": (5,),
        "uniform.default": (x, 0.0, 1.0),
    }
    for name, args in calls.items():
        base, over = name.split(".")
        target = getattr(getattr(aten, base), over)
        yield unused(f"aten.{name}", Call(target, args))


def undefined() -> Iterator[Case]:
    """Tensors whose elements are anything, with all of them written afterwards: type and shape are compared."""
    x = torch.rand(2, 3)
    for op, args in (
        ("empty.memory_format", ([2, 3],)),
        ("empty_like.default", (x,)),
        ("empty_permuted.default", ([2, 3], [1, 0])),
        ("empty_strided.default", ([2, 3], [1, 2])),
        ("new_empty.default", (x, [4, 1])),
        ("new_empty_strided.default", (x, [2, 3], [1, 2])),
    ):
        for dtype in (torch.float32, torch.int64):
            base, over = op.split(".")
            program = Program()
            given = [program.input(arg) if isinstance(arg, torch.Tensor) else arg for arg in args]
            made = program.call(getattr(getattr(aten, base), over), *given, dtype=dtype)
            yield program.case(f"aten.{op}", program.call(aten.fill.Scalar, made, 7))


def checks() -> Iterator[Case]:
    """Assertions, which compute nothing."""
    holds = torch.tensor(True)
    yield unused("aten._assert_async.default", Call(aten._assert_async.default, (holds,)))
    yield unused("aten._assert_async.msg", Call(aten._assert_async.msg, (holds, "a message")))
    meta = ([2, 3], [3, 1], torch.float32)
    yield unused(
        "aten._assert_tensor_metadata.default", Call(aten._assert_tensor_metadata.default, (torch.rand(2, 3), *meta))
    )
    for op, args in (
        (aten._assert_scalar.default, ("a message",)),
        (aten.sym_constrain_range.default, ()),
        (aten.sym_constrain_range_for_size.default, ()),
    ):
        program = Program()
        x = program.input(torch.tensor([1.0, -2.5]))
        size = program.call(aten.sym_size.int, program.input(torch.rand(3, 2), dynamic=True), 0)
        if args:
            size = program.call(operator.gt, size, 1)
        program.call(op, size, *args)
        yield program.case(str(op), program.call(aten.neg.default, x), dynamic=True)


def sizes() -> Iterator[Case]:
    """Arithmetic on sizes. What only a run decides is imported with the sizes given."""
    binary = {
        operator.add: True,
        operator.sub: True,
        operator.mul: True,
        operator.floordiv: True,
        operator.mod: True,
        operator.pow: True,
        operator.truediv: False,
        torch.sym_max: True,
        torch.sym_min: True,
        operator.eq: False,
        operator.ne: False,
        operator.lt: False,
        operator.le: False,
        operator.gt: False,
        operator.ge: False,
    }
    for target, dynamic in binary.items():
        for shape in ((5, 3), (3, 3), (2, 7)):
            program = Program()
            x = program.input(torch.rand(shape), dynamic=True)
            left, right = program.call(aten.sym_size.int, x, 0), program.call(aten.sym_size.int, x, 1)
            results = [program.call(target, left, 3)]
            if target is not operator.pow:
                results.append(program.call(target, left, right))
            yield program.case(_name(target), *results, dynamic=dynamic)
    for target, dynamic in (
        (operator.neg, True),
        (operator.pos, True),
        (torch._sym_sqrt, False),
        (torch.sym_float, False),
    ):
        program = Program()
        size = program.call(aten.sym_size.int, program.input(torch.rand(5, 3), dynamic=True), 0)
        yield program.case(_name(target), program.call(target, size), dynamic=dynamic)
    for target in (math.trunc, torch.sym_int):
        program = Program()
        size = program.call(aten.sym_size.int, program.input(torch.rand(5, 3), dynamic=True), 0)
        yield program.case(_name(target), program.call(target, program.call(operator.truediv, size, 2)))
    for shape in ((5, 3), (2, 3)):
        yield from _truths(shape)


def _truths(shape: tuple[int, int]) -> Iterator[Case]:
    for target in (operator.and_, operator.or_, torch.sym_not, torch.sym_ite):
        program = Program()
        x = program.input(torch.rand(shape), dynamic=True)
        left, right = program.call(aten.sym_size.int, x, 0), program.call(aten.sym_size.int, x, 1)
        larger = program.call(operator.gt, left, right)
        args = {
            torch.sym_not: (larger,),
            torch.sym_ite: (larger, left, right),
        }.get(target, (larger, program.call(operator.lt, left, 9)))
        yield program.case(_name(target), program.call(target, *args))


def places() -> Iterator[Case]:
    """Sizes, strides and offsets of tensors."""
    for target, args in (
        (aten.sym_size.int, (-1,)),
        (aten.size.int, (0,)),
        (aten.sym_numel.default, ()),
        (aten.numel.default, ()),
        (aten.sym_stride.int, (0,)),
        (aten.sym_storage_offset.default, ()),
        (aten.sym_is_contiguous.default, ()),
    ):
        for tensor in (torch.rand(4, 3), torch.rand(3, 4).t()):
            program = Program()
            yield program.case(str(target), program.call(target, program.input(tensor), *args))


def packed() -> Iterator[Case]:
    """Weights of 4 bits that the graph packs, and products with them."""
    for rows in (64, 80):
        codes = torch.randint(0, 16, (rows, 64), dtype=torch.int32)
        factors = torch.rand(2, rows, 2)
        for op in (aten._convert_weight_to_int4pack_for_cpu, aten._weight_int4pack_mm_for_cpu):
            for dtype in (torch.float32, torch.bfloat16):
                program = Program()
                x, scales = program.input(torch.randn(3, 64, dtype=dtype)), program.input(factors.to(dtype))
                weights = program.call(aten._convert_weight_to_int4pack_for_cpu.default, program.input(codes), 1)
                found = program.call(aten._weight_int4pack_mm_for_cpu.default, x, weights, 32, scales)
                yield program.case(f"{op}.default", found)


def _name(target: Callable) -> str:
    return f"{target.__module__}.{target.__name__}"


def programs() -> list[Case]:
    """All of them."""
    return [case for make in (random_numbers, undefined, checks, sizes, places, packed, called) for case in make()]
