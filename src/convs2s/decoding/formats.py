"""What is written for a translated line: text, JSON, or the Moses decoder's n-best list."""

import json
import math
from dataclasses import dataclass

from convs2s.decoding.translate import Translation


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
        """Return ``line ||| text ||| LogLikelihood= l ||| score``; lines count from 0.

        As in Moses' own text a bar is ``&#124;``: none is taken for the separator.
        """
        length = len(one.pieces) + 1  # with </s>
        likelihood = one.score * math.pow(length, self.length_penalty)
        text = one.text.replace("|", "&#124;")
        return (
            f"{one.line - 1} ||| {text} ||| LogLikelihood= {likelihood:.6f} ||| {one.score:.6f}\n"
        )
