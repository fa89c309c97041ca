"""What LibreTranslate's clients ask and are told, in terms of this server's own requests."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Literal
from urllib.parse import parse_qs

from pydantic import ConfigDict

from convs2s.config.section import NonNegativeInt, Section
from convs2s.decoding.split_lines import join
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError, failures_of_file

KEYS = {"q", "source", "target"}  # keys any of which tells such a request from this server's own


class LibreTranslateRequest(Section):
    """A request as LibreTranslate has it; other keys, such as ``api_key``, mean nothing here."""

    model_config = ConfigDict(extra="ignore", strict=False)  # in a form, a number is a text

    q: str | list[str]  # texts, whose lines stay lines
    source: str  # auto: the language that the model has, as nothing is detected
    target: str
    format: Literal["text"] = "text"
    alternatives: NonNegativeInt = 0  # further translations of each text, at most

    def as_own(
        self,
        languages: Mapping[str, str],
        most: int,
    ) -> dict[str, object]:
        """Return what this server's own form has for it: a text for each line, ``most`` n-best.

        Raises:
            UserError: the model does not translate these languages.
        """
        source = languages["source"] if self.source == "auto" else self.source
        for side, language in {"source": source, "target": self.target}.items():
            if language != languages[side]:
                raise UserError(f"{language[:20]!r} is not supported: expected {languages[side]!r}")
        texts = [line for lines in self._lines() for line in lines]
        return {"texts": texts, "n_best": min(self.alternatives + 1, most)}

    def answer(self, translations: Iterable[Translation]) -> dict[str, object]:
        """Return what the client is told, by the translations of its lines."""
        rest = iter(translations)
        texts: list[list[str]] = []  # the hypotheses of each, the best first
        for lines in self._lines():
            joined = join(list(islice(rest, len(lines))), "\n")
            texts.append([best.text for best in joined.n_best])
        told: dict[str, list[str] | list[list[str]]] = {
            "translatedText": [best for best, *_ in texts]
        }
        if self.alternatives:
            told["alternatives"] = [others for _, *others in texts]
        if isinstance(self.q, str):
            return {name: values[0] for name, values in told.items()}
        return {**told}

    def _lines(self) -> list[list[str]]:
        texts = [self.q] if isinstance(self.q, str) else self.q
        return [text.split("\n") for text in texts]


def read_form(body: bytes) -> dict[str, object]:
    """Return the fields of a form.

    Raises:
        UserError: it is no form in UTF-8, or states a field twice.
    """
    with failures_of_file("request", "not a form in UTF-8"):
        fields = parse_qs(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=100
        )
    stated: dict[str, object] = {}
    for name, values in fields.items():
        if len(values) > 1:
            raise UserError(f"request: {name[:20]!r} is stated twice: send several texts as JSON")
        stated[name] = values[0]
    return stated
