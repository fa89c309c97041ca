"""Which kernel and which precision are the fastest for a network on this machine.

What wins on one processor loses on another. The first training or decoding of a network's shapes
with a number of threads measures them, in less than a second; the answer is kept in the user's
cache folder, so that later ones there compute the same bytes.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from convs2s.files import read_json, write_json
from convs2s.guards.library_faults import faults_of_file
from convs2s.guards.writing import writing
from convs2s.manifest import processor
from convs2s.models.kernels import matmul
from convs2s.models.kernels.matmul import Kernel
from convs2s.models.kernels.probe import Product, decoding_rates, rates
from convs2s.models.kernels.quantized_linear import Precision

FAVOUR: dict[Kernel, float] = {"blas": 1.05}
"""By how much another kernel must be faster than torch's own library: less is noise."""

PRECISION_MARGIN = 1.2
"""By how much a precision must be faster than those that round less: near ones change places."""

MOST_DECODED_ROWS = 320
"""Hypotheses at a time that are measured; more of them change little."""

Kept = dict[str, dict[str, float]]
"""What was measured, and on what -> each candidate's operations a second."""


def fastest(found: Sequence[Product]) -> Kernel:
    """Return the fastest kernel for these products with this process's threads.

    What any process of this user has measured on such a processor is taken from the cache folder.

    Raises:
        UserError: the cache folder cannot be written to, or its file is damaged.
    """
    measured = _measured(_key("training", found), lambda: rates(found))
    return max(matmul.kernels(), key=lambda name: measured.get(name, 0.0) * FAVOUR.get(name, 1.0))


def fastest_precision(
    found: Sequence[Product], hypotheses: int, candidates: Sequence[Precision]
) -> Precision:
    """Return the fastest precision for a decoding's products with this process's threads.

    It is fp32 unless another one is faster by more than ``PRECISION_MARGIN``, and int8 only where
    it is by that much faster than bf16, too. What has been measured is kept as of ``fastest``.

    Args:
        found: the products of a step.
        hypotheses: how many there are at a time.
        candidates: those that the network has.

    Raises:
        UserError: as of ``fastest``.
    """
    rows = min(hypotheses, MOST_DECODED_ROWS)
    key = _key(f"decoding {rows}", found)
    measured = _measured(key, lambda: decoding_rates(found, [rows])[rows])
    best: Precision = "fp32"
    for name in ("bf16", "int8"):  # each rounds more than the one before
        if name in candidates and measured.get(name, 0.0) > PRECISION_MARGIN * measured[best]:
            best = name
    return best


def _measured(key: str, measure: Callable[[], Mapping[Any, float]]) -> dict[str, float]:
    """Return what is kept under a key, after it has been measured where nothing is."""
    path = cache_file()
    with writing(path), _alone(path.parent):
        kept = _kept(path)
        if key not in kept:
            kept |= {key: dict(measure())}
            write_json(path, kept)
    return kept[key]


def cache_file() -> Path:
    """Return the file that keeps what was measured, below the user's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "convs2s" / "kernels.json"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process of this user measure at a time: the others take what it has found."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _kept(path: Path) -> Kept:
    if not path.is_file():
        return {}
    with faults_of_file(str(path), "not what this program keeps there; remove it"):
        return TypeAdapter(Kept).validate_python(read_json(path))


def _key(work: str, found: Sequence[Product]) -> str:
    shapes = sorted((one.outputs, one.inputs, one.count) for one in found)
    machine = processor(), torch.__version__, torch.get_num_threads()
    return json.dumps([work, *machine, shapes])
