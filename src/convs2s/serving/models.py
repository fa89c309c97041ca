"""The models of a server, one for each pair of languages, and the choice among them."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypedDict

import yaml

from convs2s.api.translator import Translator
from convs2s.decoding.parallel import Stop
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.pages.render import asset
from convs2s.text.languages import language_name

AUTO = "auto"
"""The source language of a request whose texts tell it."""

SAMPLE_CHARACTERS = 200
"""Number of characters from which the language of a text is detected."""


class Detected(TypedDict):
    """A language with a confidence in percent, in LibreTranslate's format."""

    confidence: float
    language: str


class Models:
    """The models of a server. ``translators`` has them in the order of the command."""

    def __init__(self, translators: Iterable[Translator]) -> None:
        self._by_languages: dict[tuple[str, str], Translator] = {}
        for translator in translators:
            languages = translator.languages
            self._by_languages[languages["source"], languages["target"]] = translator
        self.translators = list(self._by_languages.values())

    def choose(
        self,
        source: str,
        target: str,
        texts: Sequence[str],
    ) -> tuple[Translator, Detected]:
        """Return the model for a request, and its source language.

        ``source`` may be ``AUTO``, and ``target`` may be empty: then the first model that fits is
        chosen.

        Raises:
            UserError: no model translates these languages.
        """
        fitting: dict[str, Translator] = {}
        for languages, translator in self._by_languages.items():
            if source in (AUTO, languages[0]) and target in ("", languages[1]):
                fitting.setdefault(languages[0], translator)
        if not fitting:
            pairs = [" to ".join(languages) for languages in self._by_languages]
            raise UserError(
                f"request: {source[:20]!r} to {target[:20]!r} is not supported: expected "
                f"{', '.join(pairs)}"
            )
        found = _detect(" ".join(texts), fitting)[0]
        return fitting[found["language"]], found

    def detect(self, text: str) -> list[Detected]:
        """Return the source languages of the models, the most probable for a text first."""
        by_source: dict[str, Translator] = {}
        for languages, translator in self._by_languages.items():
            by_source.setdefault(languages[0], translator)
        return _detect(text, by_source)

    def languages(self) -> list[dict[str, object]]:
        """Return each language and those into which it is translated, in LibreTranslate's format.

        Languages that are only translated into come last. Clients look up their names.
        """
        targets: dict[str, list[str]] = {}
        for source, target in self._by_languages:
            targets.setdefault(source, []).append(target)
        for _, target in self._by_languages:
            targets.setdefault(target, [])
        listed: list[dict[str, object]] = []
        for code, into in targets.items():
            listed.append({"code": code, "name": language_name(code), "targets": into})
        return listed


def translate_tokens(
    sentences: Sequence[tuple[str, list[str]]],
    stopped: Stop,
    *,
    translator: Translator,
    **options: object,
) -> list[Translation]:
    """Translate as `Translator.translate_tokens` does, by the model that a request has chosen."""
    return translator.translate_tokens(sentences, stopped, **options)  # type: ignore[arg-type]


def _detect(text: str, by_source: dict[str, Translator]) -> list[Detected]:
    """Return languages, the most probable first. ``by_source`` has a model that reads each.

    A model needs the fewest tokens for text in its own language. If all tokens of a model were
    equally probable, each token more would make a text less probable by the size of the vocabulary.
    The confidence counts a factor of e in place of that.
    """
    if len(by_source) == 1:
        return [{"confidence": 100.0, "language": language} for language in by_source]
    sample = text[:SAMPLE_CHARACTERS]
    lengths: dict[str, int] = {}
    for language, translator in by_source.items():
        lengths[language] = translator.code_length(sample)
    least = min(lengths.values())
    shares: dict[str, float] = {}
    for language, length in lengths.items():
        shares[language] = math.exp(least - length)
    total = sum(shares.values())
    found: list[Detected] = []
    for language in sorted(shares, key=lambda language: -shares[language]):
        confidence = round(100 * shares[language] / total, 1)
        found.append({"confidence": confidence, "language": language})
    return found


def example_text(code: str) -> str:
    """Return a sentence in a language to try a model with; "" if there is none."""
    return _examples().get(code.partition("_")[0], "")


@cache
def _examples() -> dict[str, str]:
    """Return the sentences by language code."""
    examples: dict[str, str] = yaml.safe_load(asset("languages.yaml"))
    return examples
