"""The sentences of a line, by sentencex and the abbreviations of Moses."""

import re
from functools import cache

from sentencex import segment

from convs2s.text.moses import Tokenizer

_BLOCK = re.compile(r".{1,65536}(?: |$)|.{65536}")
"""Of a line up to a blank, as of open quotes sentencex's time grows with the square."""

_OPENING = "([{\"'“‘«"

_tokenizer = cache(Tokenizer)


def split_sentences(line: str, language: str) -> list[str]:
    """Return the sentences of a line of raw text; the line itself where it has no two.

    sentencex knows the marks and quotes of many languages and few abbreviations: it ends a sentence
    after the "M." of "M. Dupont". Here none ends after what Moses' tokenizer takes for an
    abbreviation in this language (en_title: English), and none, such as "1.", is without a letter.
    """
    code = language.partition("_")[0]
    sentences: list[list[str]] = []  # each in parts
    last_word = ""  # of the last sentence
    has_letter = False  # any in the last sentence
    # sentencex fails on some blanks that are no spaces, such as U+2028.
    for block in _BLOCK.findall(" ".join(line.split())):
        for part in segment(code, block):
            part_has_letter = any(map(str.isalpha, part))
            lacks_letters = bool(sentences) and not (has_letter and part_has_letter)
            word = last_word.rstrip().lstrip(_OPENING)
            ends_in_stop = word.endswith(".")
            is_short_form = ends_in_stop and _tokenizer(code).is_abbreviation(word[:-1], part)
            if not (lacks_letters or is_short_form):
                sentences.append([])
                last_word = ""
                has_letter = False
            sentences[-1].append(part)
            last_word += part
            last_word = last_word[last_word.rstrip().rfind(" ") + 1 :]
            has_letter = has_letter or part_has_letter
    if len(sentences) < 2:
        return [line]
    return ["".join(parts).strip() for parts in sentences]
