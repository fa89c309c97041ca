"""Two systems of a task on one test set: by BLEU of the whole, run by run, and line by line.

Seed i of one is held against seed i of the other. Resampling answers for the choice of the test
set's lines, not for the chance in a training: the seeds show that. So each pair has a p-value of
its own, and none is made of their mean. BLEU of single lines orders them and is no evidence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path

from convs2s.files.text import read_lines
from convs2s.scoring.bleu import (
    SAMPLES,
    BleuForm,
    Comparison,
    Lines,
    SentenceBleu,
    check_lines,
    compare,
)
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.summary import mean_and_deviation
from convs2s.scoring.translations import DecodedLine, read_translations


def compare_models(
    *,
    pairs: Mapping[str, tuple[Path, Path]],
    raw: Path,
    tokenized: Path,
    report: Report,
    test_set: str,
    manifest: Mapping[str, object],
    samples: int = SAMPLES,
) -> None:
    """Compare two systems by paired bootstrap resampling; write a report as text and as JSON.

    ``pairs`` are, by run, the decoder's JSON lines of the baseline and of the system; ``raw`` is
    the target side as published, ``tokenized`` the same in the words of the task. The header of the
    ``report`` names the models.
    """
    systems = {run: list(map(read_translations, paths)) for run, paths in pairs.items()}
    references: dict[BleuForm, list[str]] = {
        "tokenized": list(read_lines(tokenized)),
        "detokenized": list(read_lines(raw)),
    }
    bleu = {}
    for form, reference in references.items():
        runs = {}
        for run, (baseline, system) in systems.items():
            result = compare(
                _lines_of(baseline, form),
                _lines_of(system, form),
                reference,
                form=form,
                samples=samples,
                names=(str(pairs[run][0]), str(pairs[run][1])),
            )
            runs[run] = asdict(result)
            signature = runs[run].pop("signature")  # it does not depend on what is scored
        bleu[form] = {
            "signature": signature,
            "baseline": mean_and_deviation([one["baseline"]["score"] for one in runs.values()]),
            "system": mean_and_deviation([one["system"]["score"] for one in runs.values()]),
            "difference": mean_and_deviation([one["difference"] for one in runs.values()]),
            "runs": runs,
        }
    report.write(
        "comparison.txt.j2",
        test_set=test_set,
        samples=samples,
        lines=len(references["detokenized"]),
        bleu=bleu,
        manifest=manifest,
    )


def _lines_of(translations: Sequence[DecodedLine], form: BleuForm) -> list[str]:
    if form == "tokenized":
        return [" ".join(line.words) for line in translations]
    return [line.text for line in translations]


@dataclass(frozen=True)
class Part:
    """Words of one output that the other has as well, or has not."""

    text: str
    differs: bool


Parts = tuple[Part, ...]  # of one line, in their order


@dataclass(frozen=True)
class ComparedLine:
    """A line of both outputs, numbered from 1, with the smoothed BLEU of the line alone."""

    number: int
    source: str | None
    references: tuple[str, ...]
    baseline: Parts
    system: Parts
    baseline_score: float
    system_score: float

    @property
    def difference(self) -> float:
        """What the system's line has more than the baseline's."""
        return self.system_score - self.baseline_score


@dataclass(frozen=True)
class OutputComparison:
    """Two systems' outputs of a test set, the baseline's first."""

    names: tuple[str, str]
    whole: Comparison
    lines: int
    same: int
    better: int  # in the system's output
    worse: int
    shown: tuple[ComparedLine, ...]  # differ most, from the largest gain to the largest loss

    def summary(self) -> Iterator[str]:
        """Yield lines of text about the whole."""
        yield from self.whole.summary(self.names, f"{self.lines} lines")
        even = self.lines - self.better - self.worse - self.same  # in BLEU, by other words
        yield f"{self.better} lines better, {self.worse} worse, {even} even, {self.same} the same"


def compare_outputs(
    baseline: Lines,
    system: Lines,
    *references: Lines,
    form: BleuForm,
    names: tuple[str, str],
    most: int,
    source: Lines | None = None,
) -> OutputComparison:
    """Compare two outputs line by line; show up to ``most`` lines, with their ``source`` if given.

    The references are one or more lists of lines, in the form that ``form`` asks for.

    Raises:
        UserError: the lists differ in their number of lines, or have none.
    """
    whole = compare(baseline, system, *references, form=form, names=names)
    if source is not None:
        check_lines(system, [source], names[1], ["the source"])
    score = SentenceBleu(form)
    differing = []
    texts_of_lines = zip(baseline, system, *references, strict=True)
    for number, (first, second, *wanted) in enumerate(texts_of_lines, start=1):
        if first.encode().split() == second.encode().split():  # as multi-bleu.perl splits
            continue
        parts, other_parts = mark_differences(first, second)
        line = ComparedLine(
            number=number,
            source=None if source is None else source[number - 1],
            references=tuple(wanted),
            baseline=parts,
            system=other_parts,
            baseline_score=score(first, *wanted),
            system_score=score(second, *wanted),
        )
        differing.append(line)
    largest = sorted(differing, key=lambda line: -abs(line.difference))[:most]
    shown = sorted(largest, key=lambda line: -line.difference)
    return OutputComparison(
        names=names,
        whole=whole,
        lines=len(system),
        same=len(system) - len(differing),
        better=sum(line.difference > 0 for line in differing),
        worse=sum(line.difference < 0 for line in differing),
        shown=tuple(shown),
    )


def mark_differences(baseline: str, system: str) -> tuple[Parts, Parts]:
    """Return both lines in parts of words that they share and words that they do not."""
    words = baseline.split()
    other_words = system.split()
    parts = list[Part]()
    other_parts = list[Part]()
    matcher = SequenceMatcher(None, words, other_words, autojunk=False)
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        differs = tag != "equal"
        parts.append(Part(" ".join(words[start:end]), differs))
        other_parts.append(Part(" ".join(other_words[other_start:other_end]), differs))
    return _not_empty(parts), _not_empty(other_parts)


def _not_empty(parts: Sequence[Part]) -> Parts:
    return tuple(part for part in parts if part.text)
