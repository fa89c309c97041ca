"""How many pairs were read, dropped and why, and kept: tables for people.

Nothing of BPE is imported here: words are counted again where these counts are written again.
"""

from collections.abc import Iterable
from pathlib import Path

from convs2s.config.task import CorpusMetadata
from convs2s.files.text import write_lines
from convs2s.scoring.text_table import aligned, underlined
from convs2s.text.corpus_filter import (
    LONGEST_WORD,
    REASONS,
    check_same_settings,
    read_report,
)

CountsRow = tuple[str, int, int]  # its name, and the numbers of training and validation text


def count_pairs(*, train: Path, valid: Path, table: Path, metadata: CorpusMetadata) -> None:
    """Write a table of the pairs of the filter's two reports, beside the paper's number.

    A UserError says that they are of texts that were filtered by different settings.
    """
    check_same_settings([train, valid])
    training = read_report(train)
    validation = read_report(valid)
    clean = metadata.clean
    limits = {
        "empty": "a side without words",
        "too_short": f"fewer than {clean.minimum} words",
        "long_word": f"a word of over {LONGEST_WORD} characters",
    }
    if clean.maximum is not None:
        limits["too_long"] = f"over {clean.maximum} words"
    if clean.ratio is not None:
        limits["ratio"] = f"one side over {clean.ratio} times as long"
    rows = [("read", training["read"], validation["read"])]
    for reason in REASONS:
        if reason in limits:
            dropped = (training["dropped"][reason], validation["dropped"][reason])
            rows.append((f"dropped: {limits[reason]}", *dropped))
    rows.append(("kept", training["kept"], validation["kept"]))
    lines = counts_table(f"Sentence pairs of {metadata.task}", metadata.stand_in, rows)
    if metadata.paper_pairs:
        lines += ["", f"The paper trains on {metadata.paper_pairs:,} pairs."]
    write_lines(table, lines)


def counts_table(title: str, stand_in: str | None, rows: Iterable[CountsRow]) -> list[str]:
    """Return a table's lines under its title, below a line that says what stands in for data."""
    lines = [f"STAND-IN DATA: {stand_in}", ""] if stand_in else []
    lines += underlined(title)
    lines.append("")
    figures = [[name, f"{training:,}", f"{validation:,}"] for name, training, validation in rows]
    lines += aligned(["", "training", "validation"], figures)
    return lines
