"""IWSLT'14's archive of TED talks, small and generated: text with its tags, sets in XML."""

from collections.abc import Iterator, Sequence

from convs2s.mirror.packing import packed_tgz, text
from convs2s.mirror.sentences import SentencePairs

_ARCHIVE = "dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz"
_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_LINES_OF_A_TALK = 40


def talks(training: SentencePairs, tests: SentencePairs) -> dict[str, bytes]:
    """Return the archive by its place.

    Args:
        training: (English, German) pairs that are said in talks.
        tests: those of all test sets, which are shared out.
    """
    members: dict[str, bytes] = {}
    for side, language in enumerate(("en", "de")):
        said = [pair[side] for pair in training]
        members[f"de-en/train.tags.de-en.{language}"] = text(_transcript(said, language))
        for number, name in enumerate(_SETS):
            lines = [pair[side] for pair in tests[number :: len(_SETS)]]
            members[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = text(_set(lines))
    return {_ARCHIVE: packed_tgz(members)}


def _transcript(lines: Sequence[str], language: str) -> Iterator[str]:
    """Yield lines, before each talk's what is said about it."""
    for start in range(0, len(lines), _LINES_OF_A_TALK):
        yield f"<url>http://talks.example/{language}/{start}</url>"
        yield "<keywords>talks</keywords>"
        yield f"<talkid>{start}</talkid>"
        yield f"<title>{lines[start]}</title>"
        yield f"<description>{lines[start]}</description>"
        yield from (f" {line} " for line in lines[start : start + _LINES_OF_A_TALK])


def _set(lines: Sequence[str]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<mteval><refset setid="talks">'
    yield '<doc docid="1" genre="lectures">'
    yield "<talkid>1</talkid>"
    yield from (f'<seg id="{number}"> {line} </seg>' for number, line in enumerate(lines, start=1))
    yield "</doc>"
    yield "</refset></mteval>"
