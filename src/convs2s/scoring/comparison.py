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
from convs2s.scoring.bleu import SAMPLES, BleuForm, Comparison, SentenceBleu, compare
from convs2s.scoring.summary import mean_and_deviation
from convs2s.scoring.text_table import aligned, heading, underlined
from convs2s.scoring.translations import read_translations


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
    references = {"tokenized": list(read_lines(tokenized)), "detokenized": list(read_lines(raw))}
    results: dict[BleuForm, dict[str, Comparison]] = {"tokenized": {}, "detokenized": {}}
    for run, paths in pairs.items():
        systems = [read_translations(path) for path in paths]
        lines: dict[BleuForm, list[list[str]]] = {
            "tokenized": [[" ".join(line.words) for line in system] for system in systems],
            "detokenized": [[line.text for line in system] for system in systems],
        }
        names = str(paths[0]), str(paths[1])
        for form, runs in results.items():
            runs[run] = compare(
                *lines[form], references[form], form=form, samples=samples, names=names
            )
    count = len(references["detokenized"])
    about = {"stand_in": stand_in, **header, "test_set": test_set, "samples": samples}
    bleu = {}
    for form, runs in results.items():
        trees = {run: asdict(comparison) for run, comparison in runs.items()}
        signatures = [tree.pop("signature") for tree in trees.values()]
        bleu[form] = {
            "signature": signatures[0],
            "baseline": mean_and_deviation([run.baseline.score for run in runs.values()]),
            "system": mean_and_deviation([run.system.score for run in runs.values()]),
            "difference": mean_and_deviation([run.difference for run in runs.values()]),
            "runs": trees,
        }
    write_json(json, {**about, "lines": count, "bleu": bleu, "manifest": manifest})
    each = "one pair of runs" if len(pairs) == 1 else f"{len(pairs)} pairs of runs"
    title = f"{test_set}: {count} lines; {each} ({', '.join(pairs)}), {samples} resamples each"
    write_lines(text, _report(stand_in, header, title, results))


def _report(
    stand_in: str | None,
    header: Mapping[str, str],
    title: str,
    results: Mapping[BleuForm, Mapping[str, Comparison]],
) -> Iterator[str]:
    yield from heading(stand_in, header)
    yield from underlined(title)
    columns = ["", f"{header['baseline']} (95%)", f"{header['system']} (95%)"]
    for number, (form, runs) in enumerate(results.items()):
        if number:
            yield ""
        yield f"{form} BLEU  {next(iter(runs.values())).signature}"
        rows = [
            [run, *_scores(result), f"{result.difference:+.2f}", f"{result.p_value:.4f}"]
            for run, result in runs.items()
        ]
        if len(runs) > 1:
            sides = [(run.baseline.score, run.system.score) for run in runs.values()]
            means = [mean_and_deviation(scores).mean for scores in zip(*sides, strict=True)]
            difference = mean_and_deviation([run.difference for run in runs.values()]).mean
            rows.append(["mean", *(f"{mean:.2f}" for mean in means), f"{difference:+.2f}", ""])
        yield from aligned([*columns, "difference", "p-value"], rows)


def _scores(result: Comparison) -> list[str]:
    return [f"{side.score:.2f} ± {side.interval:.2f}" for side in (result.baseline, result.system)]


@dataclass(frozen=True)
class Part:
    """Words of one output that the other has as well, or has not."""

    text: str
    differs: bool


@dataclass(frozen=True)
class ComparedLine:
    """A line of both outputs, numbered from 1, with the smoothed BLEU of the line alone."""

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
        for name, score in zip(self.names, _scores(self.whole), strict=True):
            yield f"BLEU = {score}  {name}"
        whole = self.whole
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
            for name, parts, marks in (
                ("baseline", line.baseline, "[-{}-]"),
                ("system", line.system, "{{+{}+}}"),
            ):
                words = (marks.format(part.text) if part.differs else part.text for part in parts)
                yield f"{name:<10} {' '.join(words)}"


def compare_outputs(
    baseline: Sequence[str],
    system: Sequence[str],
    *references: Sequence[str],
    form: BleuForm,
    names: tuple[str, str],
    most: int,
    source: Sequence[str] | None = None,
) -> OutputComparison:
    """Compare two outputs line by line; show up to ``most`` lines, with their ``source`` if given.

    The references are one or more lists of lines, in the form that ``form`` asks for.
    """
    whole = compare(baseline, system, *references, form=form, names=names)
    if source is not None and len(source) != len(system):
        raise UserError(f"the source has {len(source)} lines, but {names[1]} has {len(system)}")
    score = SentenceBleu(form)
    differing = []
    for number, (first, second, *texts) in enumerate(
        zip(baseline, system, *references, strict=True), start=1
    ):
        if first.encode().split() != second.encode().split():  # as multi-bleu.perl splits
            line = ComparedLine(
                number,
                None if source is None else source[number - 1],
                tuple(texts),
                *mark_differences(first, second),
                score(first, *texts),
                score(second, *texts),
            )
            differing.append(line)
    largest = sorted(differing, key=lambda line: (-abs(line.difference), line.number))[:most]
    shown = sorted(largest, key=lambda line: (-line.difference, line.number))
    better, worse = (sum(sign * line.difference > 0 for line in differing) for sign in (1, -1))
    same = len(system) - len(differing)
    return OutputComparison(names, whole, len(system), same, better, worse, tuple(shown))


def mark_differences(baseline: str, system: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return both lines in parts of words that they share and words that they do not."""
    words = baseline.split(), system.split()
    parts: tuple[list[Part], list[Part]] = [], []
    for tag, *bounds in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        for side, (start, end) in enumerate((bounds[:2], bounds[2:])):
            if start < end:
                parts[side].append(Part(" ".join(words[side][start:end]), tag != "equal"))
    return tuple(parts[0]), tuple(parts[1])
