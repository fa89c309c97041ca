"""BLEU of validation pairs after an epoch, by greedy search: what ``best_by`` goes by."""

from collections.abc import Sequence

import numpy as np

from convs2s.config.decoding import GREEDY
from convs2s.data.batches import cut, pad
from convs2s.data.vocabulary import Vocabulary
from convs2s.decoding.search import beam_search
from convs2s.models.ensemble import Ensemble
from convs2s.models.network import Network
from convs2s.scoring.bleu import bleu_of_statistics, statistics_of
from convs2s.text.bpe import join
from convs2s.training.data import TrainingData
from convs2s.training.loading import VALIDATION_TOKENS
from convs2s.training.workers import Workers

PAIRS = 2000  # that are translated, at most, evenly spread over the validation pairs


class ValidationBleu:
    """Translates validation pairs, over all types, and scores their words as they are stored."""

    def __init__(self, data: TrainingData, workers: Workers) -> None:
        """Choose the pairs; each worker translates its share of their batches."""
        self._store = data.valid
        self._workers = workers
        self._vocabulary = Vocabulary(data.types["target"])
        self._is_of_words = data.bpe_codes is None
        lengths = self._store.lengths("source")
        step = -(-len(lengths) // PAIRS)
        rows = np.arange(0, len(lengths), step)
        order = rows[np.argsort(lengths[rows], kind="stable")]
        self._batches = cut(order, lengths, GREEDY.batch_sentences, VALIDATION_TOKENS)

    def __call__(self, network: Network) -> float:
        """Return BLEU, 0 to 100: the same for any number of workers."""
        ensemble = Ensemble([network])
        # A worker leaves zeros for the pairs of the others: their sums are all pairs' statistics.
        parts = [np.zeros((len(rows), 6)) for rows in self._batches]
        for number in range(self._workers.rank, len(parts), self._workers.count):
            sources = []
            references = []
            for row in self._batches[number]:
                source, target = self._store[int(row)]
                sources.append(source)
                references.append(self._words(target[:-1].tolist()))  # no </s>
            found = beam_search(ensemble, pad(sources), GREEDY)
            hypotheses = []
            for best in found:
                hypotheses.append(self._words(best[0].tokens) if best else "")
            parts[number][:] = statistics_of(hypotheses, references)
        statistics = np.concatenate(parts)  # (pairs, 6)
        totals = self._workers.totals(statistics.ravel().tolist())
        summed = np.array(totals, np.int64)
        return bleu_of_statistics(summed.reshape(statistics.shape))

    def _words(self, tokens: Sequence[int]) -> str:
        line = " ".join(self._vocabulary.decode(tokens))
        return line if self._is_of_words else join(line)
