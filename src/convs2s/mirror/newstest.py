"""Test sets as WMT publishes them: sgm files that are not quite XML, of newspapers' typography."""

from collections.abc import Iterator

from convs2s.mirror.packing import text
from convs2s.mirror.sentences import SentencePairs

_DOCUMENT_SEGMENTS = 20


def as_news(pairs: SentencePairs) -> SentencePairs:
    """Return pairs, some of which have quotes, dashes and blanks as newspapers set them."""
    return [
        (_typeset(number, left), _typeset(number, right))
        for number, (left, right) in enumerate(pairs)
    ]


def _typeset(number: int, line: str) -> str:
    match number % 25:
        case 0:
            return f"“{line}”"
        case 1:
            return line.replace("'", "’")
        case 2:
            return f"{line} – Anna & Paul"
        case 3:
            return line.replace(" ", " \u200b", 1)
        case 4:
            return line.replace(" ", "\xa0", 1)
        case _:
            return line


def sgm_members(
    stem: str, pair: str, languages: tuple[str, str], pairs: SentencePairs
) -> dict[str, bytes]:
    """Return both sides of a test set as files of an archive.

    Args:
        stem: what the names begin with, such as ``dev/newstest2015``.
        pair: what is said of the languages after it: ``-ende``, or nothing.
        languages: of the source side and the target side.
        pairs: the segments of both.
    """
    source, target = (list(side) for side in zip(*pairs, strict=True))
    return {
        f"{stem}{pair}-src.{languages[0]}.sgm": text(_sgm(source, stem, "srcset", languages[0])),
        f"{stem}{pair}-ref.{languages[1]}.sgm": text(_sgm(target, stem, "refset", languages[1])),
    }


def _sgm(segments: list[str], stem: str, kind: str, language: str) -> Iterator[str]:
    """Yield the lines of a file; a document's first segment is a headline, others are in a <p>."""
    yield f'<{kind} setid="{stem.rpartition("/")[2]}" srclang="any" trglang="{language}">'
    for number, segment in enumerate(segments):
        place = number % _DOCUMENT_SEGMENTS
        if place == 0:
            document = number // _DOCUMENT_SEGMENTS + 1
            yield f'<doc sysid="ref" docid="{document}" genre="news" origlang="en">'
        yield "<hl>" if place == 0 else "<p>"
        yield f'<seg id="{place + 1}">{_escaped(number, segment)}</seg>'
        yield "</hl>" if place == 0 else "</p>"
        if place == _DOCUMENT_SEGMENTS - 1 or number == len(segments) - 1:
            yield "</doc>"
    yield f"</{kind}>"


def _escaped(number: int, segment: str) -> str:
    """Write ``&`` as an entity, but for the first, which stays as in newstest2014."""
    return segment if number == 2 else segment.replace("&", "&amp;")
