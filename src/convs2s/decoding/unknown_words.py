"""Unknown-word replacement: what stands for ``<unk>`` in an output.

Paper, section 4.2: the source word with the highest attention is looked up in the alignment
dictionary; a word that is not in it is copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from convs2s.data.vocabulary import SPECIAL_TOKENS, UNKNOWN


@dataclass(frozen=True)
class Replacement:
    """One replaced ``<unk>``.

    Attributes:
        position: of the token in the output, from 0.
        source_position: of the token in the source, from 0.
        source_word: the source token there.
        word: what stands in the output now.
        by: ``dictionary`` or ``copied``.
    """

    position: int
    source_position: int
    source_word: str
    word: str
    by: Literal["dictionary", "copied"]


def replace_unknown(
    tokens: Sequence[str],
    alignment: Sequence[int],
    source_tokens: Sequence[str],
    dictionary: Mapping[str, str],
) -> tuple[list[str], list[Replacement]]:
    """Replace each ``<unk>`` of an output.

    Args:
        tokens: the output's tokens.
        alignment: for each of them the source position with the highest attention among real words.
        source_tokens: the source as text, before unknown words became ``<unk>``.
        dictionary: source word -> target word.

    Returns:
        The output with the replacements made, and the replacements.
    """
    replaced = list(tokens)
    replacements: list[Replacement] = []
    for position, token in enumerate(tokens):
        if token == SPECIAL_TOKENS[UNKNOWN]:
            source_position = alignment[position]
            source_word = source_tokens[source_position]
            known = dictionary.get(source_word)
            word = source_word if known is None else known
            replaced[position] = word
            by: Literal["dictionary", "copied"] = "copied" if known is None else "dictionary"
            replacements.append(Replacement(position, source_position, source_word, word, by))
    return replaced, replacements
