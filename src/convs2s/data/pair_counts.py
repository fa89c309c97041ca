"""How many sentence pairs were read, dropped and why, and kept: beside what the paper states."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from convs2s.files import atomic_text, write_lines
from convs2s.scoring.text_table import aligned, underlined
from convs2s.text.clean import LONGEST_WORD, REASONS, Report, added_reports, read_report


def write_pair_counts(
    shards: Sequence[Path], valid: Path, outputs: tuple[Path, Path], facts: Mapping[str, Any]
) -> None:
    """Write the sum of the training shards' reports as JSON, and a table for people.

    Args:
        shards: the reports of the training text's shards.
        valid: the report of the validation text.
        outputs: the sum, and the table.
        facts: task (its name), clean (its limits), paper_pairs (the pairs that the paper states,
            or None) and stand_in (what the data is where it is not the paper's, or None).
    """
    total, table = outputs
    train = added_reports(shards)
    with atomic_text(total) as stream:
        stream.write(json.dumps(train, indent=2) + "\n")
    write_lines(table, _table(train, read_report(valid), facts))


def _table(train: Report, valid: Report, facts: Mapping[str, Any]) -> Iterator[str]:
    if facts["stand_in"]:
        yield from (f"STAND-IN DATA: {facts['stand_in']}", "")
    yield from underlined(f"Sentence pairs of {facts['task']}")
    yield ""
    limits = _limits(**facts["clean"])
    rows = [
        ["read", f"{train['read']:,}", f"{valid['read']:,}"],
        *(
            [
                f"dropped: {limits[reason]}",
                *(f"{side['dropped'][reason]:,}" for side in (train, valid)),
            ]
            for reason in REASONS
        ),
        ["kept", f"{train['kept']:,}", f"{valid['kept']:,}"],
    ]
    yield from aligned(["", "training", "validation"], rows)
    if facts["paper_pairs"]:
        yield from ("", f"The paper trains on {facts['paper_pairs']:,} pairs.")


def _limits(minimum: int, maximum: int | None, ratio: float | None) -> dict[str, str]:
    """Return what each of the filter's reasons says of a dropped pair, with these limits."""
    return {
        "empty": "a side without words",
        "too_long": f"over {maximum} words",
        "too_short": f"fewer than {minimum} words",
        "ratio": f"one side over {ratio} times as long",
        "long_word": f"a word of over {LONGEST_WORD} characters",
    }
