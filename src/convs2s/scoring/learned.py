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
from typing import ClassVar

from convs2s.config.options import LearnedMetric, LearnedMetricName
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.scoring.bleu import Score

Texts = Sequence[str]


@dataclass(frozen=True)
class LearnedScore(Score):
    """The mean of a learned metric over the lines of a test set."""

    DIGITS: ClassVar[int] = 4

    @property
    def title(self) -> str:
        """The metric's name, which its signature begins with."""
        return self.signature.partition("|")[0]


def learned_score(
    metric: LearnedMetric, sources: Texts, hypotheses: Texts, references: Texts
) -> LearnedScore:
    """Score plain text, line by line; BLEURT does not read the sources.

    A UserError refuses a package or model that is missing, and lists of different lengths.
    """
    title, module, distribution, score = _PACKAGES[metric.name]
    if not hypotheses or not len(sources) == len(hypotheses) == len(references):
        raise UserError(
            f"{title} scores lines one by one, but there are {len(sources)} sources, "
            f"{len(hypotheses)} translations and {len(references)} references"
        )
    model = Path(metric.model)
    if not model.exists():
        raise UserError(f"{model}: no such model of {title}; nothing is downloaded for it")
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"learned_metric: {metric.name} needs the package {distribution} ({error}): "
            "install it, or leave learned_metric out"
        ) from None
    mean = fmean(map(float, score(metric, sources, hypotheses, references)))
    if model.is_file():
        digest = sha256(model)
    else:  # a folder: of the names and the digests of its files
        files = sorted(path for path in model.rglob("*") if path.is_file())
        lines = (f"{sha256(path)}  {path.relative_to(model)}\n" for path in files)
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    name = f"{model.name}@{digest[:8]}"
    return LearnedScore(mean, f"{title}|version:{version(distribution)}|model:{name}")


def _comet(
    metric: LearnedMetric, sources: Texts, hypotheses: Texts, references: Texts
) -> Sequence[float]:
    triples = zip(sources, hypotheses, references, strict=True)
    rows = [dict(zip(("src", "mt", "ref"), triple, strict=True)) for triple in triples]
    model = import_module("comet").load_from_checkpoint(metric.model)
    scores: Sequence[float] = model.predict(
        rows, batch_size=metric.batch, gpus=0, progress_bar=False
    ).scores
    return scores


def _bleurt(
    metric: LearnedMetric, _: Texts, hypotheses: Texts, references: Texts
) -> Sequence[float]:
    scorer = import_module("bleurt.score").BleurtScorer(metric.model)
    scores: Sequence[float] = scorer.score(
        references=list(references), candidates=list(hypotheses), batch_size=metric.batch
    )
    return scores


_Scorer = Callable[[LearnedMetric, Texts, Texts, Texts], Sequence[float]]
# Its title, the module to import, the package to install, and what scores lines.
_PACKAGES: dict[LearnedMetricName, tuple[str, str, str, _Scorer]] = {
    "comet": ("COMET", "comet", "unbabel-comet", _comet),
    "bleurt": ("BLEURT", "bleurt.score", "BLEURT", _bleurt),
}
