"""Read and write Moses' n-best lists.

Each line is one hypothesis: ``sentence ||| text ||| features ||| score``. Sentences are numbered
from 0, and the lines are sorted by them. Each feature is a name that ends in ``=``, followed by its
numbers. Moses may write further fields after the score, such as an alignment. They are kept
unchanged.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from convs2s.errors import UserError

_SENTENCE = re.compile("[0-9]{1,18}")
_EXPECTED = (
    "expected 'sentence ||| text ||| features ||| score', as Moses writes n-best lists"
)

LIKELIHOOD = "LogLikelihood"
LENGTH = "Length"
"""Features of the lists that `n_best_line` writes. The length counts the model's tokens and
``</s>``."""

MODEL = "Model"  # the default name of the feature that rescoring adds


@dataclass(frozen=True)
class ListedHypothesis:
    """One line of a list, with its fields as they are in the file."""

    sentence: int  # number of its source line, from 0
    text: str  # the bars of each |||, and in raw text all bars, are written as &#124;
    features: str
    score: float  # more is better
    rest: tuple[str, ...] = ()  # the fields after the score
    location: str = ""  # file and line, for messages

    def line(self) -> str:
        """Return the line without its line feed."""
        score = f"{self.score:.9g}"  # 9 digits tell all fp32 numbers apart
        return " ||| ".join(
            [str(self.sentence), self.text, self.features, score, *self.rest]
        )

    def feature(self, name: str) -> float:
        """Return the value of a feature.

        Raises:
            UserError: there is no such feature, or its value is not a number.
        """
        words = self.features.split(" ")
        try:
            return _number(words[words.index(f"{name}=") + 1])
        except (ValueError, IndexError):
            raise UserError(
                f"{self.location}: expected a feature '{name}= NUMBER', found "
                f"{self.features[:60]!r}; `convs2s score-pairs --n-best` adds one"
            ) from None

    def with_feature(
        self,
        name: str,
        value: float,
    ) -> "ListedHypothesis":
        """Return the hypothesis with one more feature.

        Raises:
            UserError: it already has a feature of this name.
        """
        if f"{name}=" in self.features.split(" "):
            raise UserError(
                f"{self.location}: has a feature '{name}=' already; choose another name"
            )
        return replace(
            self, features=f"{self.features} {name}= {value:.9g}".lstrip(" ")
        )


def n_best_line(
    line: int,
    text: str,
    score: float,
    length: int,
    length_penalty: float,
) -> str:
    """Return the line of a list for a translation, without its line feed.

    ``line`` is the number of the source line, from 1. ``length`` is the number of tokens, ``</s>``
    included. In the text, only the separator ``|||`` is escaped here. A single bar may be a word,
    and readers of lists in words do not unescape it.
    """
    likelihood = score * math.pow(length, length_penalty)
    hypothesis = ListedHypothesis(
        sentence=line - 1,
        text=text.replace("|||", escaped("|||")),
        features=f"{LIKELIHOOD}= {likelihood:.9g} {LENGTH}= {length}",
        score=score,
    )
    return hypothesis.line()


Group = Sequence[ListedHypothesis]  # the hypotheses of one sentence
Criterion = Callable[[ListedHypothesis], float]


def read_n_best(lines: Iterable[str], name: str) -> Iterator[Group]:
    """Yield the hypotheses of each sentence in ascending order; skip sentences without hypotheses.

    Only the hypotheses of one sentence are in memory at a time.

    Raises:
        UserError: a line has another format, the sentences are out of order, or there are no lines.
            The message begins with ``name`` and the line.
    """
    group: list[ListedHypothesis] = []
    for number, line in enumerate(lines, start=1):
        hypothesis = _parse(line, f"{name}:{number}")
        if group and hypothesis.sentence != group[0].sentence:
            yield group
            last = group[0].sentence
            if hypothesis.sentence < last:
                raise UserError(
                    f"{hypothesis.location}: expected sentence {last} or a later one, found "
                    f"{hypothesis.sentence}; sort the list by its sentences"
                )
            group = []
        group.append(hypothesis)
    if not group:
        raise UserError(
            f"{name}: is empty; give an n-best list with a hypothesis of each sentence"
        )
    yield group


def every_sentence(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield the groups unchanged, and check that no sentence is left out.

    The check is lazy: a missing sentence is found when the next sentence of the list is reached.
    Sentences that are missing at the end are not found.

    Raises:
        UserError: a sentence is missing.
    """
    for expected, group in enumerate(groups):
        if group[0].sentence != expected:
            raise UserError(
                f"{group[0].location}: expected a hypothesis of sentence {expected}, found one of "
                f"sentence {group[0].sentence}; every sentence needs a hypothesis"
            )
        yield group


def average_with(feature: str) -> Criterion:
    """Return a criterion: the mean of the list's own score and a feature.

    Neither of the two is rescaled. Sutskever et al. (2014, section 3.2) average the scores of both
    systems, and do not mention a scale.
    """
    return lambda hypothesis: (hypothesis.score + hypothesis.feature(feature)) / 2


def reranked(group: Group, criterion: Criterion) -> list[ListedHypothesis]:
    """Return the hypotheses with the criterion as their score, the best first.

    Equal hypotheses stay in their order.
    """
    scored = [replace(hypothesis, score=criterion(hypothesis)) for hypothesis in group]
    return sorted(scored, key=lambda hypothesis: -hypothesis.score)


def escaped(text: str) -> str:
    """Return a text with each bar escaped as Moses does, so that none is taken for a separator."""
    return text.replace("|", "&#124;")


def unescaped(text: str) -> str:
    """Return the text from which `escaped` made ``text``."""
    return text.replace("&#124;", "|")


def _parse(line: str, location: str) -> ListedHypothesis:
    fields = [field.strip(" ") for field in line.split("|||")]
    if len(fields) < 4:
        raise UserError(
            f"{location}: {_EXPECTED}; found only {len(fields)} of the 4 fields"
        )
    sentence, text, features, score, *rest = fields
    if not _SENTENCE.fullmatch(sentence):
        raise UserError(
            f"{location}: {_EXPECTED}; the sentence is not a number: {sentence[:60]!r}"
        )
    try:
        number = _number(score)
    except ValueError:
        raise UserError(
            f"{location}: {_EXPECTED}; the score is not a number: {score[:60]!r}"
        ) from None
    return ListedHypothesis(
        sentence=int(sentence),
        text=text,
        features=features,
        score=number,
        rest=tuple(rest),
        location=location,
    )


def _number(text: str) -> float:
    """Return a finite number; raise a ValueError for any other text."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
