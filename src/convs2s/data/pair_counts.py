"""How many sentence pairs were read, dropped and why, and kept: beside what the paper states."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from convs2s.config.corpus import CleanLimits
from convs2s.config.task import CorpusMetadata
from convs2s.files.text import write_json, write_lines
from convs2s.scoring.text_table import aligned, underlined
from convs2s.text.corpus_filter import (
    LONGEST_WORD,
    REASONS,
    FilterReport,
    added_reports,
    read_report,
)


def count_pairs(
    *, shards: Sequence[Path], valid: Path, total: Path, table: Path, metadata: CorpusMetadata
) -> None:
    """Write the sum of the training shards' reports as JSON, and a table for people.

    Args:
        shards: the reports of the training text's shards.
        valid: the report of the validation text.
        total: the sum, to write.
        table: the table, to write.
        metadata: what stands beside the numbers.
    """
    train = added_reports(shards)
    write_json(total, train)
    write_lines(table, _table(train, read_report(valid), metadata))


def _table(train: FilterReport, valid: FilterReport, metadata: CorpusMetadata) -> Iterator[str]:
    if metadata.stand_in:
        yield from (f"STAND-IN DATA: {metadata.stand_in}", "")
    yield from underlined(f"Sentence pairs of {metadata.task}")
    yield ""
    limits = _limits(metadata.clean)
    rows = [
        ["read", f"{train['read']:,}", f"{valid['read']:,}"],
        *(
            [
                f"dropped: {limits[reason]}",
                *(f"{side['dropped'][reason]:,}" for side in (train, valid)),
            ]
            for reason in REASONS
            if reason in limits
        ),
        ["kept", f"{train['kept']:,}", f"{valid['kept']:,}"],
    ]
    yield from aligned(["", "training", "validation"], rows)
    if metadata.paper_pairs:
        yield from ("", f"The paper trains on {metadata.paper_pairs:,} pairs.")


def _limits(clean: CleanLimits) -> dict[str, str]:
    """Return what those of the filter's reasons that have a limit say of a dropped pair."""
    found = {
        "empty": "a side without words",
        "too_short": f"fewer than {clean.minimum} words",
        "long_word": f"a word of over {LONGEST_WORD} characters",
    }
    if clean.maximum is not None:
        found["too_long"] = f"over {clean.maximum} words"
    if clean.ratio is not None:
        found["ratio"] = f"one side over {clean.ratio} times as long"
    return found
