"""Score given translations by their log-probability: one of each source, or an n-best list.

This is forced decoding: the decoder reads a target token by token, in the same steps as in a
search. So an ensemble, an LSTM or a ConvS2S network scores in the way in which it translates. The
encoder runs once for all hypotheses of a source. No shortlist is used, because a hypothesis of
another system may contain any type of the vocabulary.
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
"""Number of targets that are read, sorted by length and scored together.

It bounds the memory.
"""

TARGETS_PER_BATCH = 256  # targets that are scored in one forward pass

TARGETS_PER_UNIT = 32
"""Maximum number of targets in a `_Unit`. A long n-best list is divided into units, each with
targets of similar length."""


@dataclass(frozen=True)
class PairScore:
    """The log-probability (nats) of a target, and its number of tokens. Both include ``</s>``."""

    log_probability: float
    tokens: int

    def normalized(self, length_penalty: float) -> float:
        """Return log-probability / |y|^alpha, as a search scores it."""
        return self.log_probability / math.pow(self.tokens, length_penalty)


class LocatedLine(NamedTuple):
    """A line of text, and the file and number of the line for messages."""

    text: str
    location: str


class GivenTargets(NamedTuple):
    """A source and its targets that are to be scored."""

    source: LocatedLine
    targets: Sequence[LocatedLine]


# Index of a source in its chunk, index of a target of that source.
_Key = tuple[int, int]


class _Unit(NamedTuple):
    """At most ``TARGETS_PER_UNIT`` targets of one source, as indices of the vocabularies."""

    source: list[int]
    targets: dict[_Key, list[int]]


class PairScorer:
    """One model, or several as an ensemble, that scores given translations."""

    def __init__(
        self,
        ensemble: Ensemble,
        description: ModelDescription,
        device: str,
        form: Form,
    ) -> None:
        """Use models that are loaded. ``form`` is the form of the lines of both sides.

        Raises:
            UserError: ``form`` is not "tokens", and targets may have to be split in another way
                than sources. A model file contains only how its sources are split.
        """
        codes = description.bpe_codes
        problem = None
        if form != "tokens" and codes is not None:
            if description.splittable is not None:
                problem = "its BPE has a frequency threshold (vocabulary.threshold)"
            elif unmade := types_of_other_codes(codes, description.target_types):
                problem = (
                    f"its source's BPE codes do not make {unmade} of its target's types"
                )
        if problem is not None:
            raise UserError(
                f"{description.task}: {problem}, and a model file does not say how targets are "
                "split; give both sides as the model's own tokens (option --pretokenized, in "
                "Python pretokenized=True)"
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
        """Load the models. Several models form an ensemble."""
        ensemble, description = load_ensemble(
            models, device, DecodingSettings(ensemble=average)
        )
        return cls(ensemble, description, device, form)

    def score(self, given: Iterable[GivenTargets]) -> Iterator[list[PairScore]]:
        """For each source, yield the scores of its targets. The order is that of ``given``.

        Raises:
            UserError: a line has more tokens than the models have positions; the message gives the
                line's location.
        """
        chunk: list[GivenTargets] = []
        targets = 0
        for item in given:
            chunk.append(item)
            targets += len(item.targets)
            if targets >= TARGETS_PER_CHUNK:
                yield from self._score_chunk(chunk)
                chunk = []
                targets = 0
        yield from self._score_chunk(chunk)

    def _score_chunk(self, given: Sequence[GivenTargets]) -> Iterator[list[PairScore]]:
        units: list[_Unit] = []
        for source_index, item in enumerate(given):
            source = self._encode("source", item.source)
            targets: dict[_Key, list[int]] = {}
            for index, target in enumerate(item.targets):
                targets[source_index, index] = self._encode("target", target)
            # Divide the targets into units of similar length.
            by_length = sorted(targets, key=lambda key: len(targets[key]))
            for start in range(0, len(by_length), TARGETS_PER_UNIT):
                keys = by_length[start : start + TARGETS_PER_UNIT]
                units.append(_Unit(source, {key: targets[key] for key in keys}))
        threads = torch.get_num_threads() if self.device == "cpu" else 1
        scores: dict[_Key, PairScore] = {}
        for batch_scores in search_in_threads(
            self._score_batch, list(_batches(units)), threads
        ):
            scores |= batch_scores
        for source_index, item in enumerate(given):
            yield [scores[source_index, index] for index in range(len(item.targets))]

    def _score_batch(self, batch: list[_Unit], _: Event) -> dict[_Key, PairScore]:
        """Return the score of each target of a batch, by the target's key.

        `search_in_threads` also gives an event that would stop a search; it is not used here.
        """
        width = max(map(_width, batch))  # K
        rows: list[list[int]] = []
        for unit in batch:
            rows += unit.targets.values()
            # Fill the unit up to K targets with rows of padding, whose scores are not read.
            rows += [[]] * (width - len(unit.targets))
        source = torch.from_numpy(pad([unit.source for unit in batch]))  # (B, m)
        target = torch.from_numpy(pad(rows)).view(len(batch), width, -1)  # (B, K, n)
        totals = log_probabilities(
            self.ensemble, source.to(self.device), target.to(self.device)
        )
        scores = {}
        for unit, unit_totals in zip(batch, totals.tolist(), strict=True):
            # The rows of padding are last, so the totals of this unit's targets come first.
            unit_scores = zip(unit.targets.items(), unit_totals, strict=False)
            for (key, target_tokens), total in unit_scores:
                scores[key] = PairScore(total, len(target_tokens))
        return scores

    def _encode(self, side: str, line: LocatedLine) -> list[int]:
        tokens = self._splitters[side](line.text)
        limit = most_tokens(self.ensemble.positions(side))
        if len(tokens) > limit:
            raise UserError(
                f"{line.location}: the {side} has {len(tokens):,} tokens, but the model scores at "
                f"most {limit:,}; split the pair, or leave it out: {line.text[:60]}..."
            )
        return self._vocabularies[side].encode(tokens)


def _width(unit: _Unit) -> int:
    """Return K, the number of rows that a unit takes in a batch of units of its size.

    It is never 2 or 3: a matrix product of two or three rows may be rounded differently from all
    larger ones.
    """
    targets = len(unit.targets)
    return 1 if targets == 1 else max(4, targets)


def _size(unit: _Unit) -> tuple[int, int]:
    """Return the number of targets of a unit, and the length of its longest target."""
    return len(unit.targets), max(map(len, unit.targets.values()))


def _batches(units: Sequence[_Unit]) -> Iterator[list[_Unit]]:
    """Yield batches of units with at most ``TARGETS_PER_BATCH`` targets, padding included.

    Units of similar size share a batch. Those of a single target come first, and get batches of
    their own, because a matrix product of a single row is computed in another way.
    """
    units = sorted(units, key=_size)
    widths = np.array([_width(unit) for unit in units])
    singles = np.count_nonzero(widths == 1)
    for indices in np.split(np.arange(len(units)), [singles]):
        # `cut` limits the tokens of a batch, padding included. Here a unit stands for a row, and a
        # target for a token, so the targets of a batch are limited, padding included.
        for batch in cut(indices, widths, sentences=None, tokens=TARGETS_PER_BATCH):
            yield [units[index] for index in batch]


@torch.inference_mode()
def log_probabilities(
    ensemble: Ensemble,
    source: Tensor,
    target: Tensor,
) -> Tensor:
    """Return the log-probabilities (B, K) of the targets (B, K, n) of the sources (B, m).

    Each row of indices ends in ``</s>`` and is padded on the right. A row may be all padding; its
    log-probability is 0.
    """
    state = ensemble.start(source, target.shape[1])
    # Decoding begins with </s>, as in training.
    previous = torch.full_like(target[:, :, 0], END)  # (B, K)
    totals = torch.zeros_like(previous, dtype=torch.float64)  # (B, K)
    for tokens in target.unbind(2):  # (B, K)
        # Log-probabilities of all types of the vocabulary.
        predictions, _ = state.step(previous)  # (B, K, V)
        chosen = predictions.gather(2, tokens.unsqueeze(2)).squeeze(2)  # (B, K)
        totals += chosen.masked_fill(tokens == PADDING, 0.0)
        previous = tokens
    return totals


def score_pairs(
    scorer: PairScorer,
    pairs: Iterable[tuple[str, str]],
    source_name: str = "pairs",
    target_name: str = "pairs",
) -> Iterator[PairScore]:
    """Yield the score of each pair of a source and a target, in the order given.

    Messages call the files of the two sides ``source_name`` and ``target_name``.
    """
    given = (
        GivenTargets(
            LocatedLine(source, f"{source_name}:{number}"),
            [LocatedLine(target, f"{target_name}:{number}")],
        )
        for number, (source, target) in enumerate(pairs, start=1)
    )
    for (score,) in scorer.score(given):  # each source has one target
        yield score


def score_groups(
    scorer: PairScorer,
    sources: Iterable[str],
    groups: Iterable[Group],
    feature: str,
    length_penalty: float,
) -> Iterator[ListedHypothesis]:
    """Yield the hypotheses of an n-best list with one more feature, log-probability / |y|^alpha.

    Sentence i of the list translates line i of ``sources``, from 0. Sentences must be in ascending
    order, as `read_n_best` guarantees; ``sources`` may have lines without hypotheses.

    Raises:
        UserError: a sentence of the list is not in ``sources``, or the list already has the
            feature.
    """
    # The scorer reads the groups a chunk ahead of the loop below, which needs them again.
    groups_to_score, groups_to_yield = tee(groups)
    # Only raw text is unescaped: in words or tokens, `n_best_line` leaves single bars as they are.
    convert = unescaped if scorer.form == "raw" else str
    scores_of_groups = scorer.score(_with_sources(sources, groups_to_score, convert))
    for scores, group in zip(scores_of_groups, groups_to_yield, strict=True):
        for hypothesis, score in zip(group, scores, strict=True):
            yield hypothesis.with_feature(feature, score.normalized(length_penalty))


def _with_sources(
    sources: Iterable[str],
    groups: Iterable[Group],
    convert: Callable[[str], str],
) -> Iterator[GivenTargets]:
    """Yield the source of each group of hypotheses together with their texts.

    ``convert`` turns a text of the list into the scorer's form. Groups must be in ascending order
    of their sentences, because ``sources`` is read only once.
    """
    numbered_sources = enumerate(sources, start=1)
    lines_read = 0
    for group in groups:
        sentence = group[0].sentence  # counts from 0
        location = group[0].location
        # Skip the lines before the sentence.
        for lines_read, line in numbered_sources:
            if lines_read > sentence:
                source = LocatedLine(line, location)
                break
        else:
            raise UserError(
                f"{location}: sentence {sentence}, but the source has {lines_read} lines "
                "(sentences count from 0); give the text from which the list was made"
            )
        targets = [
            LocatedLine(convert(hypothesis.text), hypothesis.location)
            for hypothesis in group
        ]
        yield GivenTargets(source, targets)


def list_n_best(
    translator: LineTranslator,
    *,
    source: Path,
    output: Path,
) -> None:
    """Translate a file of raw text to an n-best list of all hypotheses that the search finishes.

    The texts in the list are words separated by blanks, as tokenized BLEU reads them. Unknown words
    are replaced if the translator's settings say so.
    """
    alpha = translator.settings.alpha
    with atomic_text(output) as stream:
        translations = translator.translate(read_lines(source), n_best=sys.maxsize)
        for translation in counted(translations, " lines"):
            for hypothesis in translation.n_best:
                line = n_best_line(
                    line=hypothesis.line,
                    text=" ".join(hypothesis.words),
                    score=hypothesis.score,
                    length=len(hypothesis.tokens) + 1,  # with </s>
                    length_penalty=alpha,
                )
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

    The lines of ``source`` and the texts of ``n_best``, which translate them, are words separated
    by blanks. Alpha is ``length_penalty``.
    """
    torch.set_num_threads(threads)
    with held_device(device) as held:
        scorer = PairScorer.load(models, held, "words")
        listed = read_n_best(counted(read_lines(n_best), " hypotheses"), str(n_best))
        # Stop at the first sentence without a hypothesis. Otherwise, `rescore_n_best` would refuse
        # the list only after all of it has been scored.
        groups = every_sentence(listed)
        scored = score_groups(scorer, read_lines(source), groups, MODEL, length_penalty)
        write_lines(output, (hypothesis.line() for hypothesis in scored))


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
    """Write the perplexity per token of a test set's references.

    The lines of both files are words separated by blanks.
    """
    torch.set_num_threads(threads)
    with held_device(device) as held:
        scorer = PairScorer.load(models, held, "words")
        pairs = read_line_pairs(source, target)
        scores = list(score_pairs(scorer, pairs, str(source), str(target)))
    tokens = sum(score.tokens for score in scores)
    perplexity = math.exp(-sum(score.log_probability for score in scores) / tokens)
    measured = {"score": perplexity, "signature": f"{tokens:,} tokens"}
    write_json(
        output, {"lines": len(scores), "perplexity": measured, "manifest": manifest}
    )
