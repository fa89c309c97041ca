"""BLEU of validation pairs after an epoch, by greedy search, for ``best_by: bleu``."""

import math

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

# Maximum number of pairs to translate, evenly spread over the validation pairs.
PAIRS = 2000


def validation_bleu(
    data: TrainingData,
    workers: Workers,
    network: Network,
) -> float:
    """Return BLEU, from 0 to 100, of at most ``PAIRS`` validation pairs.

    The pairs are translated without a shortlist. Hypotheses and references are scored as they are
    in the store, after BPE is undone: not detokenized, and with ``<unk>`` for unknown words.

    Each worker translates its share of the batches, and every worker must call this function. The
    score does not depend on the number of workers.
    """
    lengths = data.valid.lengths("source")
    step = math.ceil(len(lengths) / PAIRS)
    rows = np.arange(0, len(lengths), step)
    order = rows[np.argsort(lengths[rows], kind="stable")]
    batches = cut(order, lengths, GREEDY.batch_sentences, VALIDATION_TOKENS)
    vocabulary = Vocabulary(data.types["target"])
    ensemble = Ensemble([network])

    def words(tokens: list[int]) -> str:
        """Return the words of a sentence, separated by spaces. ``tokens`` have no ``</s>``."""
        line = " ".join(vocabulary.decode(tokens))
        return line if data.bpe_codes is None else join(line)

    # For each batch of B pairs, the statistics of BLEU of each pair, (B, 6). They are 0 for the
    # pairs of the other workers, so the sum over the workers has the statistics of all pairs.
    parts = [np.zeros((len(batch), 6)) for batch in batches]
    for number in range(workers.rank, len(parts), workers.count):
        pairs = [data.valid[int(row)] for row in batches[number]]
        # Targets in the store end with </s>, which is left out.
        references = [words(target[:-1].tolist()) for _, target in pairs]
        results = beam_search(ensemble, pad([source for source, _ in pairs]), GREEDY)
        hypotheses = []
        for n_best in results:
            hypotheses.append(words(n_best[0].tokens) if n_best else "")
        parts[number][:] = statistics_of(hypotheses, references)
    statistics = np.concatenate(parts)  # (pairs, 6)
    totals = workers.totals(statistics.ravel().tolist())
    summed = np.array(totals, np.int64)
    return bleu_of_statistics(summed.reshape(statistics.shape))
