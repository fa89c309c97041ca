"""What LibreTranslate's clients ask and are told, in terms of this server's own requests."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Literal
from urllib.parse import parse_qs

from pydantic import ConfigDict

from convs2s.config.section import NonNegativeInt, Section
from convs2s.decoding.split_lines import join
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError

KEYS = {"q", "source", "target"}  # keys any of which tells such a request from this server's own


class LibreTranslateRequest(Section):
    """A request as LibreTranslate has it; other keys, such as ``api_key``, mean nothing here."""

    model_config = ConfigDict(extra="ignore", strict=False)  # in a form, a number is a text

    q: str | list[str]  # texts, whose lines stay lines
    source: str  # auto: the language that the model has, as nothing is detected
    target: str
    format: Literal["text"] = "text"
    alternatives: NonNegativeInt = 0  # further translations of each text, at most

    def as_own(self, languages: Mapping[str, str], most: int) -> dict[str, object]:
        """Return what this server's own form has for it: a text for each line, ``most`` n-best.

        A UserError names languages that the model does not translate.
        """
        known = ("auto", languages["source"]), (languages["target"],)
        for language, names in zip((self.source, self.target), known, strict=True):
            if language not in names:
                raise UserError(f"{language[:20]!r} is not supported: expected {names[-1]!r}")
        texts = [line for lines in self._lines() for line in lines]
        return {"texts": texts, "n_best": min(self.alternatives + 1, most)}

    def answer(self, translations: Iterable[Translation]) -> dict[str, object]:
        """Return what the client is told, by the translations of its lines."""
        rest = iter(translations)
        joined = [join(list(islice(rest, len(lines))), "\n") for lines in self._lines()]
        texts = [[best.text for best in text.n_best] for text in joined]
        told = {"translatedText": [best for best, *_ in texts]}
        if self.alternatives:
            told["alternatives"] = [others for _, *others in texts]  # type: ignore[misc]
        return {key: rows[0] if isinstance(self.q, str) else rows for key, rows in told.items()}

    def _lines(self) -> list[list[str]]:
        return [text.split("\n") for text in ([self.q] if isinstance(self.q, str) else self.q)]


def read_form(body: bytes) -> dict[str, object]:
    """Return the fields of a form; a UserError says that it is none, or states a field twice."""
    options = {"keep_blank_values": True, "errors": "strict", "max_num_fields": 100}
    try:
        fields = parse_qs(body.decode(), **options)  # type: ignore[arg-type]
    except ValueError as error:
        raise UserError(f"request: not a form in UTF-8: {error}") from None
    for name, (_, *others) in fields.items():
        if others:
            raise UserError(f"request: {name[:20]!r} is stated twice: send several texts as JSON")
    return {name: value for name, (value,) in fields.items()}
