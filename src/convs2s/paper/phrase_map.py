"""Where phrases lie by the states of an encoder: what is written of them, and read again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from convs2s.errors import failures_of_file


@dataclass(frozen=True)
class PhraseState:
    """A phrase on the map.

    Attributes:
        phrase: as it was given.
        meaning: the number of its meaning, from 0.
        tokens: what the model reads of it.
        unknown: how many of them the model does not know.
        x, y: the two main components of its state.
    """

    phrase: str
    meaning: int
    tokens: Sequence[str]
    unknown: int
    x: float
    y: float


@dataclass(frozen=True)
class PhraseMap:
    """The phrases of one name, read by one model.

    Attributes:
        task, model, run: whose encoder read them.
        scale: of the run.
        stand_in: what its data is, where it is not the paper's.
        name: of the phrases.
        title: what they differ in.
        source: where they come from.
        explained: the share of the states' variance that each of the two components has.
        apart: the share that lies between the meanings, in all dimensions.
        states: of the phrases, in their order.
    """

    task: str
    model: str
    run: str
    scale: str
    stand_in: str | None
    name: str
    title: str
    source: str
    explained: tuple[float, float]
    apart: float
    states: Sequence[PhraseState]


def read_phrase_map(path: Path) -> PhraseMap:
    """Read a map; its manifest is for people.

    Raises:
        UserError: the file is no map.
    """
    with failures_of_file(str(path), "no map of phrases; delete it and ask for it again"):
        return TypeAdapter(PhraseMap).validate_json(path.read_bytes())
