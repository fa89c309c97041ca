"""Find the texts of gettext's catalogues (po, pot) that have no translation yet."""

import re
from collections.abc import Iterable

import polib

from convs2s.documents.passages import Passage, inline_items, texts_of

_MARKUP = re.compile(
    r"""
      # What a program fills in, such as %(name)s, %1$d, {name} and ${name}.
      (?P<fixed>
          %(?:\(\w+\)|\d+\$)?[-+0\#]*\d*(?:\.\d+)?(?:ll?|hh?|[jzt])?[a-zA-Z@%]
        | \$?\{[^{}\s]*\}
      )
    | (?P<closes></)[a-z][^<>]*> | (?P<opens><[a-z])[^<>]*>
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Catalogue:
    """A catalogue. Its ``texts`` are those of messages without a translation.

    Existing translations, also fuzzy ones, and obsolete messages stay as they are.
    """

    def __init__(self, content: str) -> None:
        """Read a catalogue.

        Raises:
            OSError: the content is not a catalogue.
        """
        self._content = content
        self._catalogue = polib.pofile(content)
        # Each passage with its entry, and the number of its plural form (None: no plural).
        self._passages = list[tuple[Passage, polib.POEntry, int | None]]()
        for entry in self._catalogue:
            if entry.obsolete or entry.fuzzy:
                continue
            if not entry.msgid_plural and not entry.msgstr:
                self._passages.append((_passage(entry.msgid), entry, None))
            forms = entry.msgstr_plural
            for number, translation in forms.items():
                if not translation:
                    is_singular = number == 0 and len(forms) > 1
                    text = entry.msgid if is_singular else entry.msgid_plural
                    self._passages.append((_passage(text), entry, number))
        self.passages = [passage for passage, _, _ in self._passages]
        self.texts = texts_of(self.passages)

    def translated(self, translations: Iterable[str]) -> str:
        """Return the catalogue with the translations of its ``texts``."""
        if not self._passages:
            return self._content
        rest = iter(translations)
        for passage, entry, number in self._passages:
            translation = passage.restored(rest)
            if number is None:
                entry.msgstr = translation
            else:
                entry.msgstr_plural[number] = translation
        return str(self._catalogue)


def _passage(text: str) -> Passage:
    return Passage(inline_items(text, _MARKUP))
