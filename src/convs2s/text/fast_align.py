"""IBM model 2 with positions that favour the diagonal, trained by expectation maximization.

Dyer, Chahuneau and Smith (2013), "A simple, fast, and effective reparameterization of IBM model
2": what the paper's fast_align computes with `-d -o -v`. Nothing is drawn at random, and one thread
adds up everything in the same order, so that the same text has the same links.

Section 2 there: a word at position j of m has its counterpart at position i of n with a probability
that falls as exp(-tension * |j/m - i/n|). Sums over i are geometric series on both its sides.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from convs2s.errors import UserError, failures_of_file
from convs2s.files.atomic import atomic_path

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
KeptArray = NDArray[np.generic]  # an array of a type that its reader knows
_ITERATIONS = 5
_NULL_SHARE = 0.08  # probability that a target word has no source word
_CONCENTRATION = 0.01  # of the Dirichlet prior over the translations of a source word
# Pairs of positions, or of words, that are looked at together: some 100 MB of memory.
_AT_ONCE = 1 << 20

_FIRST_TENSION = 4.0
_LEAST_TENSION = 0.1
_MOST_TENSION = 14.0
# Of the search for the tension in each iteration.
_STEPS = 8
_RATE = 20.0


@dataclass(frozen=True)
class Side:
    """One language of a corpus of S sentences and W words, each word a number."""

    words: NDArray[np.int32]  # (W,), sentence after sentence
    starts: Integers  # (S + 1,): where each sentence starts, and where the last one ends

    @cached_property
    def lengths(self) -> Integers:
        """Words of each sentence, (S,)."""
        return np.diff(self.starts)


def most_probable_links(source: Side, target: Side, states: Path) -> Integers:
    """Return for each target word the place of its source word in the sentence, from 0; -1: none.

    The folder ``states`` keeps each iteration's model, and the links in the end: where a killed
    process has left some, it resumes from there, to the same links. No sentence may be empty.
    """
    arrays = (source.words, source.starts, target.words, target.starts)
    code = Path(__file__).read_bytes()
    state = AlignmentState(states, [*(array.data for array in arrays), code])
    kept = state.kept()
    if "links" in kept:
        return kept["links"].astype(np.int64)
    shapes = Shapes(source.lengths, target.lengths)
    model = _Model(source, target)
    done = 0
    if kept:
        done = int(kept["iterations"])
        model.tension = float(kept["tension"])
        model.probability = kept["probability"].astype(np.float32)
        model.null = kept["null"].astype(np.float64)
    for iteration in range(done, _ITERATIONS - 1):
        distance = model.expect()
        if iteration:
            model.tension = tightened(model.tension, distance, shapes)
        model.maximize()
        state.keep(
            iterations=iteration + 1,
            tension=model.tension,
            probability=model.probability,
            null=model.null,
        )
    links = model.links()
    state.keep(links=links.astype(np.int32))
    return links


@dataclass(frozen=True)
class _Pairs:
    """All P pairs of positions of some sentence pairs, which have T target words.

    Target words come in the order of their numbers, so that neighbours are close in memory.
    """

    targets: Integers  # (T,): places in the corpus
    first: Integers  # (T,): of each target word its first pair; the others follow
    target: Integers  # (P,): of each pair its target word, a place in ``targets``
    source_place: Integers  # (P,): the place of its source word in the sentence, from 0
    keys: Integers  # (P,): the number of its two words
    source_share: Floats  # (P,): the place of its source word from 1, over the length
    target_share: Floats  # (T,): the same of each target word
    target_step: Floats  # (T,): one over the length of each target word's sentence


class _Model:
    """The probabilities of the translations of all source words, and those of no word."""

    def __init__(self, source: Side, target: Side):
        self.tension = _FIRST_TENSION
        self._source = source
        self._target = target
        self._types = int(source.words.max()) + 1
        self._keys = self._word_pairs()
        # Equal at first: what they are does not matter. Half the memory of Python's own numbers.
        self.probability = np.ones(len(self._keys), dtype=np.float32)
        self._count = np.zeros(len(self._keys), dtype=np.float32)
        self.null = np.ones(int(target.words.max()) + 1)
        self._null_count = np.zeros_like(self.null)

    def _word_pairs(self) -> Integers:
        """Return the sorted numbers of all pairs of words that share a sentence pair."""
        numbers: Integers = np.zeros(0, np.int64)
        parts: list[Integers] = []
        for pairs in self._pairs():
            parts.append(_each_once([pairs.keys]))
            # Parts wait until they are as large, so that each number is sorted a few times only.
            if sum(map(len, parts)) > len(numbers):
                numbers = _each_once([numbers, *parts])
                parts.clear()
        return _each_once([numbers, *parts])

    def _pairs(self) -> Iterator[_Pairs]:
        """Yield the pairs of positions of the corpus, some sentence pairs at a time."""
        ends = np.cumsum(self._source.lengths * self._target.lengths)  # (S,): after each sentence
        first = 0
        pairs_before = 0
        while first < len(ends):
            fitting = int(np.searchsorted(ends, pairs_before + _AT_ONCE, side="right"))
            last = max(first + 1, fitting)
            yield self._pairs_of(first, last)
            first = last
            pairs_before = int(ends[last - 1])

    def _pairs_of(self, first: int, last: int) -> _Pairs:
        """Return the pairs of positions of the sentence pairs from ``first`` to before ``last``."""
        source = self._source
        target = self._target
        start = target.starts[first]
        end = target.starts[last]
        targets = start + np.argsort(target.words[start:end], kind="stable")  # (T,)
        sentence = np.searchsorted(target.starts, targets, side="right") - 1  # (T,)
        source_length = source.lengths[sentence]  # (T,)
        target_length = target.lengths[sentence]  # (T,)
        first_pair = np.cumsum(source_length) - source_length  # (T,)
        target_of_pair = np.repeat(np.arange(len(targets)), source_length)  # (P,)
        source_place = np.arange(len(target_of_pair)) - first_pair[target_of_pair]  # (P,)
        source_start = source.starts[sentence][target_of_pair]  # (P,)
        source_word = source.words[source_start + source_place]  # (P,)
        target_word = target.words[targets].astype(np.int64)[target_of_pair]  # (P,)
        return _Pairs(
            targets=targets,
            first=first_pair,
            target=target_of_pair,
            source_place=source_place,
            keys=target_word * self._types + source_word,
            source_share=(source_place + 1) / source_length[target_of_pair],
            target_share=(targets - target.starts[sentence] + 1) / target_length,
            target_step=1 / target_length,
        )

    def _joint(self, pairs: _Pairs) -> tuple[Integers, Floats, Floats]:
        """Return the places of the pairs in the tables, their probabilities, those of no word.

        These are (P,), (P,) and (T,).
        """
        slots = np.searchsorted(self._keys, pairs.keys)
        distance = abs(pairs.target_share[pairs.target] - pairs.source_share)  # (P,)
        near = np.exp(-self.tension * distance)  # (P,)
        scale = (1 - _NULL_SHARE) / np.add.reduceat(near, pairs.first)  # (T,)
        joint = self.probability[slots] * near * scale[pairs.target]
        null = self.null[self._target.words[pairs.targets]] * _NULL_SHARE
        return slots, joint, null

    def expect(self) -> float:
        """Count how often words are expected to be aligned; return the mean distance of these.

        fast_align measures it from the position before the target word's, and so it is here.
        """
        distances = 0.0
        for pairs in self._pairs():
            slots, joint, null = self._joint(pairs)
            total = np.add.reduceat(joint, pairs.first) + null  # (T,)
            joint /= total[pairs.target]
            np.add.at(self._count, slots, joint.astype(np.float32))
            np.add.at(self._null_count, self._target.words[pairs.targets], null / total)
            before = pairs.target_share - pairs.target_step  # (T,)
            distance = abs(before[pairs.target] - pairs.source_share)  # (P,)
            distances += float((joint * distance).sum())
        return distances / len(self._target.words)

    def maximize(self) -> None:
        """Make probabilities of what was counted, by variational Bayes, and forget the counts."""
        totals = np.zeros(self._types)  # of each source word
        for part in self._parts():
            source_words = self._keys[part] % self._types
            np.add.at(totals, source_words, self._count[part] + _CONCENTRATION)
        norms = _digamma(np.maximum(totals, _CONCENTRATION))
        for part in self._parts():
            source_words = self._keys[part] % self._types
            logarithm = _digamma(self._count[part].astype(np.float64) + _CONCENTRATION)
            self.probability[part] = np.exp(logarithm - norms[source_words])
        counted = self._null_count + _CONCENTRATION
        self.null = np.exp(_digamma(counted) - _digamma(counted.sum(keepdims=True)))
        self._count[:] = 0
        self._null_count[:] = 0

    def _parts(self) -> Iterator[slice]:
        """Yield parts of the table of pairs of words, as temporary arrays are twice as large."""
        for start in range(0, len(self._keys), _AT_ONCE):
            yield slice(start, start + _AT_ONCE)

    def links(self) -> Integers:
        """Return the most probable place for each target word: of equals none, then the first."""
        links = np.full(len(self._target.words), -1)
        for pairs in self._pairs():
            _, joint, null = self._joint(pairs)
            most = np.maximum.reduceat(joint, pairs.first)  # (T,)
            best = np.flatnonzero(joint == most[pairs.target])  # each word has one or several
            _, first = np.unique(pairs.target[best], return_index=True)  # (T,)
            best_place = pairs.source_place[best[first]]  # (T,)
            links[pairs.targets] = np.where(most > null, best_place, -1)
        return links


def _each_once(parts: Sequence[Integers]) -> Integers:
    """Return all numbers in order, each once; numpy.unique hashes them, which takes far longer."""
    numbers = np.concatenate(parts)
    numbers.sort()
    is_new = np.ones(len(numbers), dtype=bool)
    is_new[1:] = numbers[1:] != numbers[:-1]
    once: Integers = numbers[is_new]
    return once


def _digamma(values: Floats) -> Floats:
    """Return the derivative of the logarithm of the gamma function; values above 0."""
    # digamma(x) = digamma(x + 1) - 1 / x, until the series below is exact enough.
    recurrence = np.zeros(len(values))
    shifted = values.copy()
    is_small = shifted < 7
    while is_small.any():
        recurrence[is_small] -= 1 / shifted[is_small]
        shifted[is_small] += 1
        is_small = shifted < 7
    # The asymptotic series around the middle of two whole steps.
    middle = shifted - 0.5
    square = 1 / middle**2
    series = square / 24 - 7 * square**2 / 960 + 31 * square**3 / 8064 - 127 * square**4 / 30720
    return recurrence + np.log(middle) + series


class Shapes:
    """The lengths of a corpus' sentence pairs, a row for each position of a target word."""

    def __init__(self, source_lengths: Integers, target_lengths: Integers) -> None:
        """Count the sentence pairs of each two lengths."""
        pairs = np.stack([target_lengths, source_lengths])
        (length, others), count = np.unique(pairs, axis=1, return_counts=True)
        first_row = np.cumsum(length) - length
        self.position: Integers = np.arange(length.sum()) - np.repeat(first_row, length) + 1
        self.length: Integers = np.repeat(length, length)  # words of its sentence
        self.others: Integers = np.repeat(others, length)  # words of the source sentence
        self.count: Integers = np.repeat(count, length)  # sentence pairs of these lengths


def tightened(tension: float, distance: float, shapes: Shapes) -> float:
    """Return the tension under which the mean distance of words is nearer to an observed one."""
    words = shapes.count.sum()
    for _ in range(_STEPS):
        # fast_align normalizes by the sum in which both lengths have changed places, and so it is
        # here: the tension, and with it the links, would be others.
        normalizer, _ = _series(shapes.position, shapes.others, shapes.length, tension)
        _, distances = _series(shapes.position, shapes.length, shapes.others, tension)
        expected = (shapes.count * (distances / normalizer)).sum() / words
        tension += (expected - distance) * _RATE
        tension = min(max(tension, _LEAST_TENSION), _MOST_TENSION)
    return tension


def _series(
    position: Integers, length: Integers, others: Integers, tension: float
) -> tuple[Floats, Floats]:
    """Return the sums over all counterparts of exp(-tension * d), and of d times that."""
    share = position / length
    before = position * others // length  # counterparts that are not beyond the diagonal
    nearest_before = abs(before / others - share)
    nearest_behind = abs((before + 1) / others - share)
    step = 1 / others
    plain_before, weighted_before = _falling(nearest_before, step, before, tension)
    plain_behind, weighted_behind = _falling(nearest_behind, step, others - before, tension)
    return plain_before + plain_behind, weighted_before + weighted_behind


def _falling(first: Floats, step: Floats, terms: Integers, tension: float) -> tuple[Floats, Floats]:
    """Return the sums of exp(-tension * d) and d times that for d = first, first + step, ...

    Without end where the terms are fewer than none, as they are where the lengths changed places.
    """
    ratio = np.exp(-tension * step)
    last = np.where(terms < 0, 0.0, ratio ** np.maximum(terms, 0))
    plain = (1 - last) / (1 - ratio)  # the sum of ratio ** k
    rising = (ratio - terms * last + (terms - 1) * last * ratio) / (1 - ratio) ** 2  # k ratio ** k
    scale = np.exp(-tension * first)
    return scale * plain, scale * (first * plain + step * rising)


class AlignmentState:
    """The arrays that an aligner had at the end of its last round, in one file."""

    def __init__(self, folder: Path, depends_on: Iterable[bytes | memoryview]) -> None:
        """Name the file by what decides the links: both sides, the code, and numpy's last bits."""
        digest = hashlib.sha256(np.__version__.encode())
        for part in depends_on:
            digest.update(hashlib.sha256(part).digest())
        self._path = folder / f"{digest.hexdigest()}.npz"

    def keep(self, **arrays: ArrayLike) -> None:
        """Keep these arrays in place of those before."""
        with atomic_path(self._path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays, end=True)

    def kept(self) -> dict[str, KeptArray]:
        """Return what was kept; nothing where there is nothing, or what there is is damaged."""
        if not self._path.exists():
            return {}
        try:
            with (
                failures_of_file(str(self._path), "not as it was written"),
                np.load(self._path, allow_pickle=False) as stored,
            ):
                arrays = {name: stored[name] for name in stored.files}  # each has its checksum
                del arrays["end"]  # the last one: where it is missing, others may be
        except UserError as error:
            print(f"{error}; this direction is aligned from the beginning", file=sys.stderr)
            return {}
        return arrays
