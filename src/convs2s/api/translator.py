"""A model in memory, for programs and notebooks: texts in, translations and scores out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, TypedDict, Unpack, get_args

import torch

from convs2s.api.texts import check_text, check_texts
from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.config.messages import validated
from convs2s.config.options import CommandOptions, Device
from convs2s.config.section import PositiveInt, Section
from convs2s.decoding.rescoring import PairScore, PairScorer, score_pairs
from convs2s.decoding.translate import LineTranslator, Translation
from convs2s.devices import pick_device
from convs2s.errors import UserError
from convs2s.models.ensemble import Average
from convs2s.models.kernels.quantized_linear import Precision

OF_A_MODEL = {"cuda_graphs", "ensemble", "precision"}
"""The settings of ``DecodingSettings`` that hold for as long as a model is in memory."""


class SearchSettings(TypedDict, total=False):
    """The other ones: what each means, and its default, docs/configuration.md says."""

    beam: int
    length_penalty: float
    minimum_length: int
    maximum_length: Mapping[str, float]
    unknown_penalty: float
    finished: Literal["replace", "leave"]
    replace_unknown: bool
    vocabulary_selection: Literal["model", "full"]
    batch_sentences: int
    batch_tokens: int | None


class _Results(Section):
    """What a call wants besides the best translations."""

    n_best: PositiveInt = 1
    """How many of the best hypotheses each has."""
    attention: bool = False
    """Whether each has its attention."""


class Translator:
    """One model, or several as an ensemble.

    ::

        translator = convs2s.Translator.load("model.safetensors")
        (found,) = translator.translate(["The man sees two red cars."], beam=5)
        print(found.text, found.score)
    """

    def __init__(self, lines: LineTranslator, device: str) -> None:
        """Take what is in memory; ``load`` reads it from files.

        Args:
            lines: the models with everything from raw text to text.
            device: where they are.
        """
        self._lines, self.device = lines, device

    @cached_property
    def _scorer(self) -> PairScorer:
        form: Literal["tokens", "raw"] = "tokens" if self._lines.pretokenized else "raw"
        return PairScorer(self._lines.ensemble, self._lines.description, self.device, form)

    @classmethod
    def load(
        cls,
        path: str | Path | Sequence[str | Path],
        *,
        device: Device = "auto",
        threads: int | None = None,
        precision: Precision | Literal["auto"] = "fp32",
        ensemble: Average = "probabilities",
        cuda_graphs: bool = False,
        pretokenized: bool = False,
    ) -> Self:
        """Load a model file, or several that make an ensemble.

        Args:
            path: the file, or a list of files.
            device: where to compute; auto: on a GPU where there is one.
            threads: CPU threads of this whole process; None: as torch has it.
            precision: of the arithmetic of a search; ``auto`` is the fastest here.
            ensemble: what an ensemble averages at each step.
            cuda_graphs: whether a GPU records a step and replays it.
            pretokenized: all texts are the model's own tokens, separated by blanks, such as lo@@ w.

        Raises:
            UserError: a file is no model, the models of an ensemble do not fit together, or this
                machine has no such device or no arithmetic of this precision.
        """
        if threads is not None:
            torch.set_num_threads(validated(CommandOptions, {"threads": threads}, "load").threads)
        stated = {"precision": precision, "ensemble": ensemble, "cuda_graphs": cuda_graphs}
        stated["replace_unknown"] = False
        settings = validated(DecodingSettings, stated, "load")
        device_name = _picked_device(device)
        models = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
        if not models:
            raise UserError("load: expected a model file, found an empty list")
        at_a_time = torch.get_num_threads()
        lines = LineTranslator(
            models, settings, device_name, pretokenized=pretokenized, threads=at_a_time
        )
        return cls(lines, device_name)

    @property
    def languages(self) -> dict[str, str]:
        """The languages of the ``source`` and of the ``target``."""
        return dict(self._lines.description.languages)

    @property
    def attends(self) -> bool:
        """Whether a model has attention, which alignments and replaced words rest on."""
        return self._lines.ensemble.attends

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        attention: bool = False,
        **settings: Unpack[SearchSettings],
    ) -> list[Translation]:
        """Translate texts, one sentence each; they are batched by their lengths.

        Args:
            texts: raw text; one without any word has an empty translation.
            n_best: how many of the best hypotheses ``Translation.n_best`` has; a search that ends
                at its longest output may find fewer.
            attention: whether each hypothesis has its attention, layer by layer, which takes one
                more pass through the network.
            settings: how to search, as ``config/decodings.yaml`` says it: ``beam=5`` and so on.

        Returns:
            A translation for each text, in their order.

        Raises:
            UserError: a text or a setting is not what it should be, or there is no attention.
        """
        checked = check_texts(texts, "texts")
        lines = self._lines.searching_by(self._settings(settings))
        self._check_results({"n_best": n_best, "attention": attention}, lines.settings.beam)
        found = list(lines.translate(checked, n_best=n_best))
        return [self._attended(one) for one in found] if attention else found

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[PairScore]:
        """Score given translations: the log-probability of each target given its source.

        Args:
            pairs: a source and a target each, raw text both.

        Returns:
            For each pair its log-probability in nats and the target's tokens, ``</s>`` counted.

        Raises:
            UserError: they are no pairs of texts.
        """
        if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
            raise UserError("pairs: expected a list of pairs (source, target)")
        checked = [_checked_pair(pair, f"pairs:{number}") for number, pair in enumerate(pairs, 1)]
        return list(score_pairs(self._scorer, checked))

    def _settings(self, stated: SearchSettings) -> DecodingSettings:
        unknowing = {} if self.attends else {"replace_unknown": False}
        known = {name: getattr(self._lines.settings, name) for name in OF_A_MODEL}
        settings = validated(DecodingSettings, {**known, **unknowing, **stated}, "translate")
        if isinstance(settings.length_penalty, TunedLengthPenalty):
            raise UserError("translate: length_penalty: expected a number")
        return settings

    def _check_results(self, stated: Mapping[str, object], beam: int) -> None:
        results = validated(_Results, stated, "translate")
        if results.attention and not self.attends:
            raise UserError("translate: attention: a model of kind lstm has none: leave it out")
        if results.n_best > beam:
            raise UserError(
                f"translate: n_best: a beam of {beam} finds no more than {beam} translations, and "
                f"{results.n_best} are asked for: raise beam"
            )

    def _attended(self, found: Translation) -> Translation:
        n_best = [replace(one, attention=self._lines.attention(one)) for one in found.n_best]
        return replace(found, n_best=n_best, attention=n_best[0].attention)

    def __repr__(self) -> str:
        """Say what it is: task, languages, how many networks, where."""
        description, networks = self._lines.description, len(self._lines.ensemble.networks)
        languages = f"{self.languages['source']}-{self.languages['target']}"
        return f"<Translator {description.task} {languages}, {networks} x, {self.device}>"


def _picked_device(name: str) -> str:
    if name not in get_args(Device):
        known = ", ".join(get_args(Device))
        raise UserError(f"load: device: expected one of {known}, not {name!r}")
    return pick_device(name)


def _checked_pair(pair: object, place: str) -> tuple[str, str]:
    if isinstance(pair, str | bytes) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise UserError(f"{place}: expected a pair (source, target) of texts")
    source, target = (check_text(text, place) for text in pair)
    return source, target
