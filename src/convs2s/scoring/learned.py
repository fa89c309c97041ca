"""Scores that a network gives, by packages that a user may have installed: COMET and BLEURT.

Neither is ever required. Their models are files of this machine; a score names the package, its
version and the model by the first digits of its checksum.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

from convs2s.config.options import LearnedMetric, LearnedMetricName
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.scoring.bleu import Score

_DIGITS = 8


@dataclass(frozen=True)
class LearnedScores:
    """The score of a test set, its mean over the lines, and that of each line."""

    whole: Score
    lines: list[float]


@dataclass(frozen=True)
class _Package:
    """How a package is called, imported and installed."""

    title: str
    module: str
    distribution: str
    score: Callable[[LearnedMetric, Sequence[str], Sequence[str], Sequence[str]], list[float]]


def learned_scores(
    metric: LearnedMetric,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> LearnedScores:
    """Score plain text.

    Args:
        metric: which one, and its model.
        sources: lines that were translated; BLEURT does not read them.
        hypotheses: their translations.
        references: a right translation of each.

    Raises:
        UserError: the lists differ in length or are empty, the package is not installed, or the
            model is not there.
    """
    package = _PACKAGES[metric.name]
    if not hypotheses or not len(sources) == len(hypotheses) == len(references):
        raise UserError(
            f"{package.title} scores lines one by one, but there are {len(sources)} sources, "
            f"{len(hypotheses)} translations and {len(references)} references"
        )
    model = Path(metric.model)
    if not model.exists():
        raise UserError(f"{model}: no such model of {package.title}; nothing is downloaded for it")
    try:
        import_module(package.module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"learned_metric: {metric.name} needs the package {package.distribution} ({error}): "
            "install it, or leave learned_metric out"
        ) from None
    lines = package.score(metric, sources, hypotheses, references)
    return LearnedScores(Score(fmean(lines), _signature(package, model)), lines)


def _signature(package: _Package, model: Path) -> str:
    """Return what a score is of: the package with its version, and the model."""
    name = f"{model.name}@{_digest(model)[:_DIGITS]}"
    return f"{package.title}|version:{version(package.distribution)}|model:{name}"


def _digest(model: Path) -> str:
    """Return the SHA-256 of a file, or that of the names and the digests of a folder's files."""
    if model.is_file():
        return sha256(model)
    files = sorted(path for path in model.rglob("*") if path.is_file())
    lines = (f"{sha256(path)}  {path.relative_to(model)}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _comet(
    metric: LearnedMetric,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> list[float]:
    model = import_module("comet").load_from_checkpoint(metric.model)
    rows = [
        {"src": source, "mt": hypothesis, "ref": reference}
        for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
    ]
    found = model.predict(rows, batch_size=metric.batch, gpus=0, progress_bar=False)
    return [float(score) for score in found.scores]


def _bleurt(
    metric: LearnedMetric,
    _: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> list[float]:
    scorer = import_module("bleurt.score").BleurtScorer(metric.model)
    found = scorer.score(
        references=list(references), candidates=list(hypotheses), batch_size=metric.batch
    )
    return [float(score) for score in found]


_PACKAGES: dict[LearnedMetricName, _Package] = {
    "comet": _Package("COMET", "comet", "unbabel-comet", _comet),
    "bleurt": _Package("BLEURT", "bleurt.score", "BLEURT", _bleurt),
}
