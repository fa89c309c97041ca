"""Two systems of a task on one test set: by BLEU of the whole, run by run, and line by line.

Seed i of one is held against seed i of the other. Resampling answers for the choice of the test
set's lines, not for the chance in a training: the seeds show that. So each pair has a p-value of
its own, and none is made of their mean. BLEU of single lines orders them and is no evidence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path

from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.bleu import (
    SAMPLES,
    BleuForm,
    Comparison,
    Lines,
    SentenceBleu,
    SystemScore,
    compare,
)
from convs2s.scoring.summary import Mean, mean_and_deviation
from convs2s.scoring.text_table import aligned, heading, underlined
from convs2s.scoring.translations import DecodedLine, read_translations


def compare_models(
    *,
    pairs: Mapping[str, tuple[Path, Path]],
    raw: Path,
    tokenized: Path,
    text: Path,
    json: Path,
    stand_in: str | None,
    header: Mapping[str, str],
    test_set: str,
    manifest: Mapping[str, object],
    samples: int = SAMPLES,
) -> None:
    """Compare two systems by paired bootstrap resampling; write a report as text and as JSON.

    ``pairs`` are, by run, the decoder's JSON lines of the baseline and of the system; ``raw`` is
    the target side as published, ``tokenized`` the same in the words of the task. ``stand_in``
    says what the data is, if not the paper's; ``header`` names the models.
    """
    systems = {run: list(map(read_translations, paths)) for run, paths in pairs.items()}
    references: dict[BleuForm, list[str]] = {
        "tokenized": list(read_lines(tokenized)),
        "detokenized": list(read_lines(raw)),
    }
    results: dict[BleuForm, _ComparedRuns] = {}
    for form, reference in references.items():
        runs = {}
        for run, (baseline, system) in systems.items():
            runs[run] = compare(
                _lines_of(baseline, form),
                _lines_of(system, form),
                reference,
                form=form,
                samples=samples,
                names=(str(pairs[run][0]), str(pairs[run][1])),
            )
        results[form] = _ComparedRuns(runs)
    count = len(references["detokenized"])
    content = {
        "stand_in": stand_in,
        **header,
        "test_set": test_set,
        "samples": samples,
        "lines": count,
        "bleu": {form: compared.as_json() for form, compared in results.items()},
        "manifest": manifest,
    }
    write_json(json, content)
    each = "one pair of runs" if len(pairs) == 1 else f"{len(pairs)} pairs of runs"
    title = f"{test_set}: {count} lines; {each} ({', '.join(pairs)}), {samples} resamples each"
    report = [*heading(stand_in, header), *underlined(title)]
    for form, compared in results.items():
        report += [*compared.as_text(form, header), ""]
    write_lines(text, report[:-1])


def _lines_of(translations: Sequence[DecodedLine], form: BleuForm) -> list[str]:
    if form == "tokenized":
        return [" ".join(line.words) for line in translations]
    return [line.text for line in translations]


@dataclass(frozen=True)
class _ComparedRuns:
    """Two systems by one kind of BLEU, run by run."""

    runs: Mapping[str, Comparison]

    @property
    def signature(self) -> str:
        """That of each run: it does not depend on what is scored."""
        first, *_ = self.runs.values()
        return first.signature

    @property
    def means(self) -> dict[str, Mean]:
        """Both systems' scores over the runs, and the difference of those."""
        runs = self.runs.values()
        return {
            "baseline": mean_and_deviation([run.baseline.score for run in runs]),
            "system": mean_and_deviation([run.system.score for run in runs]),
            "difference": mean_and_deviation([run.difference for run in runs]),
        }

    def as_json(self) -> dict[str, object]:
        """Return the signature, the means, and each run."""
        runs = {run: asdict(result) for run, result in self.runs.items()}
        for run in runs.values():
            del run["signature"]
        return {"signature": self.signature, **self.means, "runs": runs}

    def as_text(self, form: BleuForm, header: Mapping[str, str]) -> Iterator[str]:
        """Yield a table of the runs; where there are several, its last row has their means."""
        yield f"{form} BLEU  {self.signature}"
        names = [f"{header['baseline']} (95%)", f"{header['system']} (95%)"]
        rows = []
        for run, result in self.runs.items():
            sides = [_with_interval(result.baseline), _with_interval(result.system)]
            rows.append([run, *sides, f"{result.difference:+.2f}", f"{result.p_value:.4f}"])
        if len(rows) > 1:
            baseline, system, difference = (mean.mean for mean in self.means.values())
            rows.append(["mean", f"{baseline:.2f}", f"{system:.2f}", f"{difference:+.2f}", ""])
        yield from aligned(["", *names, "difference", "p-value"], rows)


def _with_interval(side: SystemScore) -> str:
    return f"{side.score:.2f} ± {side.interval:.2f}"


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
        whole = self.whole
        yield f"BLEU = {_with_interval(whole.baseline)}  {self.names[0]}"
        yield f"BLEU = {_with_interval(whole.system)}  {self.names[1]}"
        yield f"difference = {whole.difference:+.2f}, p = {whole.p_value:.4f}, {SAMPLES} resamples"
        yield f"{whole.signature}  ({self.lines} lines)"
        even = self.lines - self.better - self.worse - self.same  # in BLEU, by other words
        yield f"{self.better} lines better, {self.worse} worse, {even} even, {self.same} the same"

    def as_text(self) -> Iterator[str]:
        """Yield plain text: words of the baseline alone in [- -], of the system in {+ +}."""
        yield from self.summary()
        for line in self.shown:
            yield ""
            scores = f"{line.baseline_score:.1f} -> {line.system_score:.1f}"
            yield from underlined(f"line {line.number}: {line.difference:+.1f} ({scores})")
            if line.source is not None:
                yield f"source     {line.source}"
            for reference in line.references:
                yield f"reference  {reference}"
            yield f"baseline   {_marked(line.baseline, '[-', '-]')}"
            yield f"system     {_marked(line.system, '{+', '+}')}"


def _marked(parts: Parts, before: str, after: str) -> str:
    """Return a line with marks around what the other output has not."""
    return " ".join(f"{before}{part.text}{after}" if part.differs else part.text for part in parts)


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
    if source is not None and len(source) != len(system):
        raise UserError(f"the source has {len(source)} lines, but {names[1]} has {len(system)}")
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
    largest = sorted(differing, key=lambda line: (-abs(line.difference), line.number))[:most]
    shown = sorted(largest, key=lambda line: (-line.difference, line.number))
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
        if start < end:
            parts.append(Part(" ".join(words[start:end]), differs))
        if other_start < other_end:
            other_parts.append(Part(" ".join(other_words[other_start:other_end]), differs))
    return tuple(parts), tuple(other_parts)
