"""The token store: one uncompressed Arrow IPC file per split, which is memory-mapped.

It has two columns, ``source`` and ``target``. Each value is a list of vocabulary indices that ends
in ``</s>``. The offsets and the values of uncompressed lists are read directly from the memory map,
so that a store of 36 million pairs opens at once and needs no heap memory. A compressed file would
be decompressed to the heap.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path

Lengths = npt.NDArray[np.integer[Any]]
# The indices of a sentence's tokens, the last of them </s>.
TokenRow = npt.NDArray[np.int32]

SIDES = ("source", "target")
ROWS_PER_BATCH = 16384
"""Number of rows in each record batch but the last.

Row i of the store is row ``i % ROWS_PER_BATCH`` of batch ``i // ROWS_PER_BATCH``. While a store is
written, one batch is in memory.
"""

_SCHEMA = pa.schema([(side, pa.list_(pa.int32())) for side in SIDES])


def write_store(path: str | Path, pairs: Iterable[tuple[list[int], list[int]]]) -> int:
    """Write pairs of source and target index lists as a store, and return their number.

    Each list ends in ``</s>``.
    """
    count = 0
    rest = iter(pairs)
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, _SCHEMA) as writer,
    ):
        while rows := list(islice(rest, ROWS_PER_BATCH)):
            sides = [_lists(side) for side in zip(*rows, strict=True)]
            writer.write_batch(pa.record_batch(sides, schema=_SCHEMA))
            count += len(rows)
    return count


def _lists(rows: Sequence[Sequence[int]]) -> pa.ListArray:
    """Return index lists as an Arrow array of lists of int32."""
    values = array("i")
    offsets = array("i", [0])
    for row in rows:
        values.extend(row)
        offsets.append(len(values))
    arrays = []
    for numbers in (offsets, values):
        # None in place of a validity bitmap says that no value is missing. pa.array is not used
        # because it imports pandas.
        buffers = [None, pa.py_buffer(numbers)]
        arrays.append(pa.Array.from_buffers(pa.int32(), len(numbers), buffers))
    return pa.ListArray.from_arrays(*arrays)


def require_prepared(path: Path) -> None:
    """Raise a UserError if a file in a task's folder ``dataset/`` is missing.

    The message gives the command that makes the file.
    """
    if path.is_file():
        return
    # The path is TASK/dataset/FILE.
    task = path.absolute().parent.parent
    if not task.is_dir():
        raise UserError(
            f"{path}: no such file, and no folder {task.name}: name the folder of a prepared task, "
            "such as results/demo_en_fr, which `snakemake prepare --config 'tasks=[demo_en_fr]'` "
            "makes"
        )
    # The rule that makes a store also makes its description, which is a .json file beside it.
    store = path.with_suffix(".arrow")
    raise UserError(f"{path}: no such file: run `snakemake {store}` to make it")


class TokenStore:
    """A memory-mapped token store.

    ``store[i]`` is a pair (source, target) of index arrays, which are views of the memory map.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a store without reading its tokens.

        Raises:
            UserError: the file is missing, or it is not a token store of this version.
        """
        require_prepared(Path(path))
        self.path = Path(path)
        with failures_of_file(str(path), "not a token store"):
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            if reader.schema != _SCHEMA:
                raise UserError(
                    f"{path}: not a token store: its columns are {reader.schema.names}"
                )
            batches = [
                reader.get_batch(index) for index in range(reader.num_record_batches)
            ]
            for batch in batches:
                # Checks only the first and the last offset, so it is fast.
                batch.validate()
        if any(batch.num_rows != ROWS_PER_BATCH for batch in batches[:-1]):
            raise UserError(
                f"{path}: its batches do not have {ROWS_PER_BATCH} pairs each, so another version "
                "of this project wrote it: remove it, and run `snakemake prepare` to make it again"
            )
        # Side -> the offsets and the values of each record batch.
        self._columns: dict[str, list[tuple[TokenRow, TokenRow]]] = {}
        for side in SIDES:
            self._columns[side] = [_arrays(batch.column(side)) for batch in batches]
        self._length: int = sum(batch.num_rows for batch in batches)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> tuple[TokenRow, TokenRow]:
        return self._row("source", index), self._row("target", index)

    def __iter__(self) -> Iterator[tuple[TokenRow, TokenRow]]:
        for index in range(len(self)):
            yield self[index]

    def _row(self, side: str, index: int) -> TokenRow:
        batch, row = divmod(index, ROWS_PER_BATCH)
        offsets, values = self._columns[side][batch]
        return values[offsets[row] : offsets[row + 1]]

    def lengths(self, side: str) -> Lengths:
        """Return the number of tokens of each row of a side, ``</s>`` included.

        Only the offsets are read, not the tokens. The array has the smallest integer type that
        holds all lengths, often uint8, so convert it before you calculate with it.
        """
        # np.concatenate needs an array even if the store has no batches.
        parts: list[Lengths] = [np.zeros(0, np.uint8)]
        for offsets, _ in self._columns[side]:
            lengths = np.diff(offsets)
            smallest_type = np.min_scalar_type(lengths.max(initial=0))
            parts.append(lengths.astype(smallest_type))
        return np.concatenate(parts)


def _arrays(column: pa.ListArray) -> tuple[TokenRow, TokenRow]:
    """Return a column's offsets and values, still in the memory map."""
    # to_numpy is not used because it imports pandas, which takes half a second and 30 MB.
    offsets = np.from_dlpack(column.offsets).astype(np.int32, copy=False)
    values = np.from_dlpack(column.values).astype(np.int32, copy=False)
    return offsets, values
