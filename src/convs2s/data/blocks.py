"""Blocks of a training text: contiguous pairs that jobs count and number side by side."""

from pathlib import Path

from convs2s.data.store import ROWS_PER_BATCH
from convs2s.text.corpus_filter import pairs_kept


def block_rows(block: str, rows: int) -> range:
    """Return the rows of a block such as ``2-of-16`` of a split with so many rows.

    All but the last one with rows hold whole record batches, so that the blocks' stores end to end
    are the split's. Where there are fewer batches than blocks, some have none.
    """
    number, of = map(int, block.split("-of-"))
    batches = -(-rows // ROWS_PER_BATCH)
    ends = [min(rows, batches * part // of * ROWS_PER_BATCH) for part in (number - 1, number)]
    return range(*ends)


def rows_of_block(block: str, training_report: Path) -> range:
    """Return the rows of a block of a task's training text.

    Args:
        block: its name, such as ``2-of-16``.
        training_report: how many pairs the text has.
    """
    return block_rows(block, pairs_kept(training_report))
