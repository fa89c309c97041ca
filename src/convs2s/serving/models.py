"""The models of a server, one for each pair of languages, and the choice of one for a request."""

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
"""The ``source`` of a request that leaves the server to detect the language of its texts."""

SAMPLE_CHARACTERS = 200
"""Number of characters at the start of a text from which its language is detected."""


class Detected(TypedDict):
    """A language with a confidence in percent, in LibreTranslate's format."""

    confidence: float
    language: str


class Models:
    """The models of a server; ``translators`` has them in the order of the command line."""

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
        """Return the model for a request, and the source language, given or detected.

        ``source`` may be ``AUTO``. If ``target`` is empty, the first model for the source language
        decides the target language.

        Raises:
            UserError: no model translates these languages.
        """
        # Source language -> the first model that translates it as the request asks.
        fitting: dict[str, Translator] = {}
        for (model_source, model_target), translator in self._by_languages.items():
            if source in (AUTO, model_source) and target in ("", model_target):
                fitting.setdefault(model_source, translator)
        if not fitting:
            pairs = [" to ".join(languages) for languages in self._by_languages]
            raise UserError(
                f"request: {source[:20]!r} to {target[:20]!r} is not supported: expected "
                f"{', '.join(pairs)}"
            )
        found = _detect(" ".join(texts), fitting)[0]
        return fitting[found["language"]], found

    def detect(self, text: str) -> list[Detected]:
        """Return the source languages of the models, the most probable language of a text first."""
        by_source: dict[str, Translator] = {}
        for (source, _), translator in self._by_languages.items():
            by_source.setdefault(source, translator)
        return _detect(text, by_source)

    def languages(self) -> list[dict[str, object]]:
        """Return each language with its possible target languages, in LibreTranslate's format.

        Languages that are only targets come last, without targets of their own. They are in the
        list because clients look up the names of languages there.
        """
        targets: dict[str, list[str]] = {}
        for source, target in self._by_languages:
            targets.setdefault(source, []).append(target)
        for _, target in self._by_languages:
            targets.setdefault(target, [])
        return [
            {"code": code, "name": language_name(code), "targets": into}
            for code, into in targets.items()
        ]


def translate_tokens(
    sentences: Sequence[tuple[str, list[str]]],
    stopped: Stop,
    *,
    translator: Translator,
    **options: object,
) -> list[Translation]:
    """Translate sentences with ``translator``; see `Translator.translate_tokens`."""
    return translator.translate_tokens(sentences, stopped, **options)  # type: ignore[arg-type]


def _detect(text: str, by_source: dict[str, Translator]) -> list[Detected]:
    """Return the languages that are keys of ``by_source``, the most probable one of a text first.

    ``by_source`` has for each language a model that translates from it. BPE splits text in the
    model's own language into few tokens, and text in another language into many. So the probability
    of a language is estimated from the number of tokens: each further token makes it smaller by a
    factor of e. (If all types of a vocabulary were equally probable, the factor would be the size
    of the vocabulary.)
    """
    if len(by_source) == 1:
        return [{"confidence": 100.0, "language": language} for language in by_source]
    sample = text[:SAMPLE_CHARACTERS]
    lengths = {
        language: translator.code_length(sample)
        for language, translator in by_source.items()
    }
    # Subtracting the least length does not change the ratios of the shares, and keeps their
    # exponents near 0.
    least = min(lengths.values())
    shares: dict[str, float] = {}
    for language, length in lengths.items():
        shares[language] = math.exp(least - length)
    total = sum(shares.values())
    return [
        {"confidence": round(100 * shares[language] / total, 1), "language": language}
        for language in sorted(shares, key=lambda language: -shares[language])
    ]


def example_text(code: str) -> str:
    """Return a sentence with which a user can try a model of this source language, or ""."""
    return _examples().get(code.partition("_")[0], "")


@cache
def _examples() -> dict[str, str]:
    """Return an example sentence of each language, by its code."""
    examples: dict[str, str] = yaml.safe_load(asset("languages.yaml"))
    return examples
