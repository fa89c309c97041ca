"""Convert requests and answers between the format of LibreTranslate and that of this server."""

from collections.abc import Iterable, Mapping, Sequence
from email.parser import HeaderParser
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl

from pydantic import ConfigDict

from convs2s.config.decoding import DecodingSettings
from convs2s.config.section import NonNegativeInt, Section
from convs2s.decoding.translate import Translation
from convs2s.documents.html import read_html
from convs2s.documents.passages import Translatable
from convs2s.documents.read import SERVED, Document, document_of
from convs2s.errors import UserError, failures_of_file
from convs2s.serving.models import AUTO, Detected, Models
from convs2s.serving.requests import (
    CheckedRequest,
    Texts,
    TooLargeError,
    check_request,
)
from convs2s.serving.settings import ServerSettings
from convs2s.text.languages import language_name

KEYS = {"q", "source", "target"}
"""A request with any of these keys is in LibreTranslate's format, unless it has the key ``texts``.

The key ``texts`` belongs to this server's own format.
"""

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORMS = {FORM, MULTIPART}
FILE = "file"
"""The field of a multipart form that contains a document. All other fields contain text."""

MOST_FIELDS = 100
"""Maximum number of fields of a form."""

LONGEST_HEAD = 1024
"""Maximum number of characters of the head of a form's part, and of the header Content-Type."""


class Upload(NamedTuple):
    """A document in a multipart form."""

    name: str
    content: bytes


class LibreTranslateRequest(Section):
    """A request of LibreTranslate's API. Its other keys, such as ``api_key``, are ignored."""

    # Not strict, because a form contains numbers as text.
    model_config = ConfigDict(extra="ignore", strict=False)

    q: str | Texts  # one text or several; each line is translated separately
    source: str  # language code; with ``auto``, the server detects the language
    target: str  # language code
    # With html, tags are kept and the text between them is translated (docs/documents.md).
    format: Literal["text", "html"] = "text"
    alternatives: NonNegativeInt = 0  # number of further translations of each text

    def as_own(self, most: int) -> dict[str, object]:
        """Return the fields of the equivalent request in this server's own format.

        Each part of a text becomes a text of its own. ``most`` is the largest ``n_best`` that the
        search allows.
        """
        return {
            "texts": list(chain.from_iterable(parts.texts for parts in self._parts())),
            "source": self.source,
            "target": self.target,
            "n_best": min(self.alternatives + 1, most),
        }

    def answer(
        self,
        translations: Iterable[Translation],
        source: Detected,
    ) -> dict[str, object]:
        """Return the answer in LibreTranslate's format.

        ``translations`` are those of the texts that ``as_own`` returned, in the same order. The
        translated parts of each text are joined. The values of the answer are lists with one item
        per text, or single items if ``q`` is one text. ``source`` is the source language.
        """
        remaining = iter(translations)
        # For each text its translations, the best first.
        hypotheses: list[list[str]] = []
        for parts in self._parts():
            translated = list(islice(remaining, len(parts.texts)))
            hypotheses.append(_joined(parts, translated))
        answer: dict[str, list[object]] = {
            "translatedText": [texts[0] for texts in hypotheses]
        }
        if self.source == AUTO:
            answer["detectedLanguage"] = [source for _ in hypotheses]
        if self.alternatives:
            answer["alternatives"] = [texts[1:] for texts in hypotheses]
        if isinstance(self.q, str):
            return {key: values[0] for key, values in answer.items()}
        return dict(answer)

    def _parts(self) -> list[Translatable]:
        """Return each text, split into the parts that are translated separately."""
        texts = [self.q] if isinstance(self.q, str) else self.q
        if self.format == "html":
            return list(map(read_html, texts))
        return list(map(_Lines, texts))


class DetectRequest(Section):
    """A request of LibreTranslate's API to detect the language of a text."""

    model_config = ConfigDict(extra="ignore")

    q: str | Texts

    @property
    def text(self) -> str:
        """All texts, joined into one."""
        return self.q if isinstance(self.q, str) else " ".join(self.q)


class _Lines:
    """A text, whose lines are translated separately."""

    def __init__(self, text: str) -> None:
        self.texts = text.split("\n")

    def translated(self, translations: Iterable[str]) -> str:
        return "\n".join(translations)


def _joined(text: Translatable, translations: Sequence[Translation]) -> list[str]:
    """Return the translations of a whole text, the best first.

    ``translations`` are those of the parts of the text. The n-th best translation of the text joins
    the n-th best translation of each part. If a part has fewer than n, its last one is taken.
    """
    count = max((len(part.n_best) for part in translations), default=1)
    hypotheses = []
    for rank in range(count):
        parts = []
        for part in translations:
            last = len(part.n_best) - 1
            parts.append(part.n_best[min(rank, last)].text)
        hypotheses.append(text.translated(parts))
    return hypotheses


def check_file(
    fields: Mapping[str, object],
    settings: ServerSettings,
    search: DecodingSettings,
    models: Models,
) -> tuple[Document, str, CheckedRequest]:
    """Return the document in a form, its suffix, and the request for the translation of its texts.

    Raises:
        UserError: the form contains no document, the document cannot be read or has too much text,
            or `check_request` refuses the request.
    """
    upload = fields.get(FILE)
    if not isinstance(upload, Upload):
        raise UserError(
            "request: expected a form with a document, such as curl -F file=@page.html"
        )
    path = Path(upload.name)
    if path.suffix.lower() not in SERVED:
        raise UserError(
            f"request: expected a document whose name ends in {', '.join(SERVED)}"
        )
    document = document_of(upload.content, path, settings.largest_file)
    most = settings.longest_text * settings.most_texts
    size = sum(len(text.encode()) for text in document.texts)
    if size > most:
        raise TooLargeError(
            f"request: a document with {size:,} bytes of text, but at most {most:,} are allowed: "
            "split it, or run `convs2s translate-document`"
        )
    languages = {name: fields[name] for name in ("source", "target") if name in fields}
    asked = {"texts": document.texts, **languages}
    # The total size of the texts has been checked above, so the limits on one text and on the
    # number of texts need not hold. The queue still limits the number.
    limits = {"most_texts": settings.most_waiting, "longest_text": most}
    settings = settings.model_copy(update=limits)
    return document, path.suffix, check_request(asked, settings, search, models)


def frontend_settings(models: Models, settings: ServerSettings) -> dict[str, object]:
    """Return the settings that LibreTranslate's clients request before they show a form."""
    target = models.translators[0].languages["target"]
    return {
        "apiKeys": False,
        "charLimit": settings.longest_text,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "keyRequired": False,
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": target, "name": language_name(target)},
        },
        "suggestions": False,
        "supportedFilesFormat": SERVED,
    }


def read_form(body: bytes, content_type: str) -> dict[str, object]:
    """Return the fields of a form of one of the content types ``FORMS``.

    Raises:
        UserError: the body is not a form in UTF-8, or contains a field twice.
    """
    pairs: Sequence[tuple[str, str | Upload]]
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
                f"request: the field {name[:20]!r} is there twice: send several texts as JSON"
            )
        fields[name] = value
    return fields


def _pairs_of_parts(body: bytes, content_type: str) -> list[tuple[str, str | Upload]]:
    """Return the names and values of a multipart form (RFC 7578).

    Starlette is not used, because it would need another package for this, and would decode invalid
    UTF-8 as Latin-1. Python's email.parser reads only the headers, because it would also read
    parts within parts, in a time that grows with the square of the size.

    Raises:
        ValueError: the body is not such a form, or has too many fields.
    """
    boundary = _parameter(f"Content-Type: {content_type}", "Content-Type", "boundary")
    delimiter = f"\r\n--{boundary}".encode()
    # Each part follows a delimiter at the start of a line, and "--" follows the last delimiter.
    _, *parts = (b"\r\n" + body).split(delimiter, MOST_FIELDS + 1)
    after_last_delimiter = parts.pop() if parts else b""
    if not after_last_delimiter.startswith(b"--"):
        raise ValueError(f"expected up to {MOST_FIELDS} parts, then --{boundary}--")
    pairs: list[tuple[str, str | Upload]] = []
    for part in parts:
        raw_head, _, value = part.partition(b"\r\n\r\n")
        head = raw_head.decode().strip()
        name = _parameter(head, "Content-Disposition", "name")
        if name == FILE:
            file_name = _parameter(head, "Content-Disposition", "filename")
            pairs.append((name, Upload(file_name, value)))
        else:
            pairs.append((name, value.decode()))
    return pairs


def _parameter(
    head: str,
    header: str,
    name: str,
) -> str:
    """Return the parameter ``name`` of the header ``header``.

    ``head`` contains the lines of all headers.

    Raises:
        ValueError: the head has no such header or parameter, or is too long.
    """
    # Parsing takes a time that grows with the square of the length.
    if len(head) > LONGEST_HEAD:
        raise ValueError(f"{header}: longer than {LONGEST_HEAD} characters")
    value = HeaderParser().parsestr(head).get_param(name, header=header)
    if not isinstance(value, str):
        raise ValueError(f"the header {header} has no parameter {name}")
    return value
