"""Moses' n-best lists: ``sentence ||| text ||| features ||| score``, one hypothesis a line.

Sentences count from 0 and come in their order. Features are names that end in ``=``, each followed
by its numbers. What Moses may write after the score, such as an alignment, is kept as it is.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from convs2s.errors import UserError

_SENTENCE = re.compile("[0-9]{1,18}")
_EXPECTED = "expected 'sentence ||| text ||| features ||| score', as Moses writes n-best lists"

LIKELIHOOD = "LogLikelihood"
LENGTH = "Length"
"""Features of the lists that are written here; the length counts the model's tokens and </s>."""

MODEL = "Model"  # the feature that rescoring adds where no other name is asked for


@dataclass(frozen=True)
class ListedHypothesis:
    """One line of a list: the fields as they stand."""

    sentence: int  # number of its source line from 0
    text: str  # has ||| as three &#124;, and raw text each |
    features: str
    score: float  # more is better
    rest: tuple[str, ...] = ()  # the fields after the score
    place: str = ""  # file and line, for messages

    def line(self) -> str:
        """Return the line without its line feed; 9 digits tell all fp32 numbers apart."""
        score = f"{self.score:.9g}"
        return " ||| ".join([str(self.sentence), self.text, self.features, score, *self.rest])

    def feature(self, name: str) -> float:
        """Return the number of a feature; a UserError says that there is none."""
        words = self.features.split(" ")
        try:
            return _number(words[words.index(f"{name}=") + 1])
        except (ValueError, IndexError):
            raise UserError(
                f"{self.place}: expected a feature '{name}= NUMBER', found {self.features[:60]!r}; "
                "convs2s score-pairs --n-best adds one"
            ) from None

    def with_feature(
        self,
        name: str,
        value: float,
    ) -> "ListedHypothesis":
        """Return the hypothesis with one more feature; a UserError refuses a name that it has."""
        if f"{name}=" in self.features.split(" "):
            raise UserError(f"{self.place}: has a feature '{name}=' already: choose another name")
        return replace(self, features=f"{self.features} {name}= {value:.9g}".lstrip(" "))


def n_best_line(
    line: int,
    text: str,
    score: float,
    length: int,
    length_penalty: float,
) -> str:
    """Return the line of a translation; ``line`` counts from 1, and ``length`` counts ``</s>``.

    Only a separator is escaped: a bar may be a word, and readers of words take them as they are.
    """
    likelihood = score * math.pow(length, length_penalty)
    listed = ListedHypothesis(
        sentence=line - 1,
        text=text.replace("|||", escaped("|||")),
        features=f"{LIKELIHOOD}= {likelihood:.9g} {LENGTH}= {length}",
        score=score,
    )
    return listed.line()


Group = Sequence[ListedHypothesis]  # the hypotheses of one sentence
Criterion = Callable[[ListedHypothesis], float]


def read_n_best(lines: Iterable[str], name: str) -> Iterator[Group]:
    """Yield the hypotheses of each sentence that has any, one sentence in memory at a time.

    A UserError (``name``, the line) refuses other formats, sentences out of order, and no lines.
    """
    group: list[ListedHypothesis] = []
    for number, line in enumerate(lines, start=1):
        listed = _parse(line, f"{name}:{number}")
        if group and listed.sentence != group[0].sentence:
            yield group
            last = group[0].sentence
            if listed.sentence < last:
                raise UserError(
                    f"{listed.place}: expected sentence {last} or a later one, found "
                    f"{listed.sentence}: sort the list by its sentences"
                )
            group = []
        group.append(listed)
    if not group:
        raise UserError(f"{name}: is empty: give an n-best list with a hypothesis of each sentence")
    yield group


def every_sentence(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield the groups as they come; a UserError refuses lists that leave a sentence out."""
    for expected, group in enumerate(groups):
        if group[0].sentence != expected:
            raise UserError(
                f"{group[0].place}: expected a hypothesis of sentence {expected}, found one of "
                f"{group[0].sentence}: every sentence needs one"
            )
        yield group


def average_with(feature: str) -> Criterion:
    """Return the even average of a list's own score and a feature, each on the scale it is on.

    Sutskever et al. (2014, section 3.2) average both systems' scores and state no scale.
    """
    return lambda hypothesis: (hypothesis.score + hypothesis.feature(feature)) / 2


def reranked(group: Group, criterion: Criterion) -> list[ListedHypothesis]:
    """Return the hypotheses with the criterion as their score, the best first."""
    scored = [replace(hypothesis, score=criterion(hypothesis)) for hypothesis in group]
    return sorted(scored, key=lambda hypothesis: -hypothesis.score)


def escaped(text: str) -> str:
    """Write the bar as Moses does, so that none is taken for a separator."""
    return text.replace("|", "&#124;")


def unescaped(text: str) -> str:
    """Take back what ``escaped`` did."""
    return text.replace("&#124;", "|")


def _parse(line: str, place: str) -> ListedHypothesis:
    fields = [field.strip(" ") for field in line.split("|||")]
    if len(fields) < 4:
        raise UserError(f"{place}: {_EXPECTED}; these are {len(fields)} of the 4 fields")
    sentence, text, features, score, *rest = fields
    if not _SENTENCE.fullmatch(sentence):
        raise UserError(f"{place}: {_EXPECTED}; the sentence is no number: {sentence[:60]!r}")
    try:
        number = _number(score)
    except ValueError:
        raise UserError(f"{place}: {_EXPECTED}; the score is no number: {score[:60]!r}") from None
    return ListedHypothesis(
        sentence=int(sentence),
        text=text,
        features=features,
        score=number,
        rest=tuple(rest),
        place=place,
    )


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
