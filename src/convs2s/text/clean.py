"""Drop the sentence pairs that training is better without, as ``clean-corpus-n.perl`` does."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

from convs2s.files import atomic_text, read_line_pairs

Step = Callable[[str], str]

#: Why a pair can be dropped, in the order in which the reasons are tried.
REASONS = ("empty", "too_long", "too_short", "ratio", "long_word")

#: clean-corpus-n.perl's own default; it drops text that is no language (URLs, encoded data).
LONGEST_WORD = 1000
# Perl's \s. Python's adds U+001C to U+001F.
_BLANKS = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


class Report(TypedDict):
    """How many pairs were read and kept, and how many dropped by each of :data:`REASONS`."""

    read: int
    kept: int
    dropped: dict[str, int]


def tidy(line: str) -> str:
    """Return the words of a line, joined by single spaces, without ``|``.

    The vertical bar separates the factors of a word in Moses, so that clean-corpus-n.perl deletes
    it; text that was tokenized with escaping holds none.
    """
    line = line.replace("|", "")
    if line.isprintable():  # then the only blank is the space, and split() is much the faster
        return " ".join(line.split())
    return _BLANKS.sub(" ", line).strip(" ")


def reason_to_drop(
    source: str, target: str, *, minimum: int, maximum: int | None, ratio: float | None
) -> str | None:
    """Return the first of :data:`REASONS` that holds for a tidied pair, or None to keep it."""
    if not source or not target:
        return "empty"
    lengths = source.count(" ") + 1, target.count(" ") + 1
    if maximum is not None and max(lengths) > maximum:
        return "too_long"
    if min(lengths) < minimum:
        return "too_short"
    if ratio is not None and max(lengths) / min(lengths) > ratio:
        return "ratio"
    if _has_long_word(source) or _has_long_word(target):
        return "long_word"
    return None


def _has_long_word(line: str) -> bool:
    return len(line) > LONGEST_WORD and max(map(len, line.split(" "))) > LONGEST_WORD


def clean_corpus(
    source_in: str | Path,
    target_in: str | Path,
    source_out: str | Path,
    target_out: str | Path,
    report_json: str | Path,
    *,
    minimum: int,
    maximum: int | None,
    ratio: float | None,
    prepare: tuple[Step, Step] | None = None,
) -> Report:
    """Write the pairs worth keeping, and how many were dropped and why, in one pass.

    Args:
        source_in: source side, one sentence per line.
        target_in: target side, as many lines.
        source_out: the source side of the pairs that are kept, tidied.
        target_out: their target side.
        report_json: the :class:`Report` as JSON.
        minimum: fewest words of either side.
        maximum: most words of either side; None for any number.
        ratio: most words of one side per word of the other; None for any.
        prepare: what turns a line of the source and of the target into words; None where the
            lines are words already.

    Returns:
        The report.

    Raises:
        UserError: a side is missing, is not UTF-8, or has more lines than the other.
    """
    dropped = Counter(dict.fromkeys(REASONS, 0))
    kept = 0
    pairs = read_line_pairs(source_in, target_in)
    if prepare:
        pairs = _prepared(pairs, *prepare)
    with ExitStack() as stack:
        report_out, target_stream, source_stream = (
            stack.enter_context(atomic_text(path)) for path in (report_json, target_out, source_out)
        )
        for source, target in pairs:
            source, target = tidy(source), tidy(target)
            reason = reason_to_drop(source, target, minimum=minimum, maximum=maximum, ratio=ratio)
            if reason:
                dropped[reason] += 1
                continue
            kept += 1
            source_stream.write(source + "\n")
            target_stream.write(target + "\n")
        report = Report(read=kept + dropped.total(), kept=kept, dropped=dict(dropped))
        report_out.write(json.dumps(report, indent=2) + "\n")
    return report


def _prepared(
    pairs: Iterable[tuple[str, str]], source_step: Step, target_step: Step
) -> Iterator[tuple[str, str]]:
    for source, target in pairs:
        yield source_step(source), target_step(target)


def read_report(path: Path) -> Report:
    """Read the report of :func:`clean_corpus`."""
    report: Report = json.loads(path.read_text("utf-8"))
    return report


def added_reports(paths: Iterable[Path]) -> Report:
    """Return the sum of reports."""
    total = Report(read=0, kept=0, dropped=dict.fromkeys(REASONS, 0))
    for report in map(read_report, paths):
        total["read"] += report["read"]
        total["kept"] += report["kept"]
        for reason, count in report["dropped"].items():
            total["dropped"][reason] += count
    return total
