"""Two systems' outputs line by line: where they differ, and which of them the reference prefers.

The scores of sentences order the lines and are no evidence: what is told of the systems is BLEU of
the whole with a paired bootstrap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from convs2s.errors import UserError
from convs2s.scoring.bleu import SAMPLES, BleuKind, Comparison, SentenceBleu, compare
from convs2s.scoring.text_table import underlined


@dataclass(frozen=True)
class Part:
    """Words of one output that the other has as well, or has not."""

    text: str
    differs: bool


@dataclass(frozen=True)
class ComparedLine:
    """A line of both outputs.

    Attributes:
        number: from 1.
        source: what was translated; None where it was not given.
        references: one or more.
        baseline: the baseline's words, part by part; system likewise.
        system: see baseline.
        baseline_score: smoothed BLEU of the line alone; system_score likewise.
        system_score: see baseline_score.
    """

    number: int
    source: str | None
    references: tuple[str, ...]
    baseline: tuple[Part, ...]
    system: tuple[Part, ...]
    baseline_score: float
    system_score: float

    @property
    def difference(self) -> float:
        """What the system's line has more than the baseline's."""
        return self.system_score - self.baseline_score


@dataclass(frozen=True)
class SideBySide:
    """Two systems on a test set.

    Attributes:
        names: what they are called, the baseline first.
        whole: BLEU of both and the chance of their difference.
        lines: of the test set.
        same: lines that are the same in both.
        better: lines that score more in the system's output; worse: those that score less.
        worse: see better.
        shown: the lines that differ most, from the largest gain to the largest loss.
    """

    names: tuple[str, str]
    whole: Comparison
    lines: int
    same: int
    better: int
    worse: int
    shown: tuple[ComparedLine, ...]


def side_by_side(
    baseline: Sequence[str],
    system: Sequence[str],
    *references: Sequence[str],
    kind: BleuKind,
    names: tuple[str, str],
    most: int,
    source: Sequence[str] | None = None,
) -> SideBySide:
    """Compare two outputs.

    Args:
        baseline: one system's lines.
        system: the other system's lines.
        references: one or more lists of lines, in the form that ``kind`` asks for.
        kind: which BLEU.
        names: what the two are called.
        most: the most lines to show.
        source: what was translated, if it is to be shown.

    Raises:
        UserError: the lists differ in length, or there are no lines.
    """
    whole = compare(baseline, system, *references, kind=kind, names=names)
    if source is not None and len(source) != len(system):
        raise UserError(f"the source has {len(source)} lines, but {names[1]} has {len(system)}")
    score, texts = SentenceBleu(kind), zip(*references, strict=True)
    differing = [
        _compared(number, *lines, score, source)
        for number, lines in enumerate(zip(baseline, system, texts, strict=True))
        if lines[0] != lines[1]
    ]
    largest = sorted(differing, key=lambda line: (-abs(line.difference), line.number))[:most]
    shown = sorted(largest, key=lambda line: (-line.difference, line.number))
    better, worse = (sum(sign * one.difference > 0 for one in differing) for sign in (1, -1))
    same = len(system) - len(differing)
    return SideBySide(names, whole, len(system), same, better, worse, tuple(shown))


def _compared(
    number: int,
    baseline: str,
    system: str,
    references: tuple[str, ...],
    score: SentenceBleu,
    source: Sequence[str] | None,
) -> ComparedLine:
    return ComparedLine(
        number + 1,
        None if source is None else source[number],
        references,
        *marked(baseline, system),
        score(baseline, *references),
        score(system, *references),
    )


def marked(baseline: str, system: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return both lines in parts of words that they share and words that they do not."""
    words = baseline.split(), system.split()
    found: tuple[list[Part], list[Part]] = [], []
    for kind, *bounds in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        for side, (start, end) in enumerate((bounds[:2], bounds[2:])):
            if start < end:
                found[side].append(Part(" ".join(words[side][start:end]), kind != "equal"))
    return tuple(found[0]), tuple(found[1])


def told(found: SideBySide) -> Iterator[str]:
    """Say what the whole comes to."""
    scores = (
        (found.whole.baseline, found.whole.baseline_interval),
        (found.whole.system, found.whole.system_interval),
    )
    for name, (score, interval) in zip(found.names, scores, strict=True):
        yield f"BLEU = {score.score:.2f} ± {interval:.2f}  {name}"
    whole = found.whole
    yield f"difference = {whole.difference:+.2f}, p = {whole.p_value:.4f}, {SAMPLES} resamples"
    yield f"{whole.system.signature}  ({found.lines} lines)"
    yield f"{found.better} lines better, {found.worse} worse, {found.same} the same"


def as_text(found: SideBySide) -> Iterator[str]:
    """Yield the comparison as plain text: words of the baseline alone in [- -], others in {+ +}."""
    yield from told(found)
    for line in found.shown:
        yield ""
        scores = f"{line.baseline_score:.1f} -> {line.system_score:.1f}"
        yield from underlined(f"line {line.number}: {line.difference:+.1f} ({scores})")
        if line.source is not None:
            yield f"source     {line.source}"
        for reference in line.references:
            yield f"reference  {reference}"
        yield f"baseline   {_marks(line.baseline, '[-', '-]')}"
        yield f"system     {_marks(line.system, '{+', '+}')}"


def _marks(parts: Sequence[Part], opens: str, closes: str) -> str:
    return " ".join(f"{opens}{one.text}{closes}" if one.differs else one.text for one in parts)
