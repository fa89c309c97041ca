"""bleu.txt and rouge.txt: a task's scores over runs that differ in the seed, and the same as JSON.

The paper's are averages over three runs (section 4.3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from pydantic import TypeAdapter

from convs2s.errors import UserError, failures_of_file
from convs2s.files.text import read_lines
from convs2s.scoring.evaluation import BleuEvaluation, Evaluation, RougeEvaluation
from convs2s.scoring.reports.layout import Report

E = TypeVar("E", bound=Evaluation)


@dataclass(frozen=True)
class Mean:
    """A mean over runs and their sample deviation; None for a single run."""

    mean: float
    deviation: float | None


def summarize_runs(
    evaluation_class: type[Evaluation],
    evaluations: Mapping[tuple[str, str], Path],
    report: Report,
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
    report.write(
        "bleu.txt.j2" if evaluation_class is BleuEvaluation else "rouge.txt.j2",
        tests={test: _summary(runs) for test, runs in tests.items()},
    )


def read_evaluation(evaluation_class: type[E], path: Path) -> E:
    """Read the scores of one run on one test set; a UserError refuses those of other versions."""
    with failures_of_file(str(path), "no evaluation of this version; delete it and score again"):
        return TypeAdapter(evaluation_class).validate_json("\n".join(read_lines(path)))


def mean_and_deviation(values: Sequence[float]) -> Mean:
    """Return the mean, and the sample's deviation unless there is a single value."""
    return Mean(fmean(values), stdev(values) if len(values) > 1 else None)


def _summary(runs: Mapping[str, Evaluation]) -> dict[str, object]:
    """Return what the runs share, the means of their scores, and each run's evaluation."""
    first, *_ = runs.values()
    summary: dict[str, Any] = {name: getattr(first, name) for name in first.SHARED}
    trees = [asdict(evaluation) for evaluation in runs.values()]
    for name in first.AVERAGED:
        summary[name] = _averaged([tree[name] for tree in trees])
    if isinstance(first, RougeEvaluation):
        summary["difference"] = {}
        for kind, parts in first.lead.rouge.items():
            means = summary["rouge"][kind]
            differences = {}
            for part, score in parts.items():
                differences[part] = means[part]["mean"] - score.score
            summary["difference"][kind] = differences
    return {**summary, "runs": runs}


def _averaged(trees: Sequence[Any]) -> object:
    """Return one tree for several of the same form: a mean for each number and each score."""
    first = trees[0]
    if not isinstance(first, dict):
        return asdict(mean_and_deviation(trees))
    if "signature" in first:
        mean = mean_and_deviation([tree["score"] for tree in trees])
        return {**asdict(mean), "signature": first["signature"]}
    return {name: _averaged([tree[name] for tree in trees]) for name in first}
