"""Write the summary of a task's scores over several seeds: bleu.txt or rouge.txt, and JSON.

The paper's scores are averages over three runs (section 4.3).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from convs2s.errors import UserError
from convs2s.files.text import read_checked
from convs2s.scoring.data_counts import read_data_counts
from convs2s.scoring.evaluation import BleuEvaluation, Evaluation, RougeEvaluation
from convs2s.scoring.reports.layout import Report

E = TypeVar("E", bound=Evaluation)


@dataclass(frozen=True)
class Mean:
    """The mean of the values of several runs, and their sample standard deviation."""

    mean: float
    deviation: float | None  # None for a single run


def summarize_runs(
    evaluation_class: type[Evaluation],
    evaluations: Mapping[tuple[str, str], Path],
    report: Report,
    counts: Path | None = None,
) -> None:
    """Write a report of the scores of a task's runs on its test sets, and unrounded scores as JSON.

    ``evaluations`` are the JSON files of the evaluations, by test set and run. ``counts`` is the
    file with the counts of the task's data, or None if they are not known. Its notes on a test set
    stand beside the scores.

    Raises:
        UserError: two runs were scored on different lines of a test set, or in different ways.
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
                    f"{evaluations[test, first]}; runs with different measures have no mean; "
                    "delete both files and score again"
                )
    data_counts = None if counts is None else read_data_counts(counts)
    summaries = {}
    for test, runs in tests.items():
        summaries[test] = _summary(runs)
        if data_counts is not None and (notes := data_counts.notes(test)):
            summaries[test]["notes"] = notes
    report.write(
        "bleu.txt.j2" if evaluation_class is BleuEvaluation else "rouge.txt.j2",
        tests=summaries,
    )


def read_evaluation(evaluation_class: type[E], path: Path) -> E:
    """Read the evaluation of one run on one test set.

    Raises:
        UserError: the file is not an evaluation, or was written by another version of this program.
    """
    problem = "not an evaluation of this version; delete it and score again"
    return read_checked(path, evaluation_class, problem)


def mean_and_deviation(values: Iterable[float]) -> Mean:
    """Return the mean and, if there are several values, their sample standard deviation."""
    values = list(values)
    return Mean(fmean(values), stdev(values) if len(values) > 1 else None)


def _summary(runs: Mapping[str, Evaluation]) -> dict[str, object]:
    """Return the runs' shared fields, the means of their scores, and the evaluation of each run.

    For ROUGE, there is also the ``difference`` between the mean and the lead baseline.
    """
    first = next(iter(runs.values()))
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
    """Merge trees with the same keys into one, with a mean in place of each number and score.

    A tree is a number, a score (a dictionary with ``signature``), or a dictionary of trees.
    """
    first = trees[0]
    if not isinstance(first, dict):
        return asdict(mean_and_deviation(trees))
    if "signature" in first:
        mean = mean_and_deviation(tree["score"] for tree in trees)
        return {**asdict(mean), "signature": first["signature"]}
    averaged = {}
    for name in first:
        averaged[name] = _averaged([tree[name] for tree in trees])
    return averaged
