"""fast_align: IBM model 2 with positions that favor the diagonal, trained by EM.

Dyer, Chahuneau and Smith (2013), "A simple, fast, and effective reparameterization of IBM model 2".
The model is that of fast_align with the options `-d -o -v`. It uses no random numbers, and one
thread adds all numbers in a fixed order, so that the same text always gets the same links.

In section 2 of that paper, a target word at position j of m is aligned to the source word at
position i of n with a probability proportional to exp(-tension * |j/m - i/n|). On each side of the
diagonal, the sum over all positions i is a geometric series. A target word that is aligned to no
source word is aligned to the null word.
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

_ITERATIONS = 5
# Probability that a target word is aligned to the null word.
_NULL_SHARE = 0.08
# Parameter of the Dirichlet prior over a source word's translations.
_CONCENTRATION = 0.01

# Number of pairs of positions, or of words, that are processed at a time, in about 100 MB of
# memory.
_AT_ONCE = 1 << 20

_FIRST_TENSION = 4.0
_LEAST_TENSION = 0.1
_MOST_TENSION = 14.0

# Each iteration changes the tension by this number of gradient steps with this learning rate.
_STEPS = 8
_RATE = 20.0


@dataclass(frozen=True)
class Side:
    """One language of a corpus of S sentences and W words, with a number for each distinct word."""

    # (W,), the words of all sentences, one sentence after the other
    words: NDArray[np.int32]
    # (S + 1,), the index of each sentence's first word, and then W
    starts: Integers

    @cached_property
    def lengths(self) -> Integers:
        """The number of words of each sentence, (S,)."""
        return np.diff(self.starts)

    @cached_property
    def types(self) -> int:
        """The number of distinct words."""
        return int(self.words.max()) + 1


def most_probable_links(
    source: Side,
    target: Side,
    states: Path,
) -> Integers:
    """Return the position of the source word that each target word is aligned to.

    Positions are counted from 0 within the source sentence, and -1 is the null word. The array has
    an item for each target word of the corpus. No sentence may be empty.

    The model after each iteration, and at last the links, are kept in the folder ``states``. If a
    killed process has left a state of the same text there, the training continues from it, and
    finds the same links.
    """
    arrays = (source.words, source.starts, target.words, target.starts)
    code = Path(__file__).read_bytes()
    # A state is only used again with the same text and the same version of this module.
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
    # The last of the iterations only finds the links, below.
    for iteration in range(done, _ITERATIONS - 1):
        distance = model.iterate()
        # As in fast_align, the first iteration does not change the tension.
        if iteration:
            model.tension = tightened(model.tension, distance, shapes)
        state.keep(
            iterations=iteration + 1,
            tension=model.tension,
            probability=model.probability,
            null=model.null,
        )
    links = model.links()
    state.keep(links=links.astype(np.int32))
    return links


class _Pairs:
    """All pairs of a source and a target position within some sentence pairs.

    There are T target words and P pairs. The target words are sorted by their numbers, so that the
    lookups of neighboring pairs are close in memory. The pairs of a target word are adjacent, in
    the order of the source positions.
    """

    def __init__(
        self,
        source: Side,
        target: Side,
        begin: int,
        end: int,
    ) -> None:
        """Pair the positions of the sentence pairs ``begin``, ..., ``end - 1``."""
        start = target.starts[begin]
        words = target.words[start : target.starts[end]]
        # (T,), index of each target word in the corpus
        self.targets: Integers = start + np.argsort(words, kind="stable")
        # (T,), index of each target word's sentence
        sentence = np.searchsorted(target.starts, self.targets, side="right") - 1
        source_length = source.lengths[sentence]  # (T,)
        target_length = target.lengths[sentence]  # (T,)
        # (T,), index of the first pair of each target word
        self.first_pair: Integers = np.cumsum(source_length) - source_length
        target_indices = np.arange(len(self.targets))
        # (P,), index of each pair's target word in ``targets``
        self.of_target: Integers = np.repeat(target_indices, source_length)
        # (P,), position of each pair's source word in its sentence, from 0
        self.source_place: Integers = (
            np.arange(len(self.of_target)) - self.first_pair[self.of_target]
        )
        source_start = source.starts[sentence][self.of_target]  # (P,)
        source_word = source.words[source_start + self.source_place]  # (P,)
        target_words = target.words[self.targets].astype(np.int64)  # (T,)
        target_word = target_words[self.of_target]  # (P,)
        # (P,), key of each pair's two words, see `_Model`
        self.keys: Integers = target_word * source.types + source_word
        length_of_source = source_length[self.of_target]  # (P,)
        # (P,), position of each pair's source word, from 1, divided by the sentence's length
        self.source_share: Floats = (self.source_place + 1) / length_of_source
        target_place = self.targets - target.starts[sentence]  # (T,), from 0
        # (T,), position of each target word, from 1, divided by the sentence's length
        self.target_share: Floats = (target_place + 1) / target_length
        # (T,), 1 / length of each target word's sentence
        self.target_step: Floats = 1 / target_length


class _Model:
    """The probability of each target word as a translation of each source word.

    Only words that occur in the same sentence pair have a probability. Their key, ``target number *
    source types + source number``, identifies the two words. ``probability`` has an item for each
    of the sorted ``_keys``. ``null`` has the probability of each target word as a translation of
    the null word.
    """

    def __init__(self, source: Side, target: Side):
        self.tension = _FIRST_TENSION
        self._source = source
        self._target = target
        self._keys = self._word_pairs()
        # All probabilities are equal at first, and their value does not matter, because they are
        # normalized when they are used. float32 takes half the memory of float64.
        self.probability = np.ones(len(self._keys), dtype=np.float32)
        self.null = np.ones(target.types)

    def _word_pairs(self) -> Integers:
        """Return the sorted keys of all pairs of words that occur in the same sentence pair."""
        keys: Integers = np.zeros(0, np.int64)
        parts: list[Integers] = []
        for pairs in self._pairs():
            parts.append(_sorted_unique([pairs.keys]))
            # The parts are merged only when they are together longer than the keys so far, so that
            # each key is sorted only a few times.
            if sum(map(len, parts)) > len(keys):
                keys = _sorted_unique([keys, *parts])
                parts.clear()
        return _sorted_unique([keys, *parts])

    def _pairs(self) -> Iterator[_Pairs]:
        """Yield the pairs of positions of the corpus for some sentence pairs at a time.

        There are at most ``_AT_ONCE`` pairs at a time, or more if one sentence pair has more.
        """
        # (S,), number of pairs of positions up to the end of each sentence pair
        ends = np.cumsum(self._source.lengths * self._target.lengths)
        begin = 0
        pairs_before = 0
        while begin < len(ends):
            fitting = int(np.searchsorted(ends, pairs_before + _AT_ONCE, side="right"))
            end = max(begin + 1, fitting)
            yield _Pairs(self._source, self._target, begin, end)
            begin = end
            pairs_before = int(ends[end - 1])

    def _joint(self, pairs: _Pairs) -> tuple[Integers, Floats, Floats]:
        """Return probabilities under the current model.

        Returns:
            The index of each pair's two words in ``probability``, (P,). The joint probability of
            each pair's source position and target word, (P,). The joint probability of the null
            word and each target word, (T,).
        """
        slots = np.searchsorted(self._keys, pairs.keys)  # (P,)
        distance = abs(pairs.target_share[pairs.of_target] - pairs.source_share)  # (P,)
        near = np.exp(-self.tension * distance)  # (P,)
        # (T,), scales the weights of a target word's source positions to the sum 1 - _NULL_SHARE
        scale = (1 - _NULL_SHARE) / np.add.reduceat(near, pairs.first_pair)
        joint = self.probability[slots] * near * scale[pairs.of_target]  # (P,)
        null = self.null[self._target.words[pairs.targets]] * _NULL_SHARE  # (T,)
        return slots, joint, null

    def iterate(self) -> float:
        """Run one iteration of EM.

        Return the mean expected distance |j/m - i/n| from the diagonal under the model before the
        iteration. As in fast_align, it is measured from the position before the target word, with
        j - 1 in place of j.
        """
        # E step: add up the expected counts of aligned words.
        count = np.zeros_like(self.probability)
        null_count = np.zeros_like(self.null)
        distances = 0.0
        for pairs in self._pairs():
            slots, joint, null = self._joint(pairs)
            total = np.add.reduceat(joint, pairs.first_pair) + null  # (T,)
            posterior = joint / total[pairs.of_target]  # (P,)
            np.add.at(count, slots, posterior.astype(np.float32))
            np.add.at(null_count, self._target.words[pairs.targets], null / total)
            before = pairs.target_share - pairs.target_step  # (T,)
            distance = abs(before[pairs.of_target] - pairs.source_share)  # (P,)
            distances += float((posterior * distance).sum())
        # M step: set the probabilities from the counts by variational Bayes. The tables are
        # processed in parts because temporary arrays of float64 would take twice their memory.
        starts = range(0, len(count), _AT_ONCE)
        parts = [slice(start, start + _AT_ONCE) for start in starts]
        # Sum of the counts of each source word, with the prior.
        totals = np.zeros(self._source.types)
        for part in parts:
            source_words = self._keys[part] % self._source.types
            np.add.at(totals, source_words, count[part] + _CONCENTRATION)
        # A number that no word has gets the total 0, at which digamma is not defined.
        norms = _digamma(np.maximum(totals, _CONCENTRATION))
        for part in parts:
            source_words = self._keys[part] % self._source.types
            logarithm = _digamma(count[part].astype(np.float64) + _CONCENTRATION)
            self.probability[part] = np.exp(logarithm - norms[source_words])
        counted = null_count + _CONCENTRATION
        self.null = np.exp(_digamma(counted) - _digamma(counted.sum(keepdims=True)))
        return distances / len(self._target.words)

    def links(self) -> Integers:
        """Return the most probable source position of each target word, or -1 for the null word.

        The null word is also taken if it is as probable as the best position. Of equally probable
        positions, the first is taken.
        """
        links = np.full(len(self._target.words), -1)
        for pairs in self._pairs():
            _, joint, null = self._joint(pairs)
            highest = np.maximum.reduceat(joint, pairs.first_pair)  # (T,)
            # The best pairs of each target word, at least one for each, and the first of them.
            best = np.flatnonzero(joint == highest[pairs.of_target])
            _, first = np.unique(pairs.of_target[best], return_index=True)  # (T,)
            best_place = pairs.source_place[best[first]]  # (T,)
            links[pairs.targets] = np.where(highest > null, best_place, -1)
        return links


def _sorted_unique(parts: Sequence[Integers]) -> Integers:
    """Return the sorted distinct numbers of all arrays.

    numpy.unique is not used because it hashes the numbers, which takes far longer.
    """
    numbers = np.concatenate(parts)
    numbers.sort()
    is_new = np.ones(len(numbers), dtype=bool)
    is_new[1:] = numbers[1:] != numbers[:-1]
    distinct: Integers = numbers[is_new]
    return distinct


def _digamma(values: Floats) -> Floats:
    """Return the derivative of the logarithm of the gamma function at values above 0."""
    # digamma(x) = digamma(x + 1) - 1 / x is applied until the series below is precise enough.
    recurrence = np.zeros(len(values))
    shifted = values.copy()
    is_small = shifted < 7
    while is_small.any():
        recurrence[is_small] -= 1 / shifted[is_small]
        shifted[is_small] += 1
        is_small = shifted < 7
    # The asymptotic series of digamma(x) in powers of 1 / (x - 1/2).
    middle = shifted - 0.5
    square = 1 / middle**2
    series = (
        square / 24
        - 7 * square**2 / 960
        + 31 * square**3 / 8064
        - 127 * square**4 / 30720
    )
    return recurrence + np.log(middle) + series


class Shapes:
    """A table of the lengths of a corpus's sentence pairs and of the positions of target words.

    It has a row for each distinct pair of lengths and each position in a target sentence of this
    length. The four arrays are the columns.
    """

    def __init__(self, source_lengths: Integers, target_lengths: Integers) -> None:
        """Count the sentence pairs with each pair of lengths."""
        pairs = np.stack([target_lengths, source_lengths])
        (length, others), count = np.unique(pairs, axis=1, return_counts=True)
        first_row = np.cumsum(length) - length
        row = np.arange(length.sum())
        # Position of a target word, from 1.
        self.position: Integers = row - np.repeat(first_row, length) + 1
        # Number of words of the target sentence.
        self.length: Integers = np.repeat(length, length)
        # Number of words of the source sentence.
        self.others: Integers = np.repeat(others, length)
        # Number of sentence pairs with these two lengths.
        self.count: Integers = np.repeat(count, length)


def tightened(
    tension: float,
    distance: float,
    shapes: Shapes,
) -> float:
    """Return a tension that fits the observed mean distance from the diagonal better.

    Each step moves the tension by the difference between the mean distance that the current tension
    predicts and the observed ``distance``, times the learning rate.
    """
    words = shapes.count.sum()
    for _ in range(_STEPS):
        # As in fast_align, the normalizer is computed with the two lengths exchanged. Otherwise the
        # tension would differ from that of fast_align, and so would the links.
        normalizer, _ = _series(shapes.position, shapes.others, shapes.length, tension)
        _, distances = _series(shapes.position, shapes.length, shapes.others, tension)
        expected = (shapes.count * (distances / normalizer)).sum() / words
        tension += (expected - distance) * _RATE
        tension = min(max(tension, _LEAST_TENSION), _MOST_TENSION)
    return tension


def _series(
    position: Integers,
    length: Integers,
    others: Integers,
    tension: float,
) -> tuple[Floats, Floats]:
    """Return the sums of exp(-tension * d), and of d * exp(-tension * d), over i = 1 .. ``others``.

    d is the distance |position / length - i / others|. All arrays have the same shape.
    """
    share = position / length
    # Number of positions i up to the diagonal, and after it.
    before = position * others // length
    after = others - before
    # Distance of the nearest position on each side of the diagonal. Each further one adds ``step``.
    nearest_before = abs(before / others - share)
    nearest_after = abs((before + 1) / others - share)
    step = 1 / others
    plain_before, weighted_before = _falling(nearest_before, step, before, tension)
    plain_after, weighted_after = _falling(nearest_after, step, after, tension)
    return plain_before + plain_after, weighted_before + weighted_after


def _falling(
    first: Floats,
    step: Floats,
    terms: Integers,
    tension: float,
) -> tuple[Floats, Floats]:
    """Return the sums of exp(-tension * d) and d * exp(-tension * d) over a sequence of distances.

    The distances d are first, first + step, first + 2 * step, ...; there are ``terms`` of them. If
    ``terms`` is negative, as it can be when `tightened` exchanges the lengths, the infinite sums
    are returned.
    """
    ratio = np.exp(-tension * step)
    # ratio ** terms, which is 0 for infinitely many terms.
    power = np.where(terms < 0, 0.0, ratio ** np.maximum(terms, 0))
    # The sums of ratio ** k and of k * ratio ** k over k = 0, 1, ..., terms - 1.
    plain = (1 - power) / (1 - ratio)
    rising = (ratio - terms * power + (terms - 1) * power * ratio) / (1 - ratio) ** 2
    scale = np.exp(-tension * first)
    return scale * plain, scale * (first * plain + step * rising)


class AlignmentState:
    """The arrays of an aligner's last completed iteration, which are kept in one file."""

    def __init__(self, folder: Path, depends_on: Iterable[bytes | memoryview]) -> None:
        """Name the file in ``folder`` after the digest of everything that the links depend on.

        These are the parts in ``depends_on`` and the version of numpy, whose results can differ in
        their last bits between versions.
        """
        digest = hashlib.sha256(np.__version__.encode())
        for part in depends_on:
            digest.update(hashlib.sha256(part).digest())
        self._path = folder / f"{digest.hexdigest()}.npz"

    def keep(self, **arrays: ArrayLike) -> None:
        """Replace the kept arrays by these."""
        with atomic_path(self._path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays, end=True)

    def kept(self) -> dict[str, NDArray[np.generic]]:
        """Return the kept arrays by their names.

        Return an empty dictionary if there is no file. If the file is damaged, report this to
        stderr and return an empty dictionary as well.
        """
        if not self._path.exists():
            return {}
        try:
            with (
                failures_of_file(str(self._path), "damaged state of an alignment"),
                np.load(self._path, allow_pickle=False) as stored,
            ):
                # Reading an array checks its checksum.
                arrays = {name: stored[name] for name in stored.files}
                # keep writes "end" last. If it is missing, other arrays may be missing too, and the
                # KeyError says that the file is damaged.
                del arrays["end"]
        except UserError as error:
            print(
                f"{error}; this direction is aligned from the beginning",
                file=sys.stderr,
            )
            return {}
        return arrays
