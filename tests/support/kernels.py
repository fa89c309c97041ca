"""The arithmetic that this machine has, each kernel of it for tests of its own."""

from typing import cast

import pytest

from convs2s.models.kernels import quantized_linear
from convs2s.models.steps import Precision

NEEDS_VNNI = pytest.mark.skipif(not quantized_linear.has_vnni(), reason="needs a CPU with VNNI")
NEEDS_INT8 = pytest.mark.skipif(not quantized_linear.runs_int8(), reason="needs an x86 CPU")
INT8 = [
    pytest.param("int8", marks=NEEDS_VNNI),
    pytest.param("int8 of seven bits", marks=NEEDS_INT8),
]
"""int8 as processors with VNNI and without it have it."""


def precision_of(arithmetic: str, patch: pytest.MonkeyPatch) -> Precision:
    """Return a precision by its name, or int8 in one of the two ways."""
    if arithmetic == "int8 of seven bits":
        patch.setattr(quantized_linear, "has_vnni", lambda: False)
        return "int8"
    return cast(Precision, arithmetic)
