"""Passages of a document: text that is translated as a whole, with the markup inside of it."""

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from types import MappingProxyType
from typing import Literal, Protocol

Kind = Literal["plain", "marked", "fixed"]

_BLANKS = " \t\r\n\f\v"
_BLANK_RUN = re.compile(f"[{_BLANKS}]+")
_PUNCTUATION = re.compile(f"[{_BLANKS}.,;:!?)]+")

# What ends a sentence, before closing quotation marks and brackets.
_SENTENCE_END = re.compile(r"""[.!?…]["'”’»)\]]*(?:\s|$)|[。！？।؟]""")

MOST_FRAGMENTS = 100
"""Maximum number of fragments of a passage that is translated as a whole."""

SPACE = re.compile(" ")
"""Where a translation may get a line break."""

ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-zA-Z]\w{1,31});")
"""A character of HTML or XML that is written by its name or number."""


@dataclass(frozen=True)
class Fragment:
    """The text between two pieces of markup.

    - ``text`` is what a reader sees, with its blanks and line breaks; ``written`` is the same as it
      stands in the document.
    - ``kind`` is ``marked`` within an element such as a link or bold type, ``fixed`` for what is
      part of a sentence but not translated, such as code, and otherwise ``plain``.
    - ``spellings`` maps characters to how the document writes them, such as ``&eacute;``.
    """

    text: str
    written: str
    kind: Kind = "plain"
    spellings: Mapping[int, str] = field(default_factory=dict)

    def spelled(self, text: str) -> str:
        """Return a text as the document would write it. An unchanged text stays as it was."""
        return self.written if text == self.text else text.translate(self.spellings)


class Passage:
    """Fragments with the markup between them, such as a paragraph or a cell of a table.

    ``texts`` are the texts to translate:

    - none if the passage has no letter;
    - the passage if all its text is in one fragment;
    - otherwise the whole passage, if its translation may be cut into fragments, and then each
      fragment by itself.

    The translation of the whole passage is used if it contains the translations of the marked and
    fixed fragments, in the same order and as often as the passage contains the fragments. The
    markup is then put around these translations. Otherwise, the translations of the fragments are
    used, and ``is_in_parts`` is True after `translated`.
    """

    def __init__(
        self,
        items: Sequence[str | Fragment],
        *,
        breaks: Sequence[str] = (),
        break_at: re.Pattern[str] = SPACE,
    ) -> None:
        """Take the markup, as strings, and the fragments in the order of the document.

        If ``breaks`` are given, each line feed in ``items`` stands for one of them. ``break_at``
        finds the spaces of a translation that may become line breaks.
        """
        self.is_in_parts = False
        self._items = items
        self._breaks = breaks
        self._break_at = break_at
        self.fragments = [item for item in items if isinstance(item, Fragment)]
        # Indices of the fragments that are more than blanks, and of those that are translated.
        self._spoken = list[int]()
        self._translated = list[int]()
        for index, fragment in enumerate(self.fragments):
            if fragment.text.strip(_BLANKS):
                self._spoken.append(index)
                if fragment.kind != "fixed" and has_letter(fragment.text):
                    self._translated.append(index)
        kinds = [self.fragments[index].kind for index in self._spoken]
        # Between two plain fragments, nothing tells where the first ends in the translation.
        can_be_cut = ("plain", "plain") not in pairwise(kinds)
        has_several = 1 < len(kinds) <= MOST_FRAGMENTS
        self._has_whole = bool(self._translated) and has_several and can_be_cut
        # Punctuation at the beginning of a fragment belongs to the sentence before it, so it is not
        # translated with the fragment.
        self._beginning = _PUNCTUATION if len(kinds) > 1 else _BLANK_RUN
        self.texts = list[str]()
        for index in self._translated:
            _, core, _ = _parts(self.fragments[index].text, self._beginning)
            self.texts.append(on_one_line(core))
        if self._has_whole:
            whole = "".join(fragment.text for fragment in self.fragments)
            self.texts.insert(0, on_one_line(whole))

    def translated(self, translations: Iterator[str]) -> list[str]:
        """Return the text of each fragment in the translated document, as it is written there.

        The translations of ``texts`` are the next items of ``translations``, and are taken from it.
        """
        taken = islice(translations, len(self.texts))
        translations = map(_without_added_stop, self.texts, taken)
        whole = next(translations) if self._has_whole else None
        # Index of a fragment -> its own translation, and -> its piece of the whole translation.
        own = dict(zip(self._translated, translations, strict=False))
        pieces = None if whole is None else self._cut(whole, own)
        # A fixed fragment is not translated, but it is part of a sentence.
        with_words = [part for part in self.fragments if has_letter(part.text)]
        self.is_in_parts = pieces is None and bool(own) and len(with_words) > 1
        texts = [fragment.text for fragment in self.fragments]
        # A piece of the whole translation begins with the punctuation of its fragment, if that has
        # any. The translation of a single fragment does not.
        beginning = _BLANK_RUN if pieces else self._beginning
        for index, piece in (pieces or own).items():
            before, core, after = _parts(texts[index], beginning)
            texts[index] = before + self._laid_out(piece.strip(" "), core) + after
        if pieces:
            _set_blanks(texts, pieces, self.fragments)
        return [
            fragment.spelled(text)
            for fragment, text in zip(self.fragments, texts, strict=True)
        ]

    def restored(self, translations: Iterator[str]) -> str:
        """Return the translated passage with its markup; see `translated`."""
        texts = iter(self.translated(translations))
        passage = "".join(
            next(texts) if isinstance(item, Fragment) else item for item in self._items
        )
        breaks = iter(self._breaks)
        return re.sub("\n", lambda feed: next(breaks, feed[0]), passage)

    def _cut(self, whole: str, own: Mapping[int, str]) -> dict[int, str] | None:
        """Return the part of each fragment in the translation of the whole passage.

        ``own`` are the translations of single fragments. The result is None if one of the marked
        and fixed fragments is not found, or if a part is empty.
        """
        pieces = dict[int, str]()
        end = 0
        for index in self._spoken:
            fragment = self.fragments[index]
            if fragment.kind == "plain":
                # It gets what is left before the next fragment that is found.
                pieces[index] = ""
                continue
            translation = own.get(index, on_one_line(fragment.text))
            found = self._found(index, translation, whole)
            if found is None or found.start() < end:
                return None
            if not _set_rest(pieces, whole[end : found.start()]):
                return None
            pieces[index] = found[0]
            end = found.end()
        return pieces if _set_rest(pieces, whole[end:]) else None

    def _found(
        self,
        index: int,
        translation: str,
        whole: str,
    ) -> re.Match[str] | None:
        """Return where the translation of a fragment stands in that of the whole passage.

        If the passage contains the words of the fragment several times, ``whole`` must contain the
        translated words as many times. The n-th place in ``whole`` then belongs to the n-th place
        in the passage.
        """
        texts = [fragment.text for fragment in self.fragments]
        words = on_one_line(texts[index])
        flags = re.NOFLAG if self.fragments[index].kind == "fixed" else re.IGNORECASE
        before = len(_occurrences(words, "".join(texts[:index]), flags))
        after = len(_occurrences(words, "".join(texts[index + 1 :]), flags))
        found = _occurrences(translation, whole, flags)
        return found[before] if len(found) == before + 1 + after else None

    def _laid_out(self, translation: str, source: str) -> str:
        """Return a translation with the line breaks of its source.

        Each run of blanks in the source, other than a single space, replaces one space of the
        translation: the one that is nearest if positions are scaled by the lengths of both texts.
        """
        length = len(on_one_line(source))
        spaces = [space.start() for space in self._break_at.finditer(translation)]
        laid_out = ""
        end = 0
        first = 0  # index of the first space that is not used or passed
        removed = 0  # number of blanks so far that on_one_line removes from the source
        for blanks in _BLANK_RUN.finditer(source):
            place = (blanks.start() - removed) * len(translation) / length
            removed += len(blanks[0]) - 1
            if blanks[0] == " " or first == len(spaces):
                continue
            # The first space that is not before the place, or the one before it if that is nearer.
            nearest = bisect_left(spaces, place, lo=first, hi=len(spaces) - 1)
            if (
                nearest > first
                and place - spaces[nearest - 1] < spaces[nearest] - place
            ):
                nearest -= 1
            laid_out += translation[end : spaces[nearest]] + blanks[0]
            end = spaces[nearest] + 1
            first = nearest + 1
        return laid_out + translation[end:]


class Translatable(Protocol):
    """A text whose ``texts`` are to be translated."""

    texts: list[str]

    def translated(self, translations: Iterable[str]) -> str:
        """Return the text with the translations of its ``texts`` in their places."""


class TranslatableDocument(Translatable, Protocol):
    """A document as text, which consists of passages."""

    passages: list[Passage]


class TextDocument:
    """A document as text. Its items are strings, which are kept, and passages to translate."""

    def __init__(self, items: Sequence[str | Passage]) -> None:
        self._items = items
        self.passages = [item for item in items if isinstance(item, Passage)]
        self.texts = texts_of(self.passages)

    def translated(self, translations: Iterable[str]) -> str:
        """Return the document with the translations of its ``texts``."""
        rest = iter(translations)
        return "".join(
            item if isinstance(item, str) else item.restored(rest)
            for item in self._items
        )


def texts_of(passages: Iterable[Passage]) -> list[str]:
    """Return the texts of all passages."""
    return list(chain.from_iterable(passage.texts for passage in passages))


def parts_warning(passages: Iterable[Passage]) -> str | None:
    """Return a warning if any of the translated passages is in parts; None otherwise."""
    count = sum(passage.is_in_parts for passage in passages)
    if not count:
        return None
    were = "paragraph or cell was" if count == 1 else "paragraphs or cells were"
    return (
        f"{count} {were} translated in parts, between tags, each part without the rest of its "
        "sentence: check them (docs/documents.md)"
    )


def inline_items(
    raw: str,
    markup: re.Pattern[str],
    spelling: re.Pattern[str] | None = None,
    others: Mapping[int, str] = MappingProxyType({}),
) -> list[str | Fragment]:
    r"""Return the markup and the fragments of a passage as it is written in a document.

    Args:
        raw: the passage.
        markup: finds its markup. What its group ``fixed`` matches is part of the sentence. The
            groups ``opens`` and ``closes`` match where an element begins and ends, and ``toggles``
            what does both, such as ``**``.
        spelling: finds single characters that are written as several, such as ``&eacute;`` or
            ``\*``.
        others: how to spell characters in a translation if the fragment itself does not spell them.
    """
    items = list[str | Fragment]()

    def add(written: str, kind: Kind) -> None:
        """Add a fragment as it is written, and how its characters are spelled there."""
        if not written:
            return
        spellings = dict(others)

        def read(match: re.Match[str]) -> str:
            """Return the character that an entity, or an escape by a backslash, stands for."""
            escaped = match[0].removeprefix("\\")
            character = html.unescape(escaped)
            if len(character) != 1:
                # An unknown name, a forbidden character, or several characters.
                return match[0]
            spellings[ord(character)] = match[0]
            return character

        text = spelling.sub(read, written) if spelling else written
        items.append(Fragment(text, written, kind, spellings))

    end = 0
    depth = 0
    toggled = set[str]()
    for match in markup.finditer(raw):
        add(raw[end : match.start()], "marked" if depth or toggled else "plain")
        groups = match.groupdict()
        if groups.get("fixed") is not None:
            items.append(raw[match.start() : match.start("fixed")])
            add(match["fixed"], "fixed")
            items.append(raw[match.end("fixed") : match.end()])
        else:
            items.append(match[0])
        if groups.get("toggles") is not None:
            toggled ^= {match["toggles"]}  # the first one opens, the second one closes
        depth += groups.get("opens") is not None
        depth = max(0, depth - (groups.get("closes") is not None))
        end = match.end()
    add(raw[end:], "marked" if depth or toggled else "plain")
    return items


def on_one_line(text: str) -> str:
    """Return a text with single spaces in place of its blanks and line breaks."""
    return _BLANK_RUN.sub(" ", text).strip(" ")


def has_letter(text: str) -> bool:
    """Return whether a text has a letter. Punctuation and numbers alone are not translated."""
    return any(map(str.isalpha, text))


def _without_added_stop(source: str, translation: str) -> str:
    """Return a translation without its final full stop if no sentence ends in the source.

    Models that are trained on sentences add a full stop to a heading or the text of a link.
    """
    is_added = translation.endswith(".") and not translation.endswith("..")
    if is_added and not _SENTENCE_END.search(source):
        return translation[:-1]
    return translation


def _occurrences(
    words: str,
    text: str,
    flags: re.RegexFlag,
) -> list[re.Match[str]]:
    """Return where some words stand in a text, also over several lines, but not within words."""
    if not words:
        return []
    sought = _BLANK_RUN.pattern.join(map(re.escape, words.split(" ")))
    return list(re.finditer(rf"(?<!\w){sought}(?!\w)", text, flags))


def _parts(text: str, beginning: re.Pattern[str]) -> tuple[str, str, str]:
    """Return what matches ``beginning``, the text after it, and the blanks at the end."""
    found = beginning.match(text)
    start = found.end() if found else 0
    end = len(text.rstrip(_BLANKS))
    return text[:start], text[start:end], text[end:]


def _set_rest(pieces: dict[int, str], rest: str) -> bool:
    """Give the text before a found fragment, or before the end, to the plain fragment there.

    Return whether this is possible: text needs a plain fragment, and a plain fragment needs text.
    """
    last = next(reversed(pieces), None)
    # The piece of a plain fragment is empty until its text is known.
    is_plain = last is not None and not pieces[last]
    if is_plain:
        pieces[last] = rest  # type: ignore[index]
    elif last is not None and not rest.strip(" "):
        pieces[last] += rest  # blanks after a found fragment
    return is_plain == bool(rest.strip(" "))


def _set_blanks(
    texts: list[str],
    pieces: Mapping[int, str],
    fragments: Sequence[Fragment],
) -> None:
    """Set or remove blanks between neighboring fragments, as the whole translation has them.

    Fragments between the two consist of blanks alone.
    """
    for one, other in pairwise(pieces):
        between = range(one + 1, other)
        blanks = texts[one][len(texts[one].rstrip(_BLANKS)) :]
        blanks += "".join(texts[index] for index in between)
        blanks += texts[other][: -len(texts[other].lstrip(_BLANKS))]
        is_apart = pieces[one].endswith(" ") or pieces[other].startswith(" ")
        if is_apart and not blanks:
            # Plain text gets the blank, if possible, so that no markup includes it.
            if fragments[one].kind == "plain":
                texts[one] += " "
            else:
                texts[other] = f" {texts[other]}"
        elif not is_apart:
            texts[one] = texts[one].rstrip(_BLANKS)
            texts[other] = texts[other].lstrip(_BLANKS)
            for index in between:
                texts[index] = ""
