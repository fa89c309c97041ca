"""Drop the sentence pairs that training is better without, as ``clean-corpus-n.perl`` does."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, NotRequired

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import atomic_text, write_json

Prepare = Callable[[str], str]  # from a line of raw text to its words

REASONS = ("empty", "too_long", "too_short", "ratio", "long_word")
"""Why a pair can be dropped, in the order in which the reasons are tried."""

LONGEST_WORD = 1000
"""clean-corpus-n.perl's own default; it drops text that is no language (URLs, encoded data)."""

# Perl's \s. Python's adds U+001C to U+001F.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")

NumberOfPairs = Annotated[int, Field(ge=0)]


class FilterReport(TypedDict):
    """How many pairs were read and kept, and how many dropped by each of :data:`REASONS`."""

    read: NumberOfPairs
    kept: NumberOfPairs
    dropped: dict[str, NumberOfPairs]
    settings: NotRequired[str]
    """The preparation's name and the limits; not of an earlier version."""


def remove_bars(line: str) -> str:
    """Delete ``|``, which separates the factors of a word in Moses; escaped text holds none."""
    return line.replace("|", "")


def tidy(line: str) -> str:
    """Return the words of a line, joined by single spaces."""
    if line.isprintable():  # then the only blank is the space, and split() is much the faster
        return " ".join(line.split())
    return _BLANKS.sub(" ", line).strip(" ")


def reason_to_drop(
    source: str, target: str, *, minimum: int, maximum: int | None, ratio: float | None
) -> str | None:
    """Return the first of :data:`REASONS` that holds for a tidied pair, or None to keep it."""
    if not source or not target:
        return "empty"
    lengths = (source.count(" ") + 1, target.count(" ") + 1)
    longer = max(lengths)
    shorter = min(lengths)
    if maximum is not None and longer > maximum:
        return "too_long"
    if shorter < minimum:
        return "too_short"
    if ratio is not None and longer / shorter > ratio:
        return "ratio"
    if _has_long_word(source) or _has_long_word(target):
        return "long_word"
    return None


def _has_long_word(line: str) -> bool:
    # The length of the line first: that of each word takes long to find out.
    return len(line) > LONGEST_WORD and max(map(len, line.split(" "))) > LONGEST_WORD


def tokenize_and_filter(
    pairs: Iterable[tuple[str, str]],
    *,
    sides: tuple[Path, Path],
    report: Path,
    minimum: int,
    maximum: int | None,
    ratio: float | None,
    preparation: str = "none",
    prepare: tuple[Prepare, Prepare] = (remove_bars, remove_bars),
) -> FilterReport:
    """Write the pairs worth keeping, and how many were dropped and why, in one pass.

    ``pairs`` are lines of raw text. ``sides``, which are written tidied, are the source's file and
    the target's, and ``prepare``, of the ``preparation`` of this name, makes words of a line of
    each: as it is, text loses its ``|``, as by clean-corpus-n.perl. ``minimum`` and ``maximum`` are
    words of either side, ``ratio`` the most words of one side per word of the other. ``report`` is
    the :class:`FilterReport` as JSON.
    """
    counts = FilterReport(read=0, kept=0, dropped=dict.fromkeys(REASONS, 0))
    with atomic_text(sides[1]) as target_out, atomic_text(sides[0]) as source_out:
        for raw_source, raw_target in pairs:
            counts["read"] += 1
            source = tidy(prepare[0](raw_source))
            target = tidy(prepare[1](raw_target))
            reason = reason_to_drop(source, target, minimum=minimum, maximum=maximum, ratio=ratio)
            if reason:
                counts["dropped"][reason] += 1
            else:
                counts["kept"] += 1
                source_out.write(source + "\n")
                target_out.write(target + "\n")
    limits = f"minimum {minimum}, maximum {maximum}, ratio {ratio}"
    counts["settings"] = f"preparation {preparation}, {limits}"
    write_json(report, counts)
    return counts


def read_report(path: Path) -> FilterReport:
    """Read the report of :func:`tokenize_and_filter`; any other file is a UserError."""
    with failures_of_file(str(path), "no report of a corpus filter; delete it and filter again"):
        report = TypeAdapter(FilterReport).validate_json(path.read_bytes(), strict=True)
        if not set(report["dropped"]) <= set(REASONS):
            raise ValueError(f"a reason that is none of {', '.join(REASONS)}")
    return report


def added_reports(paths: Iterable[Path]) -> FilterReport:
    """Return the sum of the reports of a text's parts, which were filtered by the same settings."""
    total = FilterReport(read=0, kept=0, dropped=dict.fromkeys(REASONS, 0))
    for report in map(read_report, paths):
        total["read"] += report["read"]
        total["kept"] += report["kept"]
        for reason, count in report["dropped"].items():
            total["dropped"][reason] += count
        if "settings" in report:
            total["settings"] = report["settings"]
    return total


def check_same_settings(reports: Sequence[Path]) -> None:
    """Check that the texts of reports were filtered by the same settings.

    A UserError says that they were not: where a task's files are gone, Snakemake leaves the text
    that was made of them as it is.
    """
    first, *others = reports
    settings = read_report(first).get("settings")
    for path in others:
        other_settings = read_report(path).get("settings")
        if other_settings != settings:
            raise UserError(
                f"{first}: was made with {settings}, {path} with {other_settings}: bring back the "
                "task's files of text, so that both are made again, or state the former settings"
            )
