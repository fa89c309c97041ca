"""Split a line into sentences with the library sentencex and lists of abbreviations."""

import re
from collections.abc import Iterator
from functools import cache

from sentencex import segment

from convs2s.text.abbreviations import is_further_abbreviation
from convs2s.text.moses import Tokenizer

_BLOCK = re.compile(r".{1,65536}(?: |$)|.{65536}")
"""A block of a line, which ends at a space or after 65,536 characters.

Lines are split in blocks because the time of sentencex grows with the square of the number of
opening quotes.
"""

_LIST_NUMBER = re.compile(r"[(\[]?\d{1,3}(\.\d{1,3})*[.)\]]+")
"""The number of an item of a list, such as "2." or "2.1." or "(2)"."""

_SENTENCE_END = re.compile(r"[^\W\d_][.!?…]+[\"'”’»)\]]*$")
"""The end of a sentence's last word: a letter, the final marks, and closing quotes and brackets."""

_SHORT_PARTS = re.compile(r"[^\W\d_]{1,2}(\.[^\W\d_]{1,3})+")
"""An abbreviation of several words without its last full stop, such as "s.r.o" or "p.ex"."""

_SHORT_PART = re.compile(r"\W*[^\W\d_]{1,2}\.")
"""The beginning of such an abbreviation, after which sentencex ends a sentence: "a." of "a.C."."""

# sentencex ends a sentence within "n.º 5".
_ORDINAL_SIGNS = ("º", "ª")

# "at 5 p.m." often ends a sentence.
_TIMES = frozenset({"a.m", "p.m"})


class _Abbreviations:
    """Tells the full stops of abbreviations from those of sentences in a language."""

    def __init__(self, language: str) -> None:
        self._language = language
        # Hyphenated words stay whole, because some are abbreviations, such as "d-na" in Romanian.
        self._tokenizer = Tokenizer(language, aggressive=False)

    def ends(self, word: str, following: str) -> bool:
        """Return whether the full stop at the end of a word is that of an abbreviation.

        ``word`` has no blanks. As in the tokenizer, only its part after the last apostrophe,
        bracket or quotation mark counts: the "art." of "l'art.".
        """
        if not word.endswith(".") or len(word) == 1:
            return False
        prefix = word[:-1]
        # Most words have nothing to split, and this check is much faster than the tokenizer.
        if not prefix.isalnum():
            prefix = self._tokenizer(prefix).split(" ")[-1]
        is_of_short_parts = (
            _SHORT_PARTS.fullmatch(prefix) is not None
            and prefix.islower()
            and prefix not in _TIMES
        )
        return (
            is_of_short_parts
            or self._tokenizer.is_abbreviation(prefix, following)
            or is_further_abbreviation(self._language, prefix, following)
        )


# One object for each language.
_abbreviations = cache(_Abbreviations)


def _parts(block: str, language: str) -> Iterator[str]:
    """Yield the sentences of sentencex, but the number of a list's item as a part of its own.

    In some languages, sentencex takes the "2." of "He sees it. 2. She" for an ordinal number, and
    ends the first sentence after it.
    """
    for part in segment(language, block):
        sentence, _, number = part.rstrip().rpartition(" ")
        _, _, last_word = sentence.rpartition(" ")
        is_item = _LIST_NUMBER.fullmatch(number) and _SENTENCE_END.search(last_word)
        if is_item and not _abbreviations(language).ends(last_word, number):
            # The space after the sentence belongs to it.
            yield part[: len(sentence) + 1]
            yield part[len(sentence) + 1 :]
        else:
            yield part


def split_sentences(line: str, language: str) -> list[str]:
    """Return the sentences of a line of raw text.

    sentencex knows the punctuation and the quotes of many languages, but few abbreviations: it ends
    a sentence after the "M." of "M. Dupont". Two of its sentences are therefore joined if the first
    ends in an abbreviation, or if one of them has no letter. The number of a list's item, such as
    "2.", is joined to the sentence after it. If the result is a single sentence, the line is
    returned unchanged.

    Only the part of ``language`` before an underscore counts: en_title is English.
    """
    code = language.partition("_")[0]
    abbreviations = _abbreviations(code)
    # Each sentence is a list of its parts.
    sentences: list[list[str]] = []
    # The last word of the last sentence, and whether the last sentence has a letter.
    last_word = ""
    has_letter = False
    # Blanks are replaced by spaces, because sentencex fails on some other blanks, such as U+2028.
    for block in _BLOCK.findall(" ".join(line.split())):
        for part in _parts(block, code):
            part_has_letter = any(map(str.isalpha, part))
            is_number = _LIST_NUMBER.fullmatch(part.strip()) is not None
            can_start = part_has_letter or is_number
            is_ordinal_sign = part.startswith(_ORDINAL_SIGNS)
            follows_short_part = _SHORT_PART.fullmatch(last_word) is not None
            goes_on = is_ordinal_sign or follows_short_part
            is_apart = has_letter and can_start and not goes_on
            if not sentences or (
                is_apart and not abbreviations.ends(last_word.rstrip(), part)
            ):
                # The part begins a new sentence.
                sentences.append([])
                last_word = ""
                has_letter = False
            sentences[-1].append(part)
            # The last word may extend over the end of a part.
            last_word += part
            last_word = last_word[last_word.rstrip().rfind(" ") + 1 :]
            has_letter = has_letter or part_has_letter
    if len(sentences) > 1 and not has_letter:
        # The line ends in the number of an item that does not follow.
        number = sentences.pop()
        sentences[-1] += number
    if len(sentences) < 2:
        return [line]
    return ["".join(parts).strip() for parts in sentences]
