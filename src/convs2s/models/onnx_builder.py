"""Graphs of ONNX that are put together node by node, and run by ONNX Runtime without torch."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def _operator(kind: str) -> Callable[["Value", "Value"], "Value"]:
    """Return a method that adds a node of two inputs."""

    def apply(left: "Value", right: "Value") -> "Value":
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

    def op(self, kind: str, *inputs: Value, **attributes: Any) -> Value:
        """Add a node that has one output; return it."""
        (value,) = self.ops(kind, 1, *inputs, **attributes)
        return value

    def ops(self, kind: str, outputs: int, *inputs: Value, **attributes: Any) -> list[Value]:
        """Add a node; return its outputs."""
        node = f"{self._name}{len(self._nodes)}"
        values = [Value(self, f"{node}.{number}") for number in range(outputs)]
        self._nodes.append(
            helper.make_node(
                kind,
                inputs=[value.name for value in inputs],
                outputs=[value.name for value in values],
                domain=MICROSOFT if kind == "MatMulIntegerToFloat" else "",
                **attributes,
            )
        )
        return values

    def value(self, name: str) -> Value:
        """Return an input by its name, or what a joined or surrounding graph calls so."""
        return Value(self, name)

    def input(self, name: str, kind: int, *shape: int | str) -> Value:
        """Add an input; return it."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return self.value(name)

    def output(self, name: str, value: Value, kind: int = FLOATS) -> None:
        """Have a value among the results, under a name."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name]))
        self.result(name, kind)

    def result(self, name: str, kind: int) -> None:
        """Have a value among the results, under its own name."""
        self._outputs.append(helper.make_tensor_value_info(name, kind, None))

    def constant(self, value: Any, dtype: type = np.float32) -> Value:
        """Add a constant; return it."""
        name = f"{self._name}constant.{len(self._constants)}"
        self._constants[name] = np.array(value, dtype, order="C")
        return self.value(name)

    def index(self, value: int) -> Value:
        """Add an integer without dimensions; return it."""
        return self.constant(value, np.int64)

    def integers(self, *values: int) -> Value:
        """Add a list of integers, such as axes; return it."""
        return self.constant(values, np.int64)

    def rows(self, x: Value, columns: int) -> Value:
        """Return (..., columns) as (rows, columns)."""
        return self.op("Reshape", x, self.integers(-1, columns))

    def columns(self, x: Value, width: int) -> Value:
        """Return (B, K, width) as (B, width, K).

        The second node keeps ONNX Runtime from making the first a part of a product, four times
        slower.
        """
        turned = self.op("Transpose", x, perm=[0, 2, 1])
        return self.op("Reshape", turned, self.integers(0, width, -1))

    def mean(self, values: Sequence[Value]) -> Value:
        """Return the mean of values."""
        if len(values) == 1:
            return values[0]
        return self.op("Mean", *values)

    def linear(self, x: Value, weight: AnyArray, bias: AnyArray) -> Value:
        """Map (rows, inputs) by a weight (outputs, inputs) and a bias (outputs,)."""
        offset = self.constant(bias)
        if not self._is_int8:
            matrix = self.constant(weight.T)
            return self.op("Gemm", x, matrix, offset)
        scales = np.abs(weight).max(1) / LARGEST  # (outputs,)
        scales = np.maximum(scales, np.finfo(np.float32).tiny)
        rounded = np.rint(weight / scales[:, None])
        matrix = self.constant(rounded.T, np.int8)
        largest = self.op("ReduceMax", self.op("Abs", x), self.integers(1))  # (rows, 1)
        # Unsigned bytes around 128 by signed ones: the kernels' fast case. 0 / 0 is some byte.
        step = self.constant(1 / LARGEST)
        middle = self.constant(128, np.uint8)
        bytes_of_x = self.op("QuantizeLinear", x / largest, step, middle)
        factors = self.constant(scales)
        y = self.op("MatMulIntegerToFloat", bytes_of_x, matrix, step, factors, middle)
        return y * largest + offset

    def join(self, other: "Graph") -> None:
        """Add the nodes and constants of another, which find their inputs here by their names."""
        self._nodes += other._nodes
        self._constants |= other._constants

    def loop(self, body: "Graph", starts: Sequence[Value], results: Mapping[str, int]) -> None:
        """Run a body as long as its first result is true; have ``results`` of all its runs.

        Its inputs are the number of the run, whether it goes on, and what it hands on, which is
        ``starts`` in the first run; its results are these but the number, and then ``results``.
        """
        own: list[TensorProto] = []
        for name, array in body._constants.items():
            if array.ndim < 2 or array.dtype == np.int8:  # 1.05 times as fast in the body
                own.append(numpy_helper.from_array(array, name))
            else:
                self._constants[name] = array
        inner = helper.make_graph(body._nodes, "body", body._inputs, body._outputs, own)
        goes_on = self.constant(True, np.bool_)
        inputs = ["", goes_on.name]  # there is no limit to the number of runs
        outputs = []
        for start in starts:
            inputs.append(start.name)
            outputs.append(f"{start.name}.last")
        outputs += results
        self._nodes.append(helper.make_node("Loop", inputs, outputs, body=inner))
        for name, kind in results.items():
            self.result(name, kind)

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
