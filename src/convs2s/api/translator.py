"""A model in memory that translates and scores texts, for programs and notebooks."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from convs2s.config.decoding import (
    SPLIT_SENTENCES,
    DecodingSettings,
    TunedLengthPenalty,
)
from convs2s.config.messages import validated
from convs2s.config.options import Device
from convs2s.config.section import PositiveInt, Processes, Section, Values
from convs2s.decoding.device import search_device
from convs2s.decoding.parallel import Stop, StoppedError
from convs2s.decoding.split_lines import SplitLines
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.limits import LONGEST_LINE_BYTES
from convs2s.models.steps import Average, Precision

if TYPE_CHECKING:
    from convs2s.decoding.rescoring import PairScore, PairScorer

OF_A_MODEL = {"cuda_graphs", "ensemble", "precision"}
"""The settings of ``DecodingSettings`` that are fixed when a model is loaded."""


class _Arguments(Section):
    """The arguments of ``load`` and ``translate`` that are not settings of the search."""

    device: Device = "auto"
    threads: Processes | None = None
    pretokenized: bool = False
    n_best: PositiveInt = 1  # number of hypotheses in each translation
    attention: bool = False  # whether each hypothesis has its attention
    # Whether each sentence of a text is translated by itself; None means True, or False if the
    # texts are ``pretokenized``.
    split_sentences: bool | None = None


class Translator:
    """One model, or several as an ensemble.

    A pickle of a translator contains the paths and checksums of its model files and the arguments
    of ``load``. Unpickling it loads the files again. A translator never changes, so ``copy`` and
    ``deepcopy`` return the translator itself.

    Examples:
        >>> translator = convs2s.Translator.load("model.safetensors")
        >>> (translation,) = translator.translate(["The man sees two red cars."], beam=5)
        >>> print(translation.text)
        L'homme voit deux voitures rouges.
    """

    def __init__(
        self,
        lines: LineTranslator,
        device: str,
        paths: Sequence[str],
        arguments: Values,
    ) -> None:
        """Wrap models that are in memory on a device. Use ``load`` to read models from files.

        ``paths`` and ``arguments`` are the absolute paths and the other arguments with which
        ``load`` loads the same models again.
        """
        self._lines = lines
        self.device = device
        self._paths = paths
        self._arguments = arguments

    def __copy__(self) -> Self:
        """Return this translator, which never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return this translator, which never changes."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the content of a pickle: how to load the models again, and their checksums.

        Raises:
            UserError: a file was removed or changed since it was loaded.
        """
        self._lines.files()  # raises the error if a file has changed
        checksums = {path: sha256(path) for path in self._paths}
        return _loaded_again, (type(self), self._paths, checksums, self._arguments)

    @cached_property
    def _scorer(self) -> "PairScorer":
        """The scorer of pairs. At its first use, the models are loaded again, into torch."""
        from convs2s.decoding.rescoring import PairScorer

        form: Literal["tokens", "raw"] = "tokens" if self._lines.pretokenized else "raw"
        average = self._lines.settings.ensemble
        return PairScorer.load(self._lines.files(), self.device, form, average)

    @classmethod
    def load(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        device: Device = "auto",
        threads: int | None = None,
        precision: Precision | Literal["auto"] = "fp32",
        ensemble: Average = "probabilities",
        cuda_graphs: bool = True,
        pretokenized: bool = False,
    ) -> Self:
        """Load a model file, or the files of several models as an ensemble.

        Args:
            path: the file, or a list of files.
            device: where to compute; ``auto`` means a GPU if there is one. If it is a GPU, torch
                multiplies all float32 matrices of this process in TF32 from then on.
            threads: number of batches that are searched at the same time on a CPU; None means the
                number of cores.
            precision: precision of the arithmetic in a search; ``auto`` means the fastest on this
                machine.
            ensemble: what an ensemble averages at each step.
            cuda_graphs: whether a step of the search is recorded on a GPU and then replayed.
            pretokenized: whether all texts are the model's tokens, separated by blanks, such as
                lo@@ w, instead of raw text.

        Raises:
            UserError: a file is not a model, the models of an ensemble do not fit together, or this
                machine lacks the device or the precision.
        """
        loading = {"device": device, "threads": threads, "pretokenized": pretokenized}
        of_the_models = {
            "precision": precision,
            "ensemble": ensemble,
            "cuda_graphs": cuda_graphs,
        }
        # `translate` has its own setting for the replacement of unknown words. Here it is switched
        # off: its default is on, so a model without attention could not be loaded.
        decoding = {**of_the_models, "replace_unknown": False}
        validated(_Arguments, loading, "load")
        settings = validated(DecodingSettings, decoding, "load")
        device_name = search_device(device)
        given = [path] if isinstance(path, str | Path) else path
        if not given:
            raise UserError("load: expected a model file, found an empty list")
        paths = list(map(Path, given))
        lines = LineTranslator(
            paths,
            settings,
            device_name,
            pretokenized=pretokenized,
            threads=threads or os.cpu_count() or 1,
        )
        absolute = [str(path.absolute()) for path in paths]
        return cls(lines, device_name, absolute, {**loading, **of_the_models})

    @property
    def task(self) -> str:
        """The task for which the models were trained."""
        return self._lines.description.task

    @property
    def languages(self) -> dict[str, str]:
        """The language codes of the models: that of the ``source`` and that of the ``target``."""
        return dict(self._lines.description.languages)

    @property
    def attends(self) -> bool:
        """Whether any of the models has attention, which alignment and word replacement need."""
        return self._lines.ensemble.attends

    @property
    def most_tokens(self) -> int:
        """The maximum number of tokens of a sentence that the models can read."""
        return self._lines.most_tokens

    def tokens(self, text: str) -> list[str]:
        """Return all tokens of a sentence, which may be more than ``most_tokens``."""
        return self._lines.tokens(text)

    def code_length(self, text: str) -> int:
        """Return the number of tokens of a text; an unknown token counts once per character.

        The number is small if the text is in the models' source language, so the server detects the
        language of a text by it.
        """
        length = 0
        for token in self.tokens(text):
            is_known = token in self._lines.source  # the source vocabulary
            length += 1 if is_known else len(token)
        return length

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        attention: bool = False,
        split_sentences: bool | None = None,
        **settings: object,
    ) -> list[Translation]:
        """Translate texts and return their translations in the same order.

        Each sentence of a text is translated by itself, unless ``split_sentences`` is False.
        Sentences of similar length are translated in the same batch.

        Args:
            texts: raw texts. The translation of a text without any word is empty.
            n_best: number of hypotheses in ``Translation.n_best``, the best first. If the search
                stops at the longest output, there may be fewer.
            attention: whether each hypothesis contains its attention in each layer, which takes one
                more pass through the network.
            split_sentences: whether each sentence of a text is translated by itself. The text still
                gets one translation, which joins those of its sentences (docs/translating.md). None
                means True for raw text, and False for a model's tokens, which cannot be split.
            settings: any setting of ``DecodingSettings`` (docs/configuration.md) that ``load`` does
                not take, such as ``beam=5``.

        Raises:
            UserError: a text or a setting is not valid, or no model has the attention that is
                needed.
        """
        checked = check_texts(texts, "texts")
        result_arguments = {
            "n_best": n_best,
            "attention": attention,
            "split_sentences": split_sentences,
        }
        lines = self._searching_by(settings, result_arguments)
        if split_sentences and lines.pretokenized:
            raise UserError(
                "translate: split_sentences: can split raw text, but not a model's tokens"
            )
        if split_sentences is None:
            split_sentences = SPLIT_SENTENCES and not lines.pretokenized
        splitting_language = self.languages["source"] if split_sentences else None
        split = SplitLines(list(enumerate(checked, start=1)), splitting_language)
        translations = lines.translate_chunk(split.sentences, n_best)
        if attention:
            translations = list(map(self._with_attention, translations))
        return split.joined(translations)

    def translate_tokens(
        self,
        sentences: Sequence[tuple[str, list[str]]],
        stopped: Stop,
        *,
        n_best: int = 1,
        attention: bool = False,
        **settings: object,
    ) -> list[Translation]:
        """Translate sentences whose tokens are given, and return translations in the same order.

        Args:
            sentences: for each sentence its text and its tokens, as ``tokens`` returns them, but at
                most ``most_tokens``.
            stopped: another thread may set this event if nobody needs the translations any more.
            n_best: as in ``translate``.
            attention: as in ``translate``.
            settings: as in ``translate``.

        Raises:
            StoppedError: ``stopped`` was set before the translations were made.
            UserError: a setting is not valid, or no model has the attention that is needed.
        """
        result_arguments = {"n_best": n_best, "attention": attention}
        lines = self._searching_by(settings, result_arguments)
        texts = [text for text, _ in sentences]
        translations = lines.translate_prepared(
            list(enumerate(texts, start=1)),
            [tokens for _, tokens in sentences],
            n_best,
            stopped,
        )
        if not attention:
            return translations
        attending = []
        for translation in translations:
            if stopped.is_set():
                raise StoppedError
            attending.append(self._with_attention(translation))
        return attending

    def _searching_by(
        self,
        settings: Mapping[str, object],
        result_arguments: Mapping[str, object],
    ) -> LineTranslator:
        """Return a translator with these settings of the search.

        ``result_arguments`` are the arguments of ``translate`` that say what it returns. They are
        checked.

        Raises:
            UserError: a setting or an argument is not valid, or no model has the attention that is
                needed.
        """
        of_the_model = sorted(OF_A_MODEL & settings.keys())
        if of_the_model:
            raise UserError(
                f"translate: {of_the_model[0]}: is a setting of the model: pass it to load"
            )
        decoding = {**self._lines.settings.model_dump(include=OF_A_MODEL), **settings}
        if not self.attends:
            # Unknown words are replaced by default, but only a model with attention can do that.
            decoding.setdefault("replace_unknown", False)
        search = validated(DecodingSettings, decoding, "translate")
        if isinstance(search.length_penalty, TunedLengthPenalty):
            raise UserError("translate: length_penalty: expected a number")
        lines = self._lines.searching_by(search)
        arguments = validated(_Arguments, result_arguments, "translate")
        if arguments.attention and not self.attends:
            raise UserError(
                "translate: attention: none of the models has attention: leave it out"
            )
        lines.settings.check_n_best(arguments.n_best, "translate: n_best")
        return lines

    def _with_attention(self, translation: Translation) -> Translation:
        """Return a translation with the attention of each of its hypotheses added."""
        hypotheses = []
        for hypothesis in translation.n_best:
            attention = self._lines.attention(hypothesis)
            hypotheses.append(replace(hypothesis, attention=attention))
        return replace(
            translation, n_best=hypotheses, attention=hypotheses[0].attention
        )

    def score(self, pairs: Iterable[tuple[str, str]]) -> "list[PairScore]":
        """Score given translations, and return a score for each pair in the same order.

        A pair is a source and a target, both raw text (or tokens, if the model was loaded with
        ``pretokenized``). Its score contains the log-probability of the target given the source, in
        nats, and the number of target tokens, ``</s>`` included.

        Raises:
            UserError: an item of ``pairs`` is not a pair of texts.
        """
        if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
            raise UserError("pairs: expected a list of pairs (source, target)")
        checked: list[tuple[str, str]] = []
        for number, pair in enumerate(pairs, start=1):
            place = f"pairs:{number}"
            # A text of two characters is a sequence of length 2, too.
            is_sequence = isinstance(pair, Sequence) and not isinstance(
                pair, str | bytes
            )
            if not is_sequence or len(pair) != 2:
                raise UserError(f"{place}: expected a pair (source, target) of texts")
            source, target = pair
            checked.append((check_text(source, place), check_text(target, place)))
        from convs2s.decoding.rescoring import score_pairs

        return list(score_pairs(self._scorer, checked))

    def __repr__(self) -> str:
        """Return the task, the languages, the number of models and the device in one line."""
        languages = f"{self.languages['source']}-{self.languages['target']}"
        return f"<Translator {self.task} {languages}, {len(self._lines.models)} x, {self.device}>"


def _loaded_again(
    kind: type[Translator],
    paths: Sequence[str],
    checksums: Mapping[str, str],
    arguments: Values,
) -> Translator:
    """Return a pickled translator, with its models loaded from the same files again.

    Raises:
        UserError: as in ``Translator.load``; or a file was moved or changed since the pickling.
    """
    for path, checksum in checksums.items():
        if not Path(path).is_file():
            raise UserError(
                f"{path}: no such file here: a pickled Translator loads its model files again, so "
                "they have to be at the same paths on every machine"
            )
        if sha256(path) != checksum:
            raise UserError(
                f"{path}: not the same file as when the Translator was pickled: put back that "
                "file, or load this one and pickle the Translator again"
            )
    return kind.load(paths, **arguments)


def check_texts(texts: object, name: str) -> list[str]:
    """Check that a model can translate texts, and return them as a list.

    The lines of files are checked in the same way (``convs2s.files.text``).

    Raises:
        UserError: ``texts`` is not a list of texts; or a text has more than ``LONGEST_LINE_BYTES``
            bytes of UTF-8, is not valid Unicode, or contains a NUL or a line feed. The message
            begins with ``name`` and the number of the text, counted from 1.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise UserError(
            f"{name}: expected a list of texts, one sentence each, found {_type_of(texts)}: put a "
            "single text into a list, or call list() on a column of a table"
        )
    return [
        check_text(text, f"{name}:{number}")
        for number, text in enumerate(texts, start=1)
    ]


def check_text(text: object, place: str) -> str:
    """Check that a model can translate a text, as in ``check_texts``, and return the text.

    The message of the UserError begins with ``place``, such as ``texts:3``.
    """
    if not isinstance(text, str):
        raise UserError(f"{place}: expected a text, found {_type_of(text)}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UserError(
            f"{place}: not Unicode: half a surrogate pair at character {error.start + 1}; decode "
            "the original bytes with their real encoding"
        ) from None
    if size > LONGEST_LINE_BYTES:
        raise UserError(
            f"{place}: a text of {size:,} bytes, but at most {LONGEST_LINE_BYTES:,} are allowed: "
            "pass one sentence at a time"
        )
    for character, name in {"\0": "the character NUL", "\n": "a line feed"}.items():
        if character in text:
            raise UserError(
                f"{place}: contains {name} at character {text.index(character) + 1}: expected one "
                "sentence of plain text"
            )
    return text


def _type_of(value: object) -> str:
    """Return the type of a wrong argument for a message."""
    if isinstance(value, str):
        return "one text"
    return f"the Python type {type(value).__name__}"
