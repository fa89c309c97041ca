"""Split a line into sentences with the library sentencex and the abbreviations of Moses."""

import re
from functools import cache

from sentencex import segment

from convs2s.text.moses import Tokenizer

_BLOCK = re.compile(r".{1,65536}(?: |$)|.{65536}")
"""A block of a line, which ends at a space or after 65,536 characters.

Lines are split in blocks because the time of sentencex grows with the square of the number of
opening quotes.
"""

_OPENING_MARKS = "([{\"'“‘«"

_tokenizer = cache(Tokenizer)


def split_sentences(line: str, language: str) -> list[str]:
    """Return the sentences of a line of raw text.

    sentencex knows the punctuation and the quotes of many languages, but few abbreviations: it ends
    a sentence after the "M." of "M. Dupont". Two of its sentences are therefore joined if the first
    ends in an abbreviation according to Moses' tokenizer for the language, or if one of them has no
    letter, such as "1.". If the result is a single sentence, the line is returned unchanged.

    Of ``language``, the part before an underscore counts: en_title is English.
    """
    code = language.partition("_")[0]
    is_abbreviation = _tokenizer(code).is_abbreviation
    # Each sentence is a list of its parts.
    sentences: list[list[str]] = []
    # The last word of the last sentence, and whether the last sentence has a letter.
    last_word = ""
    has_letter = False
    # Blanks are replaced by spaces, because sentencex fails on some other blanks, such as U+2028.
    for block in _BLOCK.findall(" ".join(line.split())):
        for part in segment(code, block):
            part_has_letter = any(map(str.isalpha, part))
            lacks_letters = bool(sentences) and not (has_letter and part_has_letter)
            word = last_word.rstrip().lstrip(_OPENING_MARKS)
            is_short_form = word.endswith(".") and is_abbreviation(word[:-1], part)
            if not (lacks_letters or is_short_form):
                # The part begins a new sentence.
                sentences.append([])
                last_word = ""
                has_letter = False
            sentences[-1].append(part)
            # The last word may extend over the end of a part.
            last_word += part
            last_word = last_word[last_word.rstrip().rfind(" ") + 1 :]
            has_letter = has_letter or part_has_letter
    if len(sentences) < 2:
        return [line]
    return ["".join(parts).strip() for parts in sentences]
