"""Write tables for people: how many pairs were read, kept, and dropped for each reason.

This module must not import anything for BPE. Otherwise an edit of BPE's code would make the
workflow write these tables again, and with them count the words of the corpus again.
"""

from collections.abc import Iterable
from pathlib import Path

from convs2s.config.task import CorpusMetadata
from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.scoring.text_table import aligned, underlined
from convs2s.text.corpus_filter import LONGEST_WORD, REASONS, read_report

CountsRow = tuple[str, int, int]
"""A row of a table: its name, and the numbers for the training and the validation text."""


def count_pairs(
    *,
    train: Path,
    valid: Path,
    table: Path,
    metadata: CorpusMetadata,
) -> None:
    """Write a table of the pairs in the filter's reports of the training and the validation text.

    The last line gives the paper's number of training pairs, if ``metadata`` has it.

    Raises:
        UserError: the two texts were filtered with different settings. Snakemake does not filter a
            text again if the files that it was made from no longer exist.
    """
    training = read_report(train)
    validation = read_report(valid)
    settings = training["settings"]
    other_settings = validation["settings"]
    if other_settings != settings:
        raise UserError(
            f"{train}: was made with {settings}, {valid} with {other_settings}: restore the "
            "task's text files, so that both are made again, or restore the former settings"
        )
    clean = metadata.clean
    # Reason -> its row's name. A limit that is not set has no row.
    labels = {
        "empty": "a side without words",
        "too_short": f"fewer than {clean.minimum} words",
        "long_word": f"a word of over {LONGEST_WORD} characters",
    }
    if clean.maximum is not None:
        labels["too_long"] = f"over {clean.maximum} words"
    if clean.ratio is not None:
        labels["ratio"] = f"one side over {clean.ratio} times as long"
    if clean.remove_overlap:
        labels["overlap"] = "a line of validation or test text"
    rows = [("read", training["read"], validation["read"])]
    for reason in REASONS:
        if reason in labels:
            # A report from before the reason was introduced does not have it.
            from_training = training["dropped"].get(reason, 0)
            from_validation = validation["dropped"].get(reason, 0)
            rows.append((f"dropped: {labels[reason]}", from_training, from_validation))
    rows.append(("kept", training["kept"], validation["kept"]))
    lines = counts_table(f"Sentence pairs of {metadata.task}", metadata.stand_in, rows)
    if metadata.paper_pairs:
        lines += ["", f"The paper trains on {metadata.paper_pairs:,} pairs."]
    write_lines(table, lines)


def counts_table(
    title: str,
    stand_in: str | None,
    rows: Iterable[CountsRow],
) -> list[str]:
    """Return the lines of a table with its title.

    If ``stand_in`` is given, the first line says that the data are a stand-in for real data.
    """
    lines = [f"STAND-IN DATA: {stand_in}", ""] if stand_in else []
    lines += underlined(title)
    lines.append("")
    figures = [
        [name, f"{training:,}", f"{validation:,}"]
        for name, training, validation in rows
    ]
    lines += aligned(["", "training", "validation"], figures)
    return lines
