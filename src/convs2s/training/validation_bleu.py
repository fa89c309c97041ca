"""BLEU of validation pairs after an epoch, by greedy search: what ``best_by`` goes by."""

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


def validation_bleu(data: TrainingData, workers: Workers, network: Network) -> float:
    """Return BLEU, 0 to 100, of validation pairs: the same for any number of workers.

    They are translated over all types, and their words are scored as they are stored. A worker
    translates its share of the batches.
    """
    lengths = data.valid.lengths("source")
    step = -(-len(lengths) // PAIRS)
    rows = np.arange(0, len(lengths), step)
    order = rows[np.argsort(lengths[rows], kind="stable")]
    batches = cut(order, lengths, GREEDY.batch_sentences, VALIDATION_TOKENS)
    vocabulary = Vocabulary(data.types["target"])
    ensemble = Ensemble([network])

    def words(tokens: list[int]) -> str:
        line = " ".join(vocabulary.decode(tokens))
        return line if data.bpe_codes is None else join(line)

    # A worker leaves zeros for the pairs of the others: their sums are all pairs' statistics.
    parts = [np.zeros((len(batch), 6)) for batch in batches]
    for number in range(workers.rank, len(parts), workers.count):
        pairs = [data.valid[int(row)] for row in batches[number]]
        references = [words(target[:-1].tolist()) for _, target in pairs]  # no </s>
        found = beam_search(ensemble, pad([source for source, _ in pairs]), GREEDY)
        hypotheses = []
        for best in found:
            hypotheses.append(words(best[0].tokens) if best else "")
        parts[number][:] = statistics_of(hypotheses, references)
    statistics = np.concatenate(parts)  # (pairs, 6)
    totals = workers.totals(statistics.ravel().tolist())
    summed = np.array(totals, np.int64)
    return bleu_of_statistics(summed.reshape(statistics.shape))
