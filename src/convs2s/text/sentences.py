"""The first sentence of a text, by rule: English of papers, with abbreviations and LaTeX."""

import re

_END = re.compile(
    r"""(?P<mark>[.!?])
        (?P<closing>['"”’)\]}]*)
        \s+
        (?=["'“‘(\[{]*[$\\A-Z0-9])""",
    re.VERBOSE,
)
_OPENING = "([{\"'“‘"
_INITIALS = re.compile(r"([A-Z]\.)*[A-Z]")

_ABBREVIATION = re.compile(
    r"""e\.g|i\.e|al|cf|vs|resp|approx|viz|ca|w\.r\.t|a\.k\.a|dr|prof|mr|mrs|ms|st|no|nos|fig|figs
    |eqs?|eqns?|secs?|sect|ch|chap|refs?|thms?|lem|def|prop|cor|tab|vol|pp|eds?|dept|univ""",
    re.VERBOSE | re.IGNORECASE,
)
"""A word before a full stop that ends no sentence."""

_OPENER = re.compile(
    "We|The|This|These|In|Our|It|A|An|To|For|However|There|Here|That|Such|As|On|By|If|When|While"
)
"""A word that starts a sentence even after a single letter, which is otherwise an initial."""


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, its blanks single spaces; all of it where none ends.

    A sentence ends with ``.``, ``!`` or ``?`` before a blank and a capital, a digit or LaTeX. It
    does not end after an abbreviation (e.g., et al., Fig.) or an initial, nor within a formula,
    which a second ``$`` closes.
    """
    text = " ".join(text.split())
    for end in _END.finditer(text):
        dollars_before = text.count("$", 0, end.start())
        in_formula = dollars_before % 2 == 1 and "$" in text[end.end() :]
        if not in_formula and not _is_abbreviated(text, end):
            return text[: end.end("closing")]
    return text


def _is_abbreviated(text: str, end: re.Match[str]) -> bool:
    """Tell a full stop that belongs to the word before it."""
    if end["mark"] != "." or end["closing"]:
        return False
    _, _, word = text[: end.start()].rpartition(" ")
    word = word.lstrip(_OPENING)
    if _ABBREVIATION.fullmatch(word):
        return True
    rest = text[end.end() :].lstrip(_OPENING)
    following, _, _ = rest.partition(" ")
    return bool(_INITIALS.fullmatch(word)) and not _OPENER.fullmatch(following.rstrip(","))
