"""Graphs of ONNX that are put together node by node, and run by ONNX Runtime without torch."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # or it reports to its maker, from 1.29 on
from onnxruntime import InferenceSession as InferenceSession
from onnxruntime import OrtValue as OrtValue
from onnxruntime import SessionOptions

AnyArray = NDArray[Any]

LARGEST = 127  # Magnitude of an 8-bit value: -128 is left out, so that signs are symmetric
CPU = Path("/proc/cpuinfo")
OPSET = 21
IR_VERSION = 10
MICROSOFT = "com.microsoft"  # the domain of operators that only ONNX Runtime has

FLOATS = TensorProto.FLOAT
INDICES = TensorProto.INT64
TRUTHS = TensorProto.BOOL


Operand: TypeAlias = "Value | float | Sequence[int] | np.generic | AnyArray"
"""What a node reads: a value of the graph, or a constant.

Of Python's numbers, and in fp64, fractions become fp32; whole numbers are 64 bits wide.
"""


def _operator(kind: str) -> Callable[["Value", Operand], "Value"]:
    """Return a method that adds a node of two inputs."""

    def apply(left: "Value", right: Operand) -> "Value":
        return left.graph.op(kind, left, right)

    return apply


@dataclass(frozen=True)
class Value:
    """An input, a constant or a result of a node: ``a + b`` adds a node to the graph."""

    graph: "Graph"
    name: str

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")  # of integers it rounds towards zero
    __mod__ = _operator("Mod")
    __matmul__ = _operator("MatMul")
    __lt__ = _operator("Less")
    __and__ = _operator("And")
    __or__ = _operator("Or")


class Graph:
    """A graph that grows, node by node."""

    def __init__(self, precision: str, name: str = "") -> None:
        """Begin with nothing; maps are computed in fp32 or int8.

        Graphs that are put together have different names.
        """
        self._is_int8 = precision == "int8"
        self._name = name
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._constants: dict[str, AnyArray] = {}

    def op(self, kind: str, *inputs: Operand, **attributes: Any) -> Value:
        """Add a node that has one output; return it."""
        (value,) = self.ops(kind, 1, *inputs, **attributes)
        return value

    def ops(self, kind: str, outputs: int, *inputs: Operand, **attributes: Any) -> list[Value]:
        """Add a node; return its outputs."""
        node = f"{self._name}{len(self._nodes)}"
        names = []
        for operand in inputs:
            value = operand if isinstance(operand, Value) else self.constant(operand)
            names.append(value.name)
        values = [Value(self, f"{node}.{number}") for number in range(outputs)]
        self._nodes.append(
            helper.make_node(
                kind,
                inputs=names,
                outputs=[value.name for value in values],
                domain=MICROSOFT if kind == "MatMulIntegerToFloat" else "",
                **attributes,
            )
        )
        return values

    def constant(self, operand: Operand) -> Value:
        """Add a constant; return it."""
        array = np.array(operand, order="C")
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"{self._name}constant.{len(self._constants)}"
        self._constants[name] = array
        return self.value(name)

    def value(self, name: str) -> Value:
        """Return an input by its name, or what a joined or surrounding graph calls so."""
        return Value(self, name)

    def input(self, name: str, kind: int, shape: Sequence[int | str] | None = None) -> Value:
        """Add an input, of any shape where none is stated; return it."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return self.value(name)

    def output(self, name: str, value: Value, kind: int = FLOATS) -> None:
        """Have a value among the results, under a name."""
        self.call(name, value)
        self.result(name, kind)

    def call(self, name: str, value: Value) -> None:
        """Give a value a name, by which joined graphs find it."""
        node = helper.make_node("Identity", [value.name], [name])
        self._nodes.append(node)

    def result(self, name: str, kind: int) -> None:
        """Have a value among the results, under its own name."""
        self._outputs.append(helper.make_tensor_value_info(name, kind, None))

    def rows(self, x: Value, columns: int) -> Value:
        """Return (..., columns) as (rows, columns)."""
        return self.op("Reshape", x, [-1, columns])

    def columns(self, x: Value, width: int) -> Value:
        """Return (B, K, width) as (B, width, K).

        The second node keeps ONNX Runtime from making the first a part of a product, four times
        slower.
        """
        turned = self.op("Transpose", x, perm=[0, 2, 1])
        return self.op("Reshape", turned, [0, width, -1])

    def mean(self, values: Sequence[Value]) -> Value:
        """Return the mean of values."""
        if len(values) == 1:
            return values[0]
        return self.op("Mean", *values)

    def linear(self, x: Value, weight: AnyArray, bias: AnyArray) -> Value:
        """Map (rows, inputs) by a weight (outputs, inputs) and a bias (outputs,)."""
        if not self._is_int8:
            return self.op("Gemm", x, weight.T, bias)
        scales = np.abs(weight).max(1) / LARGEST  # (outputs,)
        scales = np.maximum(scales, np.finfo(np.float32).tiny)
        rounded = np.rint(weight / scales[:, None])
        magnitudes = self.op("Abs", x)
        largest = self.op("ReduceMax", magnitudes, [1])  # (rows, 1)
        # Unsigned bytes around 128 by signed ones: the kernels' fast case. 0 / 0 is some byte.
        step = self.constant(1 / LARGEST)
        middle = self.constant(np.uint8(128))
        bytes_of_x = self.op("QuantizeLinear", x / largest, step, middle)
        y = self.op(
            "MatMulIntegerToFloat",
            bytes_of_x,
            rounded.T.astype(np.int8),
            step,
            scales,
            middle,
        )
        return y * largest + bias

    def join(self, other: "Graph") -> None:
        """Add the nodes and constants of another, which find their inputs here by their names."""
        self._nodes += other._nodes
        self._constants |= other._constants

    def loop(
        self,
        body: "Graph",
        goes_on: Value,
        handed: Mapping[str, tuple[Value, int]],
        results: Mapping[str, tuple[Value, int]],
    ) -> None:
        """Run a body as long as ``goes_on`` is true of its last run.

        It knows the number of its run as ``position``. Of what it is ``handed``, each run reads
        what the run before made under the name, and the first one the input ``NAME.first`` of this
        graph. The ``results`` of all runs are results of this graph.
        """
        # There is no limit to the number of runs, and the first one does take place.
        inputs = ["", self.constant(True).name]
        outputs = []
        body.input("position", INDICES, [])
        body.input("goes_on", TRUTHS, [])
        body.result(goes_on.name, TRUTHS)
        for name, (later, kind) in handed.items():
            body.input(name, kind)
            body.result(later.name, kind)
            inputs.append(self.input(f"{name}.first", kind).name)
            outputs.append(f"{name}.last")
        for name, (value, kind) in results.items():
            body.result(value.name, kind)
            self.result(name, kind)
            outputs.append(name)
        own = []
        for name, array in body._constants.items():
            if array.ndim < 2 or array.dtype == np.int8:  # 1.05 times as fast in the body
                own.append(numpy_helper.from_array(array, name))
            else:
                self._constants[name] = array
        inner = helper.make_graph(
            body._nodes,
            "body",
            body._inputs,
            body._outputs,
            own,
        )
        node = helper.make_node("Loop", inputs, outputs, body=inner)
        self._nodes.append(node)

    def session(self) -> InferenceSession:
        """Return what runs the graph, with one thread: batches have threads of their own."""
        options = SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors alone
        if not (CPU.is_file() and "vnni" in CPU.read_text()):  # sums of signed bytes would overflow
            options.add_session_config_entry("session.x64quantprecision", "1")
        constants = []
        for name, array in self._constants.items():
            if array.ndim < 2:
                constants.append(numpy_helper.from_array(array, name))
                continue
            # Large ones stay where they are.
            tensor = TensorProto(
                name=name,
                dims=array.shape,
                data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
                data_location=TensorProto.EXTERNAL,
            )
            tensor.external_data.add(key="location", value=name)
            constants.append(tensor)
            options.add_external_initializers([name], [OrtValue.ortvalue_from_numpy(array)])
        return InferenceSession(self._model(constants), options, ["CPUExecutionProvider"])

    def save(self, path: Path) -> None:
        """Write the graph and all that it holds as a file for ONNX Runtime."""
        constants = []
        for name, array in self._constants.items():
            constants.append(numpy_helper.from_array(array, name))
        path.write_bytes(self._model(constants))

    def _model(self, constants: Sequence[TensorProto]) -> bytes:
        graph = helper.make_graph(self._nodes, "graph", self._inputs, self._outputs, constants)
        operators = helper.make_opsetid("", OPSET)
        microsofts = helper.make_opsetid(MICROSOFT, 1)
        model = helper.make_model(
            graph,
            opset_imports=[operators, microsofts],
            ir_version=IR_VERSION,
        )
        return bytes(model.SerializeToString())
