"""Drop sentence pairs that are unsuitable for training, as Moses' ``clean-corpus-n.perl`` does."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from convs2s.errors import failures_of_file
from convs2s.files.text import atomic_text, write_json

Prepare = Callable[[str], str]
"""Turns a line of raw text into its words, separated by blanks."""

SharesLine = Callable[[str, str], bool]
"""Tells whether a line of a pair, source or target, is also a line of validation or test text."""

Reason = Literal["empty", "too_long", "too_short", "ratio", "long_word", "overlap"]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""The reasons to drop a pair, in the order in which they are checked."""

LONGEST_WORD = 1000
"""Maximum number of characters of a word, the default of clean-corpus-n.perl.

Longer words are not natural language, but URLs or encoded data.
"""

# The characters that Perl's \s matches. Python's \s also matches U+001C to U+001F.
_BLANKS = re.compile(
    "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)

NumberOfPairs = Annotated[int, Field(ge=0)]


class FilterReport(TypedDict):
    """How many pairs were read, kept, and dropped for each of :data:`REASONS`."""

    read: NumberOfPairs
    kept: NumberOfPairs
    dropped: dict[Reason, NumberOfPairs]
    settings: str
    """The preparation's name and the limits."""


def remove_bars(line: str) -> str:
    """Delete every ``|``, which separates the factors of a word in Moses.

    Text whose special characters are escaped contains none.
    """
    return line.replace("|", "")


def tidy(line: str) -> str:
    r"""Return the words of a line, joined by single spaces.

    Words are separated by the blanks that Perl's ``\s`` matches.
    """
    if line.isprintable():
        # The only printable blank is the space, and split() is much faster than the pattern.
        return " ".join(line.split())
    return _BLANKS.sub(" ", line).strip(" ")


def reason_to_drop(
    source: str,
    target: str,
    *,
    minimum: int,
    maximum: int | None,
    ratio: float | None,
) -> Reason | None:
    """Return the first of :data:`REASONS` that applies to a pair of tidied lines, or None.

    The reason "overlap" is not checked, because it depends on other text. For the limits see
    :func:`tokenize_and_filter`.
    """
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
    # The line's length is checked first, because it is fast to find, and splitting is slow.
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
    shares_line: SharesLine | None = None,
) -> FilterReport:
    """Tokenize a corpus, write the pairs to keep, and report how many were dropped and why.

    Args:
        pairs: Raw (source, target) lines. They are read once.
        sides: The files to write, of the source side and of the target side. Words are joined by
            single spaces.
        report: The file to write the returned report to, as JSON.
        minimum: Minimum number of words on each side of a pair.
        maximum: Maximum number of words on each side; None sets no limit.
        ratio: Maximum number of words of the longer side per word of the shorter side; None sets no
            limit.
        preparation: Name of the preparation that ``prepare`` belongs to, for the report.
        prepare: The functions that turn a raw line into words, for the source and the target. By
            default they only delete ``|``, as clean-corpus-n.perl does.
        shares_line: Tells which pairs to drop because a line of them is also validation or test
            text. None keeps such pairs.
    """
    limits = f"minimum {minimum}, maximum {maximum}, ratio {ratio}"
    counts = FilterReport(
        read=0,
        kept=0,
        dropped=dict.fromkeys(REASONS, 0),
        settings=f"preparation {preparation}, {limits}",
    )
    source_path, target_path = sides
    prepare_source, prepare_target = prepare
    with (
        atomic_text(source_path) as source_out,
        atomic_text(target_path) as target_out,
    ):
        for raw_source, raw_target in pairs:
            counts["read"] += 1
            source = tidy(prepare_source(raw_source))
            target = tidy(prepare_target(raw_target))
            reason = reason_to_drop(
                source, target, minimum=minimum, maximum=maximum, ratio=ratio
            )
            if not reason and shares_line and shares_line(source, target):
                reason = "overlap"
            if reason:
                counts["dropped"][reason] += 1
            else:
                counts["kept"] += 1
                source_out.write(source + "\n")
                target_out.write(target + "\n")
    write_json(report, counts)
    return counts


def read_report(path: Path) -> FilterReport:
    """Read a report that :func:`tokenize_and_filter` wrote.

    Raises:
        UserError: the file is not such a report.
    """
    problem = "no report of a corpus filter; delete it and filter again"
    with failures_of_file(str(path), problem):
        return TypeAdapter(FilterReport).validate_json(path.read_bytes(), strict=True)


def added_reports(paths: Iterable[Path]) -> FilterReport:
    """Return the sum of the reports of a text's parts.

    The parts must have been filtered with the same settings, which is not checked. The settings of
    the last part are returned.
    """
    total = FilterReport(read=0, kept=0, dropped=dict.fromkeys(REASONS, 0), settings="")
    for report in map(read_report, paths):
        total["read"] += report["read"]
        total["kept"] += report["kept"]
        for reason, count in report["dropped"].items():
            total["dropped"][reason] += count
        total["settings"] = report["settings"]
    return total
