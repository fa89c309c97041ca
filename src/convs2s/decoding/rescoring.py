"""Log-probabilities of given translations, one of each source or an n-best list of it.

Targets are forced through the same steps that a search takes, so that an ensemble, an LSTM and a
ConvS2S network are scored as they translate, and the encoder runs once for all hypotheses of a
source. All types of the vocabulary count, as a hypothesis of another system may consist of any.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from threading import Event
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import cut, pad
from convs2s.data.vocabulary import END, PADDING
from convs2s.decoding.parallel import search_in_threads
from convs2s.decoding.progress import counted
from convs2s.decoding.translate import LineTranslator, load_ensemble
from convs2s.decoding.words import Form, Splitter, most_tokens
from convs2s.devices import held_device
from convs2s.errors import UserError
from convs2s.files.text import (
    atomic_text,
    read_line_pairs,
    read_lines,
    write_json,
    write_lines,
)
from convs2s.model_file import ModelDescription
from convs2s.models.ensemble import Ensemble
from convs2s.models.steps import Average
from convs2s.scoring.n_best import (
    MODEL,
    Group,
    ListedHypothesis,
    every_sentence,
    n_best_line,
    read_n_best,
    unescaped,
)
from convs2s.text.bpe import types_of_other_codes

TARGETS_PER_CHUNK = 4096
"""Targets that are read, sorted by length and scored together; memory does not grow further."""

TARGETS_PER_BATCH = 256  # targets that are scored at a time

OF_ONE_SOURCE = 32
"""Targets of one source among them at most: a long list is scored in parts of similar length."""


@dataclass(frozen=True)
class PairScore:
    """The log-probability (nats) of a target, and its number of tokens; ``</s>`` counts."""

    log_probability: float
    tokens: int

    def normalized(self, length_penalty: float) -> float:
        """Return log-probability / |y|^alpha, the score of a search."""
        return self.log_probability / math.pow(self.tokens, length_penalty)


class GivenTargets(NamedTuple):
    """A source and the targets of it that are to be scored."""

    source: str
    targets: Sequence[str]
    places: Sequence[str]  # of each target, for messages: file and line


class _Unit(NamedTuple):
    """Some targets of one source, as indices."""

    source: list[int]
    targets: list[list[int]]
    places: list[tuple[int, int]]  # of each target: which source, and which target of it


class PairScorer:
    """One model, or several as an ensemble, that scores what others have translated."""

    def __init__(
        self,
        ensemble: Ensemble,
        description: ModelDescription,
        device: str,
        form: Form,
    ) -> None:
        """Take models that are loaded; ``form`` is that of the lines of both sides.

        Where a model file does not say how its target side is split, only tokens can be scored.
        """
        codes = description.bpe_codes
        why = None
        if form != "tokens" and codes is not None:
            # A model file holds how its source is split: is its target split in the same way?
            if description.splittable is not None:
                why = "its vocabulary has a threshold"
            elif strange := types_of_other_codes(codes, description.target_types):
                why = f"its source's BPE codes do not make {strange} of its target's types"
        if why is not None:
            raise UserError(
                f"{description.task}: {why}, and how targets are split is not in a model file: "
                "give both sides as the model's own tokens (option --pretokenized, in Python "
                "pretokenized=True)"
            )
        self.ensemble = ensemble
        self.device = device
        self.form = form
        source, target = description.vocabularies()
        self._vocabularies = {"source": source, "target": target}
        self._splitters = {
            side: Splitter(description, language, form)
            for side, language in description.languages.items()
        }

    @classmethod
    def load(
        cls,
        models: Sequence[Path],
        device: str,
        form: Form,
        average: Average = "probabilities",
    ) -> Self:
        """Load the models; several make an ensemble."""
        ensemble, description = load_ensemble(models, device, DecodingSettings(ensemble=average))
        return cls(ensemble, description, device, form)

    def score(self, given: Iterable[GivenTargets]) -> Iterator[list[PairScore]]:
        """Yield for each source the scores of its targets, in their order.

        Raises:
            UserError: a line has more tokens than the models have positions; it says the target's
                place.
        """
        chunk: list[GivenTargets] = []
        targets = 0
        for one in given:
            chunk.append(one)
            targets += len(one.targets)
            if targets >= TARGETS_PER_CHUNK:
                yield from self._score_chunk(chunk)
                chunk = []
                targets = 0
        yield from self._score_chunk(chunk)

    def _score_chunk(self, given: Sequence[GivenTargets]) -> Iterator[list[PairScore]]:
        units: list[_Unit] = []
        for number, one in enumerate(given):
            source = self._encode("source", one.source, one.places[0])
            rows = []
            for line, place in zip(one.targets, one.places, strict=True):
                rows.append(self._encode("target", line, place))
            # The targets of one source in parts of similar length.
            by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
            for start in range(0, len(rows), OF_ONE_SOURCE):
                part = by_length[start : start + OF_ONE_SOURCE]
                targets = [rows[place] for place in part]
                units.append(_Unit(source, targets, [(number, place) for place in part]))
        # Units of as many targets, of similar length, share a batch.
        units.sort(key=lambda unit: (len(unit.targets), max(map(len, unit.targets)), unit.places))
        threads = torch.get_num_threads() if self.device == "cpu" else 1
        scores: dict[tuple[int, int], PairScore] = {}
        for of_batch in search_in_threads(self._score_batch, list(_batches(units)), threads):
            scores |= of_batch
        for number, one in enumerate(given):
            yield [scores[number, place] for place in range(len(one.targets))]

    def _score_batch(
        self,
        batch: list[_Unit],
        _: Event,
    ) -> dict[tuple[int, int], PairScore]:
        """Return the score of each target of a batch by its place."""
        most = max(map(_width, batch))  # K
        rows: list[list[int]] = []
        for unit in batch:
            rows += unit.targets
            rows += [[]] * (most - len(unit.targets))  # missing targets are all padding
        source = torch.from_numpy(pad([unit.source for unit in batch]))  # (B, m)
        target = torch.from_numpy(pad(rows)).view(len(batch), most, -1)  # (B, K, n)
        totals = log_probabilities(self.ensemble, source.to(self.device), target.to(self.device))
        scores = {}
        for unit, of_unit in zip(batch, totals.tolist(), strict=True):
            for column, place in enumerate(unit.places):
                scores[place] = PairScore(of_unit[column], len(unit.targets[column]))
        return scores

    def _encode(
        self,
        side: str,
        line: str,
        place: str,
    ) -> list[int]:
        tokens = self._splitters[side](line)
        most = most_tokens(self.ensemble.positions(side))
        if len(tokens) > most:
            raise UserError(
                f"{place}: the {side} has {len(tokens):,} tokens, and {most:,} is the most "
                f"that the model scores: split the pair, or leave it out: {line[:60]}..."
            )
        return self._vocabularies[side].encode(tokens)


def _width(unit: _Unit) -> int:
    """Return K for a unit alone: a product of two or three rows may round as no other."""
    targets = len(unit.targets)
    return 1 if targets == 1 else max(4, targets)


def _batches(units: Sequence[_Unit]) -> Iterator[list[_Unit]]:
    """Group sorted units into batches of at most ``TARGETS_PER_BATCH`` targets.

    Those of one target are by themselves, as one row is multiplied in a way of its own.
    """
    widths = np.array([_width(unit) for unit in units])
    singles = np.count_nonzero(widths == 1)
    for places in np.split(np.arange(len(units)), [singles]):
        for batch in cut(places, widths, None, TARGETS_PER_BATCH):
            yield [units[place] for place in batch]


@torch.inference_mode()
def log_probabilities(
    ensemble: Ensemble,
    source: Tensor,
    target: Tensor,
) -> Tensor:
    """Return the log-probability (B, K) of each of K targets (B, K, n) of each source (B, m).

    Each row of indices ends in ``</s>`` and is padded on the right.
    """
    state = ensemble.start(source, target.shape[1])
    previous = torch.full_like(target[:, :, 0], END)  # (B, K)
    totals = torch.zeros_like(previous, dtype=torch.float64)  # (B, K)
    for tokens in target.unbind(2):  # (B, K)
        predictions, _ = state.step(previous)  # (B, K, V)
        chosen = predictions.gather(2, tokens.unsqueeze(2)).squeeze(2)  # (B, K)
        totals += chosen.masked_fill(tokens == PADDING, 0.0)
        previous = tokens
    return totals


def score_pairs(
    scorer: PairScorer,
    pairs: Iterable[tuple[str, str]],
    name: str = "pairs",
) -> Iterator[PairScore]:
    """Yield the score of each source and target, in their order; ``name`` is that of messages."""
    given = (
        GivenTargets(source, [target], [f"{name}:{number}"])
        for number, (source, target) in enumerate(pairs, start=1)
    )
    for (score,) in scorer.score(given):
        yield score


def score_groups(
    scorer: PairScorer,
    sources: Iterable[str],
    groups: Iterable[Group],
    feature: str,
    length_penalty: float,
) -> Iterator[ListedHypothesis]:
    """Yield the hypotheses of an n-best list with one more feature, log-probability / |y|^alpha.

    ``sources`` are the lines that the list's sentences count from 0. A sentence beyond them, and a
    feature that the list has already, are refused with a UserError.
    """
    groups, listed = tee(groups)
    given = _with_sources(sources, groups, unescaped if scorer.form == "raw" else str)
    for scores, group in zip(scorer.score(given), listed, strict=True):
        for row, score in zip(group, scores, strict=True):
            yield row.with_feature(feature, score.normalized(length_penalty))


def _with_sources(
    sources: Iterable[str],
    groups: Iterable[Group],
    read: Callable[[str], str],
) -> Iterator[GivenTargets]:
    """Yield each sentence's source and hypotheses, whose texts are to be ``read``."""
    numbered = enumerate(sources, start=1)
    count = 0
    for group in groups:
        wanted = group[0].sentence
        for count, source in numbered:
            if count == wanted + 1:
                texts = [read(row.text) for row in group]
                yield GivenTargets(source, texts, [row.place for row in group])
                break
        else:
            raise UserError(
                f"{group[0].place}: sentence {wanted}, but the source has {count} lines, counted "
                "from 0: give the text that the list was made from"
            )


def list_n_best(
    translator: LineTranslator,
    *,
    source: Path,
    output: Path,
) -> None:
    """Write the n-best list of a file of raw text: all hypotheses that the search finishes.

    Its texts are words that blanks separate, unknown ones replaced, as tokenized BLEU reads them.
    """
    alpha = translator.settings.alpha
    with atomic_text(output) as stream:
        translations = translator.translate(read_lines(source), n_best=sys.maxsize)
        for translation in counted(translations, " lines"):
            for best in translation.n_best:
                words = " ".join(best.words)
                line = n_best_line(best.line, words, best.score, len(best.tokens) + 1, alpha)
                stream.write(f"{line}\n")


def score_n_best(
    *,
    models: Sequence[Path],
    source: Path,
    n_best: Path,
    output: Path,
    length_penalty: float,
    device: str,
    threads: int,
) -> None:
    """Write an n-best list with one more feature: the models' log-probability / |y|^alpha.

    ``source`` and ``n_best``, its translations, are in words; alpha is ``length_penalty``.
    """
    torch.set_num_threads(threads)
    with held_device(device) as own:
        scorer = PairScorer.load(models, own, "words")
        listed = read_n_best(counted(read_lines(n_best), " hypotheses"), str(n_best))
        groups = every_sentence(listed)  # before hours, not after them
        scored = score_groups(scorer, read_lines(source), groups, MODEL, length_penalty)
        write_lines(output, (row.line() for row in scored))


def measure_perplexity(
    *,
    models: Sequence[Path],
    source: Path,
    target: Path,
    output: Path,
    device: str,
    threads: int,
    manifest: Mapping[str, object],
) -> None:
    """Write the perplexity by token of a test set's translation; both files are in words."""
    torch.set_num_threads(threads)
    with held_device(device) as own:
        scorer = PairScorer.load(models, own, "words")
        scores = list(score_pairs(scorer, read_line_pairs(source, target), str(source)))
    tokens = sum(score.tokens for score in scores)
    perplexity = math.exp(-sum(score.log_probability for score in scores) / tokens)
    measured = {"score": perplexity, "signature": f"{tokens:,} tokens"}
    write_json(output, {"lines": len(scores), "perplexity": measured, "manifest": manifest})
