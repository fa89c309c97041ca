"""What sacrebleu makes of the statistics that scores keep of each sentence."""

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from convs2s.scoring.bleu import Statistics


def bleu_of(statistics: Statistics) -> float:
    """Return the tokenized BLEU of sentences, of shape (lines, 6); some may be drawn repeatedly."""
    words, reference, *matches = statistics.sum(axis=0).tolist()
    orders = len(matches)
    totals = [
        int(np.maximum(statistics[:, 0] - before, 0).sum()) for before in range(orders)
    ]
    score = BLEU.compute_bleu(matches, totals, words, reference, max_ngram_order=orders)
    return float(score.score)
