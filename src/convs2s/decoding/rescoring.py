"""Log-probabilities of given translations, one of each source or an n-best list of it.

Targets are forced through the same steps that a search takes, so that an ensemble, an LSTM and a
ConvS2S network are scored as they translate, and the encoder runs once for all hypotheses of a
source. All types of the vocabulary count, also for a network that selects them: a hypothesis of
another system may consist of any.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from convs2s.data.batches import pad
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.splitter import Form, Splitter, warn_if_overlong
from convs2s.decoding.translate import load_ensemble
from convs2s.errors import UserError
from convs2s.model_file import ModelDescription
from convs2s.models.ensemble import Ensemble
from convs2s.scoring.n_best import Group, ListedHypothesis, unescaped
from convs2s.text.joint_codes import types_of_other_codes

TARGETS_PER_CHUNK = 4096
"""Targets that are read, sorted by length and scored together; memory does not grow further."""

TARGETS_PER_BATCH = 256
"""Targets that are scored at a time."""

OF_ONE_SOURCE = 32
"""Targets of one source among them at most: a long list is scored in parts of similar length."""


@dataclass(frozen=True)
class PairScore:
    """What the models say of a pair.

    Attributes:
        log_probability: of the target given the source, ``</s>`` included, in nats.
        tokens: of the target, ``</s>`` counted.
    """

    log_probability: float
    tokens: int

    def normalized(self, length_penalty: float) -> float:
        """Return log-probability / |y|^alpha, the score of a search."""
        return self.log_probability / math.pow(self.tokens, length_penalty)


@dataclass(frozen=True)
class _Unit:
    """Some targets of one source: ``places`` says which."""

    source: list[int]
    targets: list[list[int]]
    places: list[tuple[int, int]]


class PairScorer:
    """One model, or several as an ensemble, that scores what others have translated."""

    def __init__(
        self, ensemble: Ensemble, description: ModelDescription, device: str, form: Form
    ) -> None:
        """Take models that are loaded.

        Args:
            ensemble: the networks.
            description: what their files say of them.
            device: where they are.
            form: what the lines of both sides are.

        Raises:
            UserError: the lines are not tokens, and the models' target side is split by what their
                files do not hold.
        """
        if form != "tokens":
            _check_target_side(description)
        self.ensemble = ensemble
        self.device, self.form = device, form
        self._splitters = {
            side: Splitter(description, language, form)
            for side, language in description.languages.items()
        }
        self._vocabularies = {
            "source": description.source_vocabulary(),
            "target": description.target_vocabulary(),
        }

    @classmethod
    def load(cls, models: Sequence[Path], device: str, form: Form) -> Self:
        """Load the models.

        Args:
            models: model files; several make an ensemble.
            device: ``cpu`` or ``cuda``.
            form: what the lines of both sides are.

        Raises:
            UserError: a file is no model, the models of an ensemble do not fit together, or their
                files do not say how targets are split.
        """
        return cls(*load_ensemble(models, device), device, form)

    def score(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> list[list[PairScore]]:
        """Score the targets of each source together.

        Args:
            pairs: a source and its targets.

        Returns:
            For each source the scores of its targets, in their order.
        """
        units = [unit for index, pair in enumerate(pairs) for unit in self._units(index, *pair)]
        # Units of as many targets, of similar length, share a batch.
        units.sort(key=lambda one: (len(one.targets), max(map(len, one.targets)), one.places))
        found: dict[tuple[int, int], PairScore] = {}
        for batch in _batches(units):
            source = torch.from_numpy(pad([unit.source for unit in batch])).to(self.device)
            target = _stacked([unit.targets for unit in batch]).to(self.device)
            totals = log_probabilities(self.ensemble, source, target).tolist()
            for unit, row in zip(batch, totals, strict=True):
                for place, tokens, total in zip(unit.places, unit.targets, row, strict=False):
                    found[place] = PairScore(total, len(tokens))
        return [[found[i, j] for j in range(len(pair[1]))] for i, pair in enumerate(pairs)]

    def _units(self, index: int, source: str, targets: Sequence[str]) -> Iterator[_Unit]:
        tokens = self._encode("source", source)
        rows = [self._encode("target", target) for target in targets]
        by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        for start in range(0, len(rows), OF_ONE_SOURCE):
            part = by_length[start : start + OF_ONE_SOURCE]
            yield _Unit(tokens, [rows[place] for place in part], [(index, p) for p in part])

    def _encode(self, side: str, line: str) -> list[int]:
        tokens = self._splitters[side](line)
        warn_if_overlong(tokens, self.ensemble.positions(side), line)
        return self._vocabularies[side].encode(tokens)


def _check_target_side(description: ModelDescription) -> None:
    """Refuse what splits its targets in another way than its sources: a file holds one of both."""
    codes = description.bpe_codes
    if codes is None:
        return
    if description.splittable is not None:
        why = "its vocabulary has a threshold"
    elif strange := types_of_other_codes(codes, description.target_types):
        why = f"its source's BPE codes do not make {strange} of its target's types"
    else:
        return
    raise UserError(
        f"{description.task}: {why}, and how targets are split is not in a model file: give both "
        "sides as the model's own tokens (--pretokenized)"
    )


def score_pairs(scorer: PairScorer, pairs: Iterable[tuple[str, str]]) -> Iterator[PairScore]:
    """Yield the score of each source and target, in their order."""
    rest = iter(pairs)
    while chunk := list(islice(rest, TARGETS_PER_CHUNK)):
        for (score,) in scorer.score([(source, [target]) for source, target in chunk]):
            yield score


def score_groups(
    scorer: PairScorer,
    sources: Iterable[str],
    groups: Iterable[Group],
    feature: str,
    length_penalty: float,
) -> Iterator[ListedHypothesis]:
    """Yield the hypotheses of an n-best list as they are, with one more feature.

    Args:
        scorer: what scores them.
        sources: the lines that the list's sentences count from 0.
        groups: the list.
        feature: name of the new feature, log-probability / |y|^alpha.
        length_penalty: alpha; 0 leaves the log-probability as it is.

    Raises:
        UserError: the list has a sentence that the source has not, or it has the feature.
    """
    read = unescaped if scorer.form == "raw" else str
    for chunk in _chunks(_with_sources(sources, groups)):
        pairs = [(source, [read(one.text) for one in group]) for source, group in chunk]
        for (_, group), scores in zip(chunk, scorer.score(pairs), strict=True):
            for one, score in zip(group, scores, strict=True):
                yield one.with_feature(feature, score.normalized(length_penalty))


@torch.inference_mode()
def log_probabilities(ensemble: Ensemble, source: Tensor, target: Tensor) -> Tensor:
    """Return the log-probability (B, K) of each of K targets of each source.

    Args:
        ensemble: one or several networks.
        source: (B, m) indices, each row ending in ``</s>`` and padded on the right.
        target: (B, K, n) likewise.
    """
    session = ensemble.start(source, target.shape[1])
    previous = torch.full_like(target[:, :, 0], END)  # (B, K)
    totals = torch.zeros_like(previous, dtype=torch.float64)
    for tokens in target.unbind(2):
        predictions, _ = session.step(previous)  # (B, K, V)
        chosen = predictions.gather(2, tokens.unsqueeze(2)).squeeze(2)
        totals += chosen.masked_fill(tokens == PADDING, 0.0)
        previous = tokens
    return totals


def _batches(units: Iterable[_Unit]) -> Iterator[list[_Unit]]:
    """Group sorted units into batches of at most ``TARGETS_PER_BATCH`` targets."""
    batch: list[_Unit] = []
    for unit in units:
        if batch and (len(batch) + 1) * len(unit.targets) > TARGETS_PER_BATCH:
            yield batch
            batch = []
        batch.append(unit)
    if batch:
        yield batch


def _stacked(targets: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """Return targets of B sources as one tensor (B, K, n), those that are missing all padding."""
    most = max(map(len, targets))
    rows = [row for of_one in targets for row in [*of_one, *[[]] * (most - len(of_one))]]
    return torch.from_numpy(pad(rows)).view(len(targets), most, -1)


def _with_sources(sources: Iterable[str], groups: Iterable[Group]) -> Iterator[tuple[str, Group]]:
    numbered = enumerate(sources)
    count = 0
    for group in groups:
        wanted, source = group[0].sentence, None
        for number, line in numbered:
            count = number + 1
            if number == wanted:
                source = line
                break
        if source is None:
            raise UserError(
                f"{group[0].place}: sentence {wanted}, but the source has {count} lines, counted "
                "from 0: give the text that the list was made from"
            )
        yield source, group


def _chunks(pairs: Iterable[tuple[str, Group]]) -> Iterator[list[tuple[str, Group]]]:
    """Collect whole lists until they have ``TARGETS_PER_CHUNK`` targets."""
    chunk: list[tuple[str, Group]] = []
    targets = 0
    for pair in pairs:
        chunk.append(pair)
        targets += len(pair[1])
        if targets >= TARGETS_PER_CHUNK:
            yield chunk
            chunk, targets = [], 0
    if chunk:
        yield chunk
