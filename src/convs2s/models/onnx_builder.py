"""Build ONNX graphs node by node, for ONNX Runtime, without torch."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

# From version 1.29 on, ONNX Runtime sends telemetry to its maker, unless this variable is set
# before the import.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# The names with ``as`` are exported: other modules import them from here.
from onnxruntime import InferenceSession as InferenceSession
from onnxruntime import OrtValue as OrtValue
from onnxruntime import RunOptions as RunOptions
from onnxruntime import SessionOptions

AnyArray = NDArray[Any]

LARGEST = 127
"""Largest magnitude of an 8-bit value. -128 is not used, so that the range is symmetric."""

MIDDLE = 128
"""The unsigned byte that represents 0."""

CPU = Path("/proc/cpuinfo")
"""Linux's description of the processor."""

OPSET = 21
IR_VERSION = 10
"""Versions of the operators and of the file format, both those of ONNX 1.16.

If a graph did not state them, the ``onnx`` package would write its own newest versions. ONNX
Runtime may not know them yet.
"""

MICROSOFT = "com.microsoft"
"""Domain of the contributed operators, which are not in the ONNX standard."""

FLOATS = TensorProto.FLOAT
BYTES = TensorProto.UINT8
INDICES = TensorProto.INT64
TRUTHS = TensorProto.BOOL


Operand: TypeAlias = "Value | float | Sequence[int] | np.generic | AnyArray"
"""An input of a node: a value of the graph, or a constant.

Python's floats and arrays of fp64 become fp32. Python's integers become 64-bit integers.
"""


def element_type_of(array: AnyArray) -> int:
    """Return ONNX's number for the type of an array's elements."""
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def _operator(name: str) -> Callable[["Value", Operand], "Value"]:
    """Return a method that adds a node with two inputs to the graph of the left one."""

    def apply(left: "Value", right: Operand) -> "Value":
        return left.graph.op(name, left, right)

    return apply


@dataclass(frozen=True)
class Value:
    """A tensor of a graph: an input, a constant or the output of a node.

    Operators add a node to the graph: ``a + b`` adds an ``Add`` node and returns its output.
    """

    graph: "Graph"
    name: str

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")  # rounds towards zero if both are integers
    __mod__ = _operator("Mod")
    __matmul__ = _operator("MatMul")
    __lt__ = _operator("Less")
    __and__ = _operator("And")
    __or__ = _operator("Or")


class Graph:
    """A graph under construction."""

    def __init__(self, precision: str, name: str = "") -> None:
        """Begin an empty graph, whose linear maps are computed in ``precision``: fp32 or int8.

        ``name`` is a prefix of the names of nodes and constants. Graphs that are joined must have
        different prefixes.
        """
        self._is_int8 = precision == "int8"
        self._name = name
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._constants: dict[str, AnyArray] = {}
        # Second name of a value -> its name.
        self._aliases: dict[str, str] = {}
        # Name of a place -> what linear maps read there, before it is rounded. Fixed scales are
        # found from its magnitudes.
        self.quantized: dict[str, Value] = {}
        # The attention (B, K, m) of each block that has attention, of all networks.
        self.attentions: list[Value] = []

    def op(
        self,
        operator: str,
        *inputs: Operand,
        **attributes: Any,
    ) -> Value:
        """Add a node with one output, and return the output."""
        (value,) = self.ops(operator, 1, *inputs, **attributes)
        return value

    def ops(
        self,
        operator: str,
        outputs: int,
        *inputs: Operand,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node, and return its outputs, whose number is ``outputs``."""
        input_names = []
        for operand in inputs:
            if isinstance(operand, Value):
                input_names.append(operand.name)
            else:
                constant = self.constant(operand)
                input_names.append(constant.name)
        node_name = f"{self._name}{len(self._nodes)}"
        output_names = [f"{node_name}.{number}" for number in range(outputs)]
        node = helper.make_node(
            operator,
            inputs=input_names,
            outputs=output_names,
            domain=MICROSOFT if operator == "MatMulIntegerToFloat" else "",
            **attributes,
        )
        self._nodes.append(node)
        return [self.value(name) for name in output_names]

    def constant(self, operand: Operand) -> Value:
        """Add a constant and return it."""
        # ONNX Runtime copies an array that is not in C order, and shares the memory of others.
        array = np.array(operand, order="C")
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"{self._name}constant.{len(self._constants)}"
        self._constants[name] = array
        return self.value(name)

    def value(self, name: str) -> Value:
        """Return the value with this name or second name.

        It may belong to a graph that is joined to this one. In the body of a loop, it may belong to
        the surrounding graph.
        """
        return Value(self, self._aliases.get(name, name))

    def input(
        self,
        name: str,
        element_type: int,
        shape: Sequence[int | str] | None = None,
    ) -> Value:
        """Add an input and return it; None means any shape."""
        info = helper.make_tensor_value_info(name, element_type, shape)
        self._inputs.append(info)
        return self.value(name)

    def output(
        self,
        name: str,
        value: Value,
        element_type: int = FLOATS,
    ) -> None:
        """Make a value an output of the graph, under a name."""
        self.alias(name, value)
        info = helper.make_tensor_value_info(name, element_type, None)
        self._outputs.append(info)

    def alias(self, name: str, value: Value) -> None:
        """Give a value a second name, by which joined graphs read it."""
        self._aliases[name] = value.name

    def rows(self, x: Value, columns: int) -> Value:
        """Reshape (..., columns) to (rows, columns)."""
        return self.op("Reshape", x, [-1, columns])

    def columns(self, x: Value, width: int) -> Value:
        """Transpose (B, K, width) to (B, width, K).

        The Reshape does not change the shape. Without it, ONNX Runtime would fuse the Transpose
        with the product that reads it, and the fused operation takes four times as long.
        """
        turned = self.op("Transpose", x, perm=[0, 2, 1])
        return self.op("Reshape", turned, [0, width, -1])

    def mean(self, values: Sequence[Value]) -> Value:
        """Return the elementwise mean of several values."""
        if len(values) == 1:
            return values[0]
        return self.op("Mean", *values)

    def quantize(self, x: Value, scale: float) -> Value:
        """Round values to unsigned bytes around 128, whose unit is ``scale``.

        CPUs have instructions for the product of unsigned and signed bytes. Values that are too
        large for a byte become the largest byte, and those that are too small become the smallest.
        """
        return self.op("QuantizeLinear", x, scale, np.uint8(MIDDLE))

    def linear(
        self,
        x: Value,
        weight: AnyArray,
        bias: AnyArray,
        scale: float | None = None,
    ) -> Value:
        """Map (rows, inputs) by a weight (outputs, inputs) and a bias (outputs,).

        If there is a ``scale``, ``x`` are the bytes that ``quantize`` returns for it. Otherwise
        ``x`` is in fp32. If the graph computes in int8, each row then gets a scale of its own, so
        that no row depends on the others.
        """
        if scale is not None:
            return self._product(x, scale, weight, bias)
        if not self._is_int8:
            return self.op("Gemm", x, weight.T, bias)
        # Each row is divided by its largest magnitude, so that one scale fits all rows. In a row of
        # zeros this is 0 / 0, which becomes an arbitrary byte. That does no harm, because this row
        # of the result is multiplied by 0 below.
        magnitudes = self.op("Abs", x)
        largest = self.op("ReduceMax", magnitudes, [1])  # (rows, 1)
        unit = 1 / LARGEST
        x_bytes = self.quantize(x / largest, unit)
        y = self._product(x_bytes, unit, weight, np.zeros_like(bias))
        return y * largest + bias

    def _product(
        self,
        x_bytes: Value,
        x_scale: float,
        weight: AnyArray,
        bias: AnyArray,
    ) -> Value:
        """Round the weight to bytes, and map ``x_bytes`` by it to fp32.

        Each output has its own scale of the weight's bytes.
        """
        # The smallest scale avoids a division by 0 if all weights of an output are 0.
        scales = np.abs(weight).max(1) / LARGEST  # (outputs,)
        smallest = np.finfo(np.float32).tiny
        scales = np.maximum(scales, smallest)
        rounded = np.rint(weight / scales[:, None])  # (outputs, inputs)
        weight_bytes = rounded.T.astype(np.int8)  # (inputs, outputs)
        # The order of the inputs of this contributed operator is: A, B, the scale of A, the scale
        # of B, the zero point of A, the zero point of B, the bias.
        return self.op(
            "MatMulIntegerToFloat",
            x_bytes,
            weight_bytes,
            x_scale,
            scales,
            np.uint8(MIDDLE),
            np.int8(0),
            bias,
        )

    def join(self, other: "Graph") -> None:
        """Add the nodes and constants of another graph.

        The inputs of the other graph are read from values of this graph with the same names.
        """
        for node in other._nodes:
            joined = NodeProto()
            joined.CopyFrom(node)
            joined.input[:] = [self._aliases.get(name, name) for name in node.input]
            self._nodes.append(joined)
        self._constants |= other._constants
        self._aliases |= other._aliases

    def loop(
        self,
        body: "Graph",
        runs: Value,
        goes_on: Value,
        carried: Mapping[str, Value],
        results: Mapping[str, Value],
    ) -> None:
        """Add a loop that runs ``body`` until ``goes_on``, a value of the body, is false.

        The body runs at least once, and at most ``runs`` () times. It reads the number of the
        current run, from 0 on, as ``position``.

        ``carried`` maps a name to a value of the body, which the next run reads under this name.
        The first run reads ``NAME.first`` in its place, an input of this graph.

        ``results`` maps a name to a value of the body. An output of this graph gets this name, and
        has the values of all runs, stacked in a new first dimension.
        """
        # The operator Loop prescribes these orders:
        # inputs of the node: maximum number of runs, whether the first run takes place, first
        #     values of what is carried;
        # inputs of the body: number of the run, whether it takes place, carried values;
        # outputs of the body: whether the next run takes place, carried values, results;
        # outputs of the node: last values of what is carried, stacked results.
        body.input("position", INDICES, [])
        body.input("goes_on", TRUTHS, [])
        # ONNX Runtime infers the types of the other inputs and outputs.
        untyped = helper.make_empty_tensor_value_info
        body._outputs.append(untyped(goes_on.name))
        node_inputs = [runs.name, self.constant(True).name]
        node_outputs = []
        for name, following in carried.items():
            body._inputs.append(untyped(name))
            body._outputs.append(untyped(following.name))
            node_inputs.append(f"{name}.first")
            node_outputs.append(f"{name}.last")
        for name, value in results.items():
            body._outputs.append(untyped(value.name))
            self._outputs.append(untyped(name))
            node_outputs.append(name)
        # The body can read constants of the surrounding graph. Large constants go there, because
        # ``session`` passes them to ONNX Runtime without a copy. Those in int8 stay in the body,
        # because the loop is then 1.05 times as fast.
        body_constants = []
        for name, array in body._constants.items():
            if array.ndim < 2 or array.dtype == np.int8:
                body_constants.append(numpy_helper.from_array(array, name))
            else:
                self._constants[name] = array
        body_graph = helper.make_graph(
            body._nodes, "body", body._inputs, body._outputs, body_constants
        )
        node = helper.make_node("Loop", node_inputs, node_outputs, body=body_graph)
        self._nodes.append(node)

    def session(self) -> InferenceSession:
        """Return a session that runs the graph.

        The session has one thread, because other threads translate other batches at the same time.
        """
        options = SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # only errors
        has_vnni = CPU.is_file() and "vnni" in CPU.read_text()
        if not has_vnni:
            # Without VNNI instructions, products of unsigned and signed bytes are added in 16 bits,
            # which can overflow. This option selects kernels that do not overflow.
            options.add_session_config_entry("session.x64quantprecision", "1")
        constants = []
        for name, array in self._constants.items():
            if array.ndim < 2:
                constants.append(numpy_helper.from_array(array, name))
                continue
            # Do not copy a large constant into the model. The model only names it, and ONNX
            # Runtime reads the memory of the array.
            tensor = TensorProto(
                name=name,
                dims=array.shape,
                data_type=element_type_of(array),
                data_location=TensorProto.EXTERNAL,
            )
            tensor.external_data.add(key="location", value=name)
            constants.append(tensor)
            memory = OrtValue.ortvalue_from_numpy(array)
            options.add_external_initializers([name], [memory])
        return InferenceSession(
            self._model(constants), options, ["CPUExecutionProvider"]
        )

    def save(self, path: Path) -> None:
        """Write the graph with all its constants to a file for ONNX Runtime."""
        constants = []
        for name, array in self._constants.items():
            constants.append(numpy_helper.from_array(array, name))
        path.write_bytes(self._model(constants))

    def _model(self, constants: Sequence[TensorProto]) -> bytes:
        """Return the serialized graph with these constants."""
        # In the file, a second name is the output of an Identity node.
        named = []
        for name, source in self._aliases.items():
            named.append(helper.make_node("Identity", [source], [name]))
        graph = helper.make_graph(
            [*self._nodes, *named], "graph", self._inputs, self._outputs, constants
        )
        standard_operators = helper.make_opsetid("", OPSET)
        contributed_operators = helper.make_opsetid(MICROSOFT, 1)
        model = helper.make_model(
            graph,
            opset_imports=[standard_operators, contributed_operators],
            ir_version=IR_VERSION,
        )
        return bytes(model.SerializeToString())
