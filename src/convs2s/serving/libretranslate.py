"""Requests and answers in the format of LibreTranslate, converted to and from this server's own."""

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Literal
from urllib.parse import parse_qs

from pydantic import ConfigDict

from convs2s.config.section import NonNegativeInt, Section
from convs2s.decoding.split_lines import join
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError, failures_of_file

KEYS = {"q", "source", "target"}
"""A request with any of these keys is one of LibreTranslate; this server's own keys differ."""


class LibreTranslateRequest(Section):
    """A request of LibreTranslate's API. Its other keys, such as ``api_key``, are ignored."""

    # Not strict: numbers in forms are text.
    model_config = ConfigDict(extra="ignore", strict=False)

    # A text or texts; the lines of a text are translated separately.
    q: str | list[str]
    # Language code; ``auto`` means the model's source language, nothing is detected.
    source: str
    # Language code.
    target: str
    format: Literal["text"] = "text"
    # Maximum number of further translations of each text.
    alternatives: NonNegativeInt = 0

    def as_own(self, languages: Mapping[str, str], most: int) -> dict[str, object]:
        """Return the fields of the equivalent request in this server's own format.

        Each line is one text. ``languages`` are those of the model, and ``most`` is the largest
        n-best that it can give.

        Raises:
            UserError: the model does not translate these languages.
        """
        source = languages["source"] if self.source == "auto" else self.source
        for side, language in {"source": source, "target": self.target}.items():
            if language != languages[side]:
                raise UserError(
                    f"{language[:20]!r} is not supported: expected {languages[side]!r}"
                )
        texts = list(chain.from_iterable(self._lines()))
        return {"texts": texts, "n_best": min(self.alternatives + 1, most)}

    def answer(self, translations: Iterable[Translation]) -> dict[str, object]:
        """Return the answer in LibreTranslate's format.

        ``translations`` are those of the lines of all texts, in the order of ``as_own``. The lines
        of each text are joined again. If ``q`` is one text, the values are not lists of texts.
        """
        remaining = iter(translations)
        hypotheses: list[list[str]] = []  # of each text, the best first
        for lines in self._lines():
            joined = join(list(islice(remaining, len(lines))), "\n")
            hypotheses.append([hypothesis.text for hypothesis in joined.n_best])
        is_single = isinstance(self.q, str)
        translated = [texts[0] for texts in hypotheses]
        answer: dict[str, object] = {
            "translatedText": translated[0] if is_single else translated
        }
        if self.alternatives:
            alternatives = [texts[1:] for texts in hypotheses]
            answer["alternatives"] = alternatives[0] if is_single else alternatives
        return answer

    def _lines(self) -> list[list[str]]:
        """Return the lines of each text."""
        texts = [self.q] if isinstance(self.q, str) else self.q
        return [text.split("\n") for text in texts]


def read_form(body: bytes) -> dict[str, object]:
    """Return the fields of a form (``application/x-www-form-urlencoded``).

    Raises:
        UserError: the body is not a form in UTF-8, or has a field twice.
    """
    with failures_of_file("request", "not a form in UTF-8"):
        fields = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=100
        )
    single: dict[str, object] = {}
    for name, values in fields.items():
        if len(values) > 1:
            raise UserError(
                f"request: {name[:20]!r} is stated twice: send several texts as JSON"
            )
        single[name] = values[0]
    return single
