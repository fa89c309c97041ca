"""What is written for a translated line: text, JSON, or the Moses decoder's n-best list."""

import json
import math
from dataclasses import dataclass

from convs2s.decoding.translate import Translation
from convs2s.scoring.n_best import LENGTH, LIKELIHOOD, ListedHypothesis, escaped


@dataclass(frozen=True)
class OutputFormat:
    """How translations are written.

    Attributes:
        json: JSON lines rather than text.
        n_best: how many of the best hypotheses of each line; None: the best alone, without a list.
        length_penalty: the search's, which the n-best list's log-likelihoods follow from.
    """

    json: bool
    n_best: int | None
    length_penalty: float

    def lines(self, translation: Translation) -> str:
        """Return all lines of one translation, each ended by a line feed."""
        if self.json:
            return json.dumps(translation.as_json(), ensure_ascii=False) + "\n"
        if self.n_best is None:
            return translation.text + "\n"
        return "".join(self._moses(one) for one in translation.n_best)

    def _moses(self, one: Translation) -> str:
        return n_best_line(one, one.text, self.length_penalty) + "\n"


def n_best_line(one: Translation, text: str, length_penalty: float) -> str:
    """Return the line of a Moses n-best list for one of several translations of a line.

    Args:
        one: the translation.
        text: in what form it stands in the list.
        length_penalty: the search's.
    """
    length = len(one.tokens) + 1  # with </s>
    likelihood = one.score * math.pow(length, length_penalty)
    features = f"{LIKELIHOOD}= {likelihood:.9g} {LENGTH}= {length}"
    return ListedHypothesis(one.line - 1, escaped(text), features, one.score).line()
