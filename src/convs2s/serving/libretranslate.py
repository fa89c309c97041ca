"""What LibreTranslate's clients ask and are told, in terms of this server's own requests."""

from collections.abc import Iterable, Mapping
from typing import Literal
from urllib.parse import parse_qsl

from pydantic import ConfigDict

from convs2s.config.messages import validated
from convs2s.config.section import NonNegativeInt, Section, Text
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError

KEYS = {"q", "source", "target"}
"""Keys any of which tells such a request from this server's own."""

MOST_FIELDS = 100  # of a form


class LibreTranslateRequest(Section):
    """A request as LibreTranslate has it; other keys, such as ``api_key``, mean nothing here."""

    model_config = ConfigDict(extra="ignore", strict=False)  # in a form, a number is a text

    q: str | list[str]
    """Text to translate, or several; lines stay lines."""
    source: Text
    """Language of the text; auto: the one that the model has, as nothing is detected."""
    target: Text
    """Language to translate to."""
    format: Literal["text"] = "text"
    """Form of the text: without markup."""
    alternatives: NonNegativeInt = 0
    """Further translations of each text at most; a search finds no more than its beam."""

    def as_own(self, beam: int) -> dict[str, object]:
        """Return the request that this server's own form has for it: a text for each line."""
        texts = [line for lines in self._lines() for line in lines if line.strip()]
        return {"texts": texts, "n_best": min(self.alternatives + 1, beam)}

    def answer(self, translations: Iterable[Translation]) -> dict[str, object]:
        """Return what the client is told, by a translation for each line that has a word."""
        rest, texts, others = iter(translations), [], []
        for lines in self._lines():
            found = [
                [best.text for best in next(rest).n_best] if line.strip() else [""]
                for line in lines
            ]
            best, *further = (
                "\n".join(ranked[min(rank, len(ranked) - 1)] for ranked in found)
                for rank in range(max(map(len, found)))
            )
            texts.append(best)
            others.append(further)
        is_one = isinstance(self.q, str)
        told: dict[str, object] = {"translatedText": texts[0] if is_one else texts}
        if self.alternatives:
            told["alternatives"] = others[0] if is_one else others
        return told

    def _lines(self) -> list[list[str]]:
        texts = [self.q] if isinstance(self.q, str) else self.q
        return [text.split("\n") for text in texts]


def read_form(body: bytes) -> dict[str, object]:
    """Return the fields of a form; a UserError says that it is none."""
    options = {"keep_blank_values": True, "errors": "strict", "max_num_fields": MOST_FIELDS}
    try:
        return dict(parse_qsl(body.decode(), **options))  # type: ignore[arg-type]
    except ValueError as error:
        raise UserError(f"request: not a form in UTF-8: {error}") from None


def read_request(
    stated: Mapping[str, object], languages: Mapping[str, str]
) -> LibreTranslateRequest:
    """Return a request; a UserError names a wrong key, or a language that the model has not."""
    request = validated(LibreTranslateRequest, stated, "request")
    known = {request.source: ("auto", languages["source"]), request.target: (languages["target"],)}
    for language, names in known.items():
        if language not in names:
            raise UserError(f"{language[:20]!r} is not supported: expected {' or '.join(names)}")
    return request
