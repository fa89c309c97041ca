"""Compare two systems on one test set, by the BLEU of the whole test set and line by line.

Runs of the systems are compared in pairs: seed i of one with seed i of the other. The bootstrap
shows how much depends on the choice of the test set's lines. How much depends on chance in the
training is shown by the differences between the seeds, not by the bootstrap. So each pair has its
own p-value, and there is none for the mean. The BLEU of single lines is used only to order them. It
is not evidence that a system is better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path

from convs2s.config.bleu import BleuForm, BleuTokenizer
from convs2s.files.text import read_lines
from convs2s.scoring.bleu import (
    SAMPLES,
    Comparison,
    Lines,
    check_lines,
    compare,
    sentence_bleu,
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
    tokenize: BleuTokenizer = "13a",
) -> None:
    """Compare two systems by paired bootstrap resampling, and write a report as text and as JSON.

    Args:
        pairs: for each run, the decoder's JSON lines of the baseline and of the system.
        raw: the target side as published.
        tokenized: the target side in the words of the task.
        report: the files to write. Its header must name the two models.
        test_set: the test set's name for the report.
        manifest: everything else that the numbers depend on.
        tokenize: the tokenizer of plain text.
    """
    outputs = {
        path: read_translations(path) for paths in pairs.values() for path in paths
    }
    plain = list(read_lines(raw))
    # Kind of BLEU -> how words are found, and the references.
    kinds: dict[str, tuple[BleuForm, list[str]]] = {
        "tokenized": ("tokenized", list(read_lines(tokenized))),
        "detokenized": (tokenize, plain),
    }
    bleu = {}
    for kind, (form, reference) in kinds.items():
        comparisons = []
        runs = {}
        for run, (baseline, system) in pairs.items():
            comparison = compare(
                _lines_of(outputs[baseline], form),
                _lines_of(outputs[system], form),
                reference,
                form=form,
                names=(str(baseline), str(system)),
            )
            comparisons.append(comparison)
            runs[run] = asdict(comparison)
            signature = runs[run].pop("signature")  # the same for all runs
        bleu[kind] = {
            "signature": signature,
            "baseline": mean_and_deviation(each.baseline.score for each in comparisons),
            "system": mean_and_deviation(each.system.score for each in comparisons),
            "difference": mean_and_deviation(each.difference for each in comparisons),
            "runs": runs,
        }
    report.write(
        "comparison.txt.j2",
        test_set=test_set,
        samples=SAMPLES,
        lines=len(plain),
        bleu=bleu,
        manifest=manifest,
    )


def _lines_of(translations: Sequence[DecodedLine], form: BleuForm) -> list[str]:
    """Return the lines of an output in the form that ``form`` needs."""
    if form == "tokenized":
        return [" ".join(line.words) for line in translations]
    return [line.text for line in translations]


@dataclass(frozen=True)
class Part:
    """Consecutive words of one output, all of them shared with the other output or all not."""

    text: str
    differs: bool


Parts = Sequence[Part]  # the parts of one line, in their order


@dataclass(frozen=True)
class ComparedLine:
    """A line in both outputs, with its smoothed sentence BLEU."""

    number: int  # from 1
    source: str | None
    references: tuple[str, ...]
    baseline: Parts
    system: Parts
    baseline_score: float
    system_score: float

    @property
    def difference(self) -> float:
        """BLEU of the system's line - BLEU of the baseline's line."""
        return self.system_score - self.baseline_score


@dataclass(frozen=True)
class OutputComparison:
    """The comparison of two systems' outputs of a test set."""

    names: tuple[str, str]  # of the baseline and the system
    whole: Comparison
    lines: int
    same: int  # lines that have the same words in both outputs
    better: int  # lines with a higher sentence BLEU in the system's output
    worse: int  # lines with a lower one
    shown: Sequence[ComparedLine]
    """The lines whose BLEU differs most, from the largest gain to the largest loss."""

    def summary(self) -> Iterator[str]:
        """Yield lines of text about the whole test set."""
        yield from self.whole.summary(self.names, f"{self.lines} lines")
        # Lines with different words but the same BLEU.
        even = self.lines - self.better - self.worse - self.same
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
    """Compare two outputs as a whole and line by line.

    Args:
        baseline: the baseline's output.
        system: the other system's output.
        references: one or more lists of lines, in the form that ``form`` needs.
        form: the kind of BLEU.
        names: the names of the baseline and the system.
        most: maximum number of lines in ``shown``.
        source: the source lines, which are shown if given.

    Raises:
        UserError: the lists differ in their number of lines, or have none.
    """
    whole = compare(baseline, system, *references, form=form, names=names)
    if source is not None:
        check_lines(system, [source], names[1], ["the source"])
    score = sentence_bleu(form)
    differing = []
    for index, (baseline_line, system_line) in enumerate(
        zip(baseline, system, strict=True)
    ):
        # Split bytes, so that only ASCII's blanks separate words, as in multi-bleu.perl.
        if baseline_line.encode().split() == system_line.encode().split():
            continue
        line_references = tuple(lines[index] for lines in references)
        baseline_parts, system_parts = mark_differences(baseline_line, system_line)
        line = ComparedLine(
            number=index + 1,
            source=None if source is None else source[index],
            references=line_references,
            baseline=baseline_parts,
            system=system_parts,
            baseline_score=score(baseline_line, *line_references),
            system_score=score(system_line, *line_references),
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
        shown=shown,
    )


def mark_differences(baseline: str, system: str) -> tuple[Parts, Parts]:
    """Return both lines, each split into parts that the lines share and parts that differ."""
    baseline_words = baseline.split()
    system_words = system.split()
    baseline_parts = list[Part]()
    system_parts = list[Part]()
    matcher = SequenceMatcher(None, baseline_words, system_words, autojunk=False)
    for tag, start, end, system_start, system_end in matcher.get_opcodes():
        for parts, words in (
            (baseline_parts, baseline_words[start:end]),
            (system_parts, system_words[system_start:system_end]),
        ):
            if words:
                parts.append(Part(" ".join(words), differs=tag != "equal"))
    return baseline_parts, system_parts
