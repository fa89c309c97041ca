"""Find the text to translate in Markdown. All else, such as code, is kept byte for byte."""

import re
from collections.abc import Iterator
from itertools import pairwise

from markdown_it import MarkdownIt

from convs2s.documents.passages import Passage, TextDocument, inline_items

_FRONT_MATTER = re.compile(
    r"(---|\+\+\+)[ \t]*\r?\n.*?\n(?:\1|\.\.\.)[ \t]*(?:\r?\n|$)", re.DOTALL
)
_LINE_END = re.compile(r"\r\n?|\n")  # the same ones as the parser's

_LINK_END = r"""\]\((?:<[^<>\n]*>|(?:[^()\s\\]|\\.|\([^()\s]*\))*)
    (?:\s+(?:"[^"]*"|'[^']*'))?\s*\) | \]\[[^\[\]]*\]"""

_MARKUP = re.compile(
    rf"""(?<!\\)(?:
      # Code, or an address.
      (?:(?<!`)(?P<ticks>`+)(?!`) | <?(?=https?://|www\.))
      (?P<fixed>(?(ticks)
          (?:(?!(?<!`)(?P=ticks)(?!`)).){{1,4096}}
        | [^\s<>()\[\]]*[^\s<>()\[\].,;:!?"'*_]
      ))
      (?(ticks)(?P=ticks)|>?)
    | <!--(?:(?!-->).)*(?:-->)? | </?[a-z][^<>]*>
    | !\[[^\[\]]*(?:{_LINK_END})  # an image
    | \[\^[^\[\]\s]+\]:?  # a footnote
    | \[[ x]\](?=\s)  # a task in a list
    | (?P<opens>\[)(?=(?:[^\[\]]|\[[^\[\]]*\]){{0,1000}}\][(\[])
    | (?P<closes>{_LINK_END})
    # Emphasis, unless it is a sign between blanks or within a word.
    | (?P<toggles>(?<!\s)\*\*?|\*\*?(?!\s)|~~|(?<!\w)__?(?=[^\s_])|(?<=[^\s_])__?(?!\w))
    )""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

_SPELLING = re.compile(
    r"\\[!-/:-@\[-`{-~]|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,31});"
)
"""A character that is written with a backslash or as an entity."""

_BREAK_AT = re.compile(r" (?!(?:[-+*]|#{1,6}|1[.)])(?: |$)|--|[*_] *[*_]|[=:|>~<`])")
"""Where a line may begin without becoming a heading, an item of a list or the like."""


def read_markdown(content: str) -> TextDocument:
    """Return the passages of Markdown: the paragraphs, headings and cells of tables.

    A hard line break ends a passage. Code within a sentence is part of it, but not translated.
    Front matter, blocks of code and of HTML, addresses and the names of references are kept.
    """
    front_matter = _FRONT_MATTER.match(content)
    end = front_matter.end() if front_matter else 0
    items = list[str | Passage]([content[:end]])
    for lines in _passages(content, end):
        start = lines[0][0]
        breaks = [content[end:start] for (_, end), (start, _) in pairwise(lines)]
        raw = "\n".join(content[slice(*line)] for line in lines)
        items.append(content[end:start])
        found = inline_items(raw, _MARKUP, _SPELLING)
        items.append(Passage(found, breaks=breaks, break_at=_BREAK_AT))
        end = lines[-1][1]
    items.append(content[end:])
    return TextDocument(items)


def _passages(content: str, begin: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the lines of each passage after ``begin``, as the offsets of their start and end.

    The parser gives the text of each line, but not its place in the line.
    """
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    starts = [begin, *(end.end() for end in _LINE_END.finditer(content, begin))]
    cursor = begin
    is_cell = False
    for token in parser.parse(content[begin:]):
        if token.type != "inline":
            is_cell = token.type in ("th_open", "td_open")
            continue
        assert token.map is not None
        lines = list[tuple[int, int]]()
        for number, text in enumerate(token.content.split("\n"), start=token.map[0]):
            cursor = max(cursor, starts[number])
            found = _place(content, cursor, text.strip(), is_cell)
            if found is None:  # leave the rest of this block as it is
                break
            lines.append(found)
            cursor = found[1]
            if text.endswith(("  ", "\\")):  # a hard line break
                yield lines
                lines = []
        if lines:
            yield lines


def _place(
    content: str,
    start: int,
    text: str,
    is_cell: bool,
) -> tuple[int, int] | None:
    """Return where the text of a block stands in the rest of a line; None if it does not.

    Only marks of blocks, such as "> ", precede it, and only marks of a heading follow.
    """
    line_end = _LINE_END.search(content, start)
    end = line_end.start() if line_end else len(content)
    line = content[start:end].rstrip()
    if not is_cell and line.endswith(text):
        return start + len(line) - len(text), start + len(line)
    for written in (text, text.replace("|", r"\|")):  # in a cell, a bar is escaped
        place = content.find(written, start, end)
        if place >= 0 and written:
            return place, place + len(written)
    return None
