"""bleu.txt and rouge.txt: a task's scores over runs that differ in the seed, and the same as JSON.

The paper's are averages over three runs (section 4.3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.scoring.evaluation import Evaluation, RougeEvaluation
from convs2s.scoring.rouge import ROUGE_NAMES, ROUGE_PARTS
from convs2s.scoring.text_table import aligned, heading, underlined

E = TypeVar("E", bound=Evaluation)
Runs = Mapping[str, Evaluation]
Counts = Sequence[float]


@dataclass(frozen=True)
class Mean:
    """A mean over runs and their sample deviation; None for a single run."""

    mean: float
    deviation: float | None

    def text(self, digits: int) -> str:
        """Return the mean with its deviation, if it has one."""
        text = f"{self.mean:.{digits}f}"
        return text if self.deviation is None else f"{text} ± {self.deviation:.{digits}f}"


def summarize_runs(
    evaluation_class: type[Evaluation],
    evaluations: Mapping[tuple[str, str], Path],
    *,
    text: Path,
    json: Path,
    header: Mapping[str, str],
    stand_in: str | None,
) -> None:
    """Write what the runs of a task scored on its test sets, as a report and unrounded as JSON.

    A UserError refuses two runs of a test set that were scored on other lines or in other ways.
    """
    tests: dict[str, dict[str, Evaluation]] = {}
    for (test, run), path in evaluations.items():
        runs = tests.setdefault(test, {})
        runs[run] = read_evaluation(evaluation_class, path)
        first = next(iter(runs))
        expected = runs[first].measures()
        for name, value in runs[run].measures().items():
            if value != expected.get(name):
                raise UserError(
                    f"{path}: {name}: {value}, but {expected.get(name)} in "
                    f"{evaluations[test, first]}: a mean needs equal measures; delete both files "
                    "and score again"
                )
    summaries = {}
    for test, runs in tests.items():
        trees = {run: asdict(evaluation) for run, evaluation in runs.items()}
        evaluation = next(iter(runs.values()))
        # What the runs share, the means of their scores, and each run's evaluation.
        first_tree = next(iter(trees.values()))
        summary = {name: first_tree[name] for name in evaluation.SHARED}
        for name in evaluation.AVERAGED:
            summary[name] = _averaged([tree[name] for tree in trees.values()])
        if isinstance(evaluation, RougeEvaluation):
            summary["difference"] = {}
            for variant, parts in evaluation.lead.rouge.items():
                means = summary["rouge"][variant]
                summary["difference"][variant] = {
                    part: means[part]["mean"] - score.score for part, score in parts.items()
                }
        summaries[test] = {**summary, "runs": trees}
    write_json(json, {"stand_in": stand_in, **header, "tests": summaries})
    report = list(heading(stand_in, header))
    for test, runs in tests.items():
        report += [*_test_set(test, runs), ""]
    write_lines(text, report[:-1])


def read_evaluation(evaluation_class: type[E], path: Path) -> E:
    """Read the scores of one run on one test set; a UserError refuses those of other versions."""
    try:
        return TypeAdapter(evaluation_class).validate_json("\n".join(read_lines(path)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(
            f"{path}: no evaluation of this version ({place}: {first['msg']}); delete it and score "
            "again"
        ) from None


def mean_and_deviation(values: Sequence[float]) -> Mean:
    """Return the mean, and the sample's deviation unless there is a single value."""
    return Mean(fmean(values), stdev(values) if len(values) > 1 else None)


def _averaged(trees: Sequence[Any]) -> object:
    """Return one tree for several of the same form: a mean for each number and each score."""
    first = trees[0]
    if not isinstance(first, dict):
        return asdict(mean_and_deviation(trees))
    if "signature" in first:
        mean = mean_and_deviation([tree["score"] for tree in trees])
        return {**asdict(mean), "signature": first["signature"]}
    return {name: _averaged([tree[name] for tree in trees]) for name in first}


def _test_set(test: str, runs: Runs) -> Iterator[str]:
    """Print a test set; each line of the first block can be understood, and grepped, alone."""
    first, *_ = runs.values()
    by_rouge = [run for run in runs.values() if isinstance(run, RougeEvaluation)]
    lead = by_rouge[0].by_name(by_rouge[0].lead.rouge) if by_rouge else {}
    size = f"{first.lines} lines"
    if by_rouge:
        count = by_rouge[0].references
        size += f", {count} reference{'' if count == 1 else 's'} each"
    over = "one run" if len(runs) == 1 else f"mean ± sample deviation of {len(runs)} runs"
    yield from underlined(f"{test}: {size}; {over} ({', '.join(runs)})")

    width = max(map(len, [*first.scores(), "length ratio"]))
    for name, score in first.scores().items():
        mean = mean_and_deviation([run.scores()[name].score for run in runs.values()])
        about = ""
        if by_rouge:
            about = f"lead ({by_rouge[0].lead.words} words) = {lead[name].score:.2f}  "
            about += f"difference = {mean.mean - lead[name].score:+.2f}  "
        yield f"{test} {name:<{width}} = {mean.text(2):<14} {about}{score.signature}"
    ratio = mean_and_deviation([run.length_ratio for run in runs.values()]).text(3)
    unit = "words of the output / words of the reference"
    yield f"{test} {'length ratio':<{width}} = {ratio:<14} {unit}"

    yield ""
    names = [f"{name} (95%)" if by_rouge else name for name in first.scores()]
    rows = []
    for run, result in runs.items():
        rows.append([run, *map(str, result.scores().values()), f"{result.length_ratio:.3f}"])
    if by_rouge:
        rows.append(["lead", *map(str, lead.values()), ""])
    yield from aligned(["by run", *names, "length ratio"], rows)

    if by_rouge:
        yield ""
        rows = []
        for variant, name in ROUGE_NAMES.items():
            row = [name]
            for part in ROUGE_PARTS:
                row.append(f"{fmean(run.rouge[variant][part].score for run in by_rouge):.2f}")
            for part in ROUGE_PARTS:
                row.append(f"{by_rouge[0].lead.rouge[variant][part].score:.2f}")
            rows.append(row)
        of_lead = [f"lead's {part}" for part in ROUGE_PARTS.values()]
        yield from aligned(["on average", *ROUGE_PARTS.values(), *of_lead], rows)
    yield ""
    yield from _replacements(runs)


def _replacements(runs: Runs) -> Iterator[str]:
    """Print what unknown-word replacement did, by run and, where there are several, on average."""
    first, *_ = runs.values()
    names = list(first.scores_before())
    counts: list[Counts] = []
    before: list[Counts] = []
    after: list[Counts] = []
    rows = []
    for run, result in runs.items():
        counts.append(astuple(result.unknown_words))
        before.append([score.score for score in result.scores_before().values()])
        after.append([result.scores()[name].score for name in names])
        rows.append([run, *(f"{count:,}" for count in counts[-1])])
    if len(runs) > 1:
        for numbers in (counts, before, after):
            numbers.append([fmean(column) for column in zip(*numbers, strict=True)])
        rows.append(["mean", *(f"{count:,.1f}" for count in counts[-1])])
    for row, scores_before, scores_after in zip(rows, before, after, strict=True):
        for old, new in zip(scores_before, scores_after, strict=True):
            # The difference is of the unrounded scores.
            row.append(f"{old:.2f} -> {new:.2f} ({new - old:+.2f})")
    gains = [f"{name} before -> after" for name in names]
    yield from aligned(["unknown words", "found", "by dictionary", "copied", *gains], rows)
