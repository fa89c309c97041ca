"""Faults of real corpora, planted: pairs that cleaning drops, and characters that it repairs."""

from convs2s.mirror.sentences import SentencePairs

PLANTED = {"empty": 4, "too_long": 6, "ratio": 40, "long_word": 2}
"""Reason to drop -> the pairs that are planted for it in each corpus that has faults."""

ODD_CHARACTERS = {
    "NUL": "\0",
    "carriage return": "\r",
    "byte order mark": "\ufeff",
    "zero-width space": "\u200b",
    "line separator": "\u2028",
    "next line": "\x85",
    "no-break space": "\xa0",
    "ideographic space": "\u3000",
    "soft hyphen": "\xad",
    "separator of factors": " ||| ",
}
"""Each stands in a pair of its own, which cleaning keeps."""

_MOST_WORDS = 250  # of all tasks' limits
_LONG_WORD = "w" * 1100
_BYTE_ORDER_MARK = "\ufeff"


def with_faults(pairs: SentencePairs) -> SentencePairs:
    """Return pairs with faults among them; the text is theirs, and none of them is missing.

    The first line of the English side opens with a byte order mark, as a file of Windows does.
    """
    (source, target), *rest = pairs
    planted = _dropped(pairs) + _odd(pairs)
    step = len(rest) // (len(planted) + 1)
    result = [(_BYTE_ORDER_MARK + source, target)]
    for number, pair in enumerate(planted):
        result += [*rest[number * step : (number + 1) * step], pair]
    return result + rest[len(planted) * step :]


def _dropped(pairs: SentencePairs) -> SentencePairs:
    """Return pairs that cleaning drops, as many for each reason as ``PLANTED`` says."""
    source, target = pairs[0]
    empty = [("", target), (source, ""), ("", ""), (" \xa0 ", target)]
    many = _MOST_WORDS // 3  # every sentence has at least four words
    too_long = [_joined(pairs[n * many : (n + 1) * many]) for n in range(PLANTED["too_long"])]
    ratio = [(left, f"{right} {right} {right}") for left, right in pairs[: PLANTED["ratio"]]]
    long_word = [(f"{left} {_LONG_WORD}", f"{right} {_LONG_WORD}") for left, right in pairs[:2]]
    return empty + too_long + ratio + long_word


def _joined(pairs: SentencePairs) -> tuple[str, str]:
    source, target = (" ".join(side) for side in zip(*pairs, strict=True))
    return source, target


def _odd(pairs: SentencePairs) -> SentencePairs:
    """Return pairs with an odd character between the first two words of each side."""
    odd = zip(pairs, ODD_CHARACTERS.values(), strict=False)
    return [
        (_marked(left, character), _marked(right, character)) for (left, right), character in odd
    ]


def _marked(line: str, character: str) -> str:
    first, _, rest = line.partition(" ")
    return f"{first} {character}{rest}"
