"""How many pairs the token stores hold, and how many were too long: after `pair_counts`' filter."""

from collections.abc import Iterator
from pathlib import Path

from convs2s.data.dataset import StoreDescription, read_description
from convs2s.files.text import write_lines
from convs2s.scoring.text_table import aligned, underlined


def count_dataset(*, train: Path, valid: Path, table: Path, most_tokens: int | None) -> None:
    """Write a table for people.

    Args:
        train: what stands beside the training store.
        valid: what stands beside the validation store.
        table: the table, to write.
        most_tokens: of a side of a pair; None for any number.
    """
    write_lines(table, _table(read_description(train), read_description(valid), most_tokens))


def _table(
    train: StoreDescription, valid: StoreDescription, most_tokens: int | None
) -> Iterator[str]:
    if train.stand_in:
        yield from (f"STAND-IN DATA: {train.stand_in}", "")
    yield from underlined(f"Token pairs of {train.task}")
    yield ""
    sides = train, valid
    rows = [["kept by words", *(f"{side.pairs + side.dropped:,}" for side in sides)]]
    if most_tokens is not None:
        rows.append([f"dropped: over {most_tokens} tokens", *(f"{s.dropped:,}" for s in sides)])
    rows.append(["kept", *(f"{side.pairs:,}" for side in sides)])
    yield from aligned(["", "training", "validation"], rows)
