"""Find the text of HTML, in pages and in fragments. Markup is kept byte for byte."""

import re

from convs2s.documents.passages import (
    ENTITY,
    Passage,
    TextDocument,
    inline_items,
)

# Elements within a sentence. All others, such as p, br and td, end it.
_INLINE = """a abbr acronym b bdi bdo big cite data del dfn em font i img input ins mark q s small
    span strike strong sub sup time u wbr"""
# Those without an end tag.
_EMPTY = "img|input|wbr"
# Elements whose content is no text, or not in a language.
_UNTRANSLATED = """code|iframe|kbd|math|noscript|pre|samp|script|style|svg|template|textarea|tt|var|
    xmp"""

_MARKUP = re.compile(
    rf"""
      <!--(?:(?!-->).)*+(?:-->)?  # a comment
    # Code within a sentence.
    | <(?P<code>code|kbd|samp|tt|var)\b[^<>"']*+>(?P<fixed>[^<]*+)</(?P=code)\s*+>
    # What is not translated, up to its end tag, which is a match by itself.
    | <(?P<untranslated>{_UNTRANSLATED})\b(?:(?!</(?P=untranslated)\b).)*+
    # A tag, a declaration or an instruction. Its attributes may have > in quotes.
    | <(?:(?P<closes>/)|(?P<opens>(?!(?:{_EMPTY})\b)(?=[a-z]))|[!?]|(?=[a-z]))
      (?P<name>[a-z]\w*+)?(?:[^"'>]|"[^"]*+"?|'[^']*+'?)*+>?
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""Everything in HTML that is not text.

Markup without an end is taken to extend to the end of the text. Otherwise, the time would grow with
the square of the length.
"""

_WRITTEN = {ord("&"): "&amp;", ord("<"): "&lt;"}


def read_html(content: str) -> TextDocument:
    """Return the passages of HTML: the texts between two tags of elements that end a sentence.

    Code within a sentence is part of it, but not translated. The content of scripts, styles,
    pre and the like, comments and attributes are kept.
    """
    items = list[str | Passage]()
    inline = frozenset(_INLINE.split())
    end = 0
    for markup in _MARKUP.finditer(content):
        name = (markup["name"] or "").lower()
        if name in inline or markup["fixed"] is not None:
            continue
        items.append(_passage(content[end : markup.start()]))
        items.append(markup[0])
        end = markup.end()
    items.append(_passage(content[end:]))
    return TextDocument(items)


def _passage(raw: str) -> Passage:
    return Passage(inline_items(raw, _MARKUP, ENTITY, _WRITTEN))
