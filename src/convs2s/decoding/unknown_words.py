"""Unknown-word replacement: what stands for ``<unk>`` in an output.

Paper, section 4.2: the source word with the highest attention is looked up in the alignment
dictionary; a word that is not in it is copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from convs2s.data.vocabulary import SPECIAL_SYMBOLS, UNKNOWN


@dataclass(frozen=True)
class Replacement:
    """One replaced ``<unk>``.

    Attributes:
        position: of the piece in the output, from 0.
        source_position: of the piece in the source, from 0.
        source_word: the source piece there.
        word: what stands in the output now.
        by: ``dictionary`` or ``copied``.
    """

    position: int
    source_position: int
    source_word: str
    word: str
    by: Literal["dictionary", "copied"]


def replace_unknown(
    pieces: Sequence[str],
    peaks: Sequence[int],
    source_pieces: Sequence[str],
    dictionary: Mapping[str, str],
) -> tuple[list[str], list[Replacement]]:
    """Replace each ``<unk>`` of an output.

    Args:
        pieces: the output's symbols.
        peaks: for each of them the source position with the highest attention among real words.
        source_pieces: the source as text, before unknown words became ``<unk>``.
        dictionary: source word -> target word.

    Returns:
        The output with the replacements made, and the replacements.
    """
    replaced = list(pieces)
    replacements: list[Replacement] = []
    for position, piece in enumerate(pieces):
        if piece == SPECIAL_SYMBOLS[UNKNOWN]:
            source_position = peaks[position]
            source_word = source_pieces[source_position]
            known = dictionary.get(source_word)
            word = source_word if known is None else known
            replaced[position] = word
            by: Literal["dictionary", "copied"] = "copied" if known is None else "dictionary"
            replacements.append(Replacement(position, source_position, source_word, word, by))
    return replaced, replacements
