"""Find the first sentence of a text by rules for the English of papers, which contains LaTeX."""

import re

_END = re.compile(
    r"""(?P<mark>[.!?])
        (?P<closing>['"”’)\]}]*)
        \s+
        (?=["'“‘(\[{]*[$\\A-Z0-9])""",
    re.VERBOSE,
)
"""A final mark with closing quotes, before a blank and what can begin a sentence."""

_OPENING_MARKS = "([{\"'“‘"
_INITIALS = re.compile(r"([A-Z]\.)*[A-Z]")

_ABBREVIATION = re.compile(
    r"""e\.g|i\.e|al|cf|vs|resp|approx|viz|ca|w\.r\.t|a\.k\.a|dr|prof|mr|mrs|ms|st|no|nos|fig|figs
    |eqs?|eqns?|secs?|sect|ch|chap|refs?|thms?|lem|def|prop|cor|tab|vol|pp|eds?|dept|univ""",
    re.VERBOSE | re.IGNORECASE,
)
"""Abbreviations without their last full stop, which does not end a sentence."""

_FIRST_WORD = re.compile(
    "We|The|This|These|In|Our|It|A|An|To|For|However|There|Here|That|Such|As|On|By|If|When|While"
)
"""Words that start a new sentence after initials, such as "A." or "U.S.".

Before any other word, initials do not end a sentence.
"""


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, with its words joined by single spaces.

    A sentence ends at ``.``, ``!`` or ``?`` and any closing quotes and brackets, if a blank and
    then a capital letter, a digit or LaTeX follow. It does not end after an abbreviation (e.g.,
    et al., Fig.) or an initial, nor within a formula between two ``$``. If no sentence ends before
    the end of the text, return the whole text.
    """
    text = " ".join(text.split())
    for end in _END.finditer(text):
        dollars_before = text.count("$", 0, end.start())
        # An odd ``$`` opens a formula only if another ``$`` closes it.
        in_formula = dollars_before % 2 == 1 and "$" in text[end.end() :]
        if not in_formula and not _is_abbreviated(text, end):
            return text[: end.end("closing")]
    return text


def _is_abbreviated(text: str, end: re.Match[str]) -> bool:
    """Return whether a match is the full stop of an abbreviation or an initial."""
    # Before a closing mark, even an abbreviation ends the sentence.
    if end["mark"] != "." or end["closing"]:
        return False
    _, _, word = text[: end.start()].rpartition(" ")
    word = word.lstrip(_OPENING_MARKS)
    if _ABBREVIATION.fullmatch(word):
        return True
    rest = text[end.end() :].lstrip(_OPENING_MARKS)
    following, _, _ = rest.partition(" ")
    starts_sentence = _FIRST_WORD.fullmatch(following.rstrip(","))
    return bool(_INITIALS.fullmatch(word)) and not starts_sentence
