"""Requests and answers in the format of LibreTranslate, converted to and from this server's own."""

from collections.abc import Iterable, Mapping, Sequence
from email.parser import HeaderParser
from itertools import chain, islice
from typing import Literal
from urllib.parse import parse_qsl

from pydantic import ConfigDict

from convs2s.config.section import NonNegativeInt, Section
from convs2s.decoding.translate import Translation
from convs2s.documents.html import read_html
from convs2s.documents.passages import Translatable
from convs2s.errors import UserError, failures_of_file
from convs2s.serving.requests import Texts

KEYS = {"q", "source", "target"}
"""A request with any of these keys is one of LibreTranslate; this server's own keys differ."""

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORMS = {FORM, MULTIPART}

MOST_FIELDS = 100
"""Maximum number of fields of a form."""

LONGEST_HEAD = 1024
"""Maximum number of characters of the head of a part of a form, and of the header that names the
boundary."""


class LibreTranslateRequest(Section):
    """A request of LibreTranslate's API. Its other keys, such as ``api_key``, are ignored."""

    # Not strict: numbers in forms are text.
    model_config = ConfigDict(extra="ignore", strict=False)

    # A text or texts; the lines of a text are translated separately.
    q: str | Texts
    # Language code; ``auto`` means the model's source language, nothing is detected.
    source: str
    # Language code.
    target: str
    # Of html, the text is translated, as of a document (docs/documents.md).
    format: Literal["text", "html"] = "text"
    # Maximum number of further translations of each text.
    alternatives: NonNegativeInt = 0

    def as_own(self, languages: Mapping[str, str], most: int) -> dict[str, object]:
        """Return the fields of the equivalent request in this server's own format.

        Each part of a text is one text. ``languages`` are those of the model, and ``most`` is the
        largest n-best that it can give.

        Raises:
            UserError: the model does not translate these languages.
        """
        source = languages["source"] if self.source == "auto" else self.source
        for side, language in {"source": source, "target": self.target}.items():
            if language != languages[side]:
                raise UserError(
                    f"{language[:20]!r} is not supported: expected {languages[side]!r}"
                )
        texts = list(chain.from_iterable(parts.texts for parts in self._parts()))
        return {"texts": texts, "n_best": min(self.alternatives + 1, most)}

    def answer(
        self,
        translations: Iterable[Translation],
        language: str,
    ) -> dict[str, object]:
        """Return the answer in LibreTranslate's format.

        ``translations`` are those of the parts of all texts, in the order of ``as_own``. The parts
        of each text are joined again. If ``q`` is one text, the values are not lists. ``language``
        is the model's source language.
        """
        remaining = iter(translations)
        hypotheses: list[list[str]] = []  # of each text, the best first
        for parts in self._parts():
            translated = list(islice(remaining, len(parts.texts)))
            hypotheses.append(_joined(parts, translated))
        answer: dict[str, list[object]] = {
            "translatedText": [texts[0] for texts in hypotheses]
        }
        if self.source == "auto":
            answer["detectedLanguage"] = [detected(language) for _ in hypotheses]
        if self.alternatives:
            answer["alternatives"] = [texts[1:] for texts in hypotheses]
        if isinstance(self.q, str):
            return {key: values[0] for key, values in answer.items()}
        return dict(answer)

    def _parts(self) -> list[Translatable]:
        """Return each text with its parts."""
        texts = [self.q] if isinstance(self.q, str) else self.q
        if self.format == "html":
            return list(map(read_html, texts))
        return list(map(_Lines, texts))


class DetectRequest(Section):
    """A question for the language of a text."""

    model_config = ConfigDict(extra="ignore")

    q: str | Texts


def detected(language: str) -> dict[str, object]:
    """Return the language that the model reads as if it had been detected, in percent."""
    return {"confidence": 100.0, "language": language}


class _Lines:
    """A text, whose lines are translated separately."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")

    def translated(self, translations: Iterable[str]) -> str:
        return "\n".join(translations)


def _joined(text: Translatable, translations: Sequence[Translation]) -> list[str]:
    """Return the translations of a whole text, the best first.

    ``translations`` are those of its parts. The n-th best joins the n-th best of each part. A part
    with fewer contributes its last one.
    """
    count = max((len(one.n_best) for one in translations), default=1)
    hypotheses = []
    for rank in range(count):
        parts = [
            one.n_best[min(rank, len(one.n_best) - 1)].text for one in translations
        ]
        hypotheses.append(text.translated(parts))
    return hypotheses


def read_form(body: bytes, content_type: str) -> dict[str, object]:
    """Return the fields of a form, whose kind is one of ``FORMS``.

    Raises:
        UserError: the body is not a form in UTF-8, or has a field twice.
    """
    with failures_of_file("request", "not a form in UTF-8"):
        if content_type.lower().startswith(MULTIPART):
            pairs = _pairs_of_parts(body, content_type)
        else:
            pairs = parse_qsl(
                body.decode(),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MOST_FIELDS,
            )
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise UserError(
                f"request: {name[:20]!r} is stated twice: send several texts as JSON"
            )
        fields[name] = value
    return fields


def _pairs_of_parts(body: bytes, content_type: str) -> list[tuple[str, str]]:
    """Return the names and values of a form in parts (RFC 7578).

    Starlette reads such forms with another package, and takes invalid UTF-8 for Latin-1. Python's
    email.parser also reads parts inside of parts, in a time that grows with the square of the size.

    Raises:
        ValueError: the body is not such a form, or has too many fields.
    """
    boundary = _parameter(f"Content-Type: {content_type}", "Content-Type", "boundary")
    delimiter = f"\r\n--{boundary}".encode()
    _, *parts = (b"\r\n" + body).split(delimiter, MOST_FIELDS + 1)
    if not parts or not parts.pop().startswith(b"--"):
        raise ValueError(f"expected up to {MOST_FIELDS} parts and --{boundary}--")
    pairs = []
    for part in parts:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _parameter(head.decode().strip(), "Content-Disposition", "name")
        pairs.append((name, value.decode()))
    return pairs


def _parameter(
    head: str,
    header: str,
    name: str,
) -> str:
    """Return a parameter of a header.

    Raises:
        ValueError: the head does not have it, or is too long.
    """
    # The time of email.message grows with the square of the length.
    if len(head) > LONGEST_HEAD:
        raise ValueError(f"{header}: longer than {LONGEST_HEAD} characters")
    value = HeaderParser().parsestr(head).get_param(name, header=header)
    if not isinstance(value, str):
        raise ValueError(f"{header}: without {name}")
    return value
