"""Raw text in, text out: preparation, search, unknown words, and text again."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices, cut, pad
from convs2s.decoding.parallel import Chunk, one_thread, search_in_threads, sentences_for_each
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.decoding.words import Form, Replacement, Splitter, cut_overlong, replace_unknown
from convs2s.errors import UserError
from convs2s.model_file import ModelDescription, describe_model, load_model, load_weights
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Shortlisted
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import detruecase

if TYPE_CHECKING:
    from convs2s.decoding.inspection import AttentionMap
    from convs2s.models.ensemble import Ensemble
    from convs2s.models.network import Network

LINES_PER_CHUNK = 2048
"""Lines that are read, sorted by length and translated together; memory does not grow further."""

_OWN = {"task", "architecture", "training"}  # what may differ between the models of an ensemble
ALIKE = [part.name for part in fields(ModelDescription) if part.name not in _OWN]
"""What the models of an ensemble must have in common."""


_OF_A_HYPOTHESIS = ("text", "words", "tokens", "score", "replacements", "alignment")
"""What tells a hypothesis from others of its line."""


@dataclass(frozen=True)
class Translation:
    """One translated line; the fields are those of the workflow's JSON lines.

    Lines count from 1. ``source`` is the line that was given: raw text, or tokens where those were
    asked for; ``text`` is of the same form. What ends in ``_before`` still has ``<unk>``. The score
    is log-likelihood / |y|^alpha. Replacements have positions that count words. ``alignment`` has
    for each of ``tokens`` the place in ``source_tokens`` with the most attention, from 0; it is
    None where no network has attention. ``n_best`` are the best hypotheses, this one first, where
    they were asked for; so is ``attention``, layer by layer, which no JSON line has.
    """

    line: int
    source: str
    source_words: list[str]
    source_tokens: list[str]
    text: str
    words: list[str]
    text_before: str
    words_before: list[str]
    tokens: list[str]
    score: float
    replacements: list[Replacement]
    alignment: list[int] | None
    precision: str
    n_best: list["Translation"] = field(default_factory=list)
    attention: "AttentionMap | None" = field(default=None, compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return the fields for one JSON line; of each of ``n_best`` only what is its own."""
        fields = dict(vars(self))
        del fields["n_best"]
        del fields["attention"]
        listed = []
        for best in self.n_best:
            listed.append({name: getattr(best, name) for name in _OF_A_HYPOTHESIS})
        return fields | {"n_best": listed} if listed else fields


class LineTranslator:
    """One model, or several as an ensemble, with everything from raw text to text."""

    def __init__(
        self,
        models: Sequence[Path],
        settings: DecodingSettings,
        device: str,
        *,
        pretokenized: bool = False,
        threads: int = 1,
    ) -> None:
        """Load the models; several make an ensemble.

        If ``pretokenized``, lines and translations are the model's tokens, separated by blanks, and
        unknown ones are allowed. On a CPU as many batches are searched at a time as it has
        ``threads``. Models that do not fit together, and replacing unknown words where no model has
        attention, are refused with a UserError.
        """
        self.models = models
        self._files = {path.absolute(): _stamp(path) for path in models if path.is_file()}
        self.ensemble, self.description = load_searched(models, device, settings)
        self.pretokenized = pretokenized
        self.threads = threads if device == "cpu" else 1
        self._search_by(settings)
        self.source, self.target = self.description.vocabularies()
        languages = self.description.languages
        form: Form = "tokens" if pretokenized else "raw"
        self._split = Splitter(self.description, languages["source"], form)
        self._target_side = Preparation(self.description.preparation, languages["target"])
        self._of_words = self.description.bpe_codes is None
        self._is_truecased = bool(self.description.truecasers)

    def _search_by(self, settings: DecodingSettings) -> None:
        if settings.replace_unknown and not self.ensemble.attends:
            raise UserError(
                f"{self.models[0]}: has no attention, by which unknown words are replaced: "
                "translate with replace_unknown: false (--no-replace-unknown)"
            )
        self.settings = settings.model_copy(update={"precision": self.ensemble.precision})
        of_model = settings.vocabulary_selection == "model"
        self.shortlist = self.description.shortlist if of_model else None

    def searching_by(self, settings: DecodingSettings) -> "LineTranslator":
        """Return a translator with the same models in memory that searches in another way.

        Precision and average stay those that the models were loaded with.
        """
        other = copy(self)
        other._search_by(settings)
        return other

    def translate(
        self,
        lines: Iterable[str],
        chunk: int | None = None,
        n_best: int | None = None,
    ) -> Iterator[Translation]:
        """Translate lines; the results come in the lines' order, ``chunk`` at a time."""
        rest = enumerate(lines, start=1)
        while numbered := list(islice(rest, chunk or LINES_PER_CHUNK)):
            yield from self.translate_chunk(numbered, n_best)

    def translate_chunk(
        self,
        lines: Chunk,
        n_best: int | None = None,
    ) -> list[Translation]:
        """Translate numbered lines together, and return a translation for each, in their order.

        ``n_best`` is how many of the best hypotheses each has in its ``n_best``; None: none.
        """
        sources = [self.prepare(text, number) for number, text in lines]
        searched = self._search_in_batches(sources)
        translations = []
        for (number, text), source, hypotheses in zip(lines, sources, searched, strict=True):
            wanted = hypotheses[: n_best or 1]
            finished = [self._finish(number, text, source, hypothesis) for hypothesis in wanted]
            best = finished[0]
            if n_best is not None:
                best = replace(best, n_best=finished)
            translations.append(best)
        return translations

    def _search_in_batches(self, sources: Sequence[Sequence[str]]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, the best first."""
        lengths = np.array([len(tokens) for tokens in sources])
        # Sentences of similar length share a batch; an empty one needs no search.
        order = np.argsort(lengths, kind="stable")[np.count_nonzero(lengths == 0) :]
        most = sentences_for_each(len(order), self.threads, self.settings.batch_sentences)
        batches = list(cut(order, lengths, most, self.settings.batch_tokens))

        def search(places: Indices, stopped: Event) -> list[list[Hypothesis]]:
            return self.search([sources[place] for place in places], stopped)

        found = search_in_threads(search, batches, self.threads)
        empty = Hypothesis([], 0.0, [] if self.ensemble.attends else None)
        hypotheses = [[empty] for _ in sources]
        for places, results in zip(batches, found, strict=True):
            for place, result in zip(places, results, strict=True):
                hypotheses[place] = result
        return hypotheses

    def files(self) -> list[Path]:
        """Return the model files, to load more of them than a search asks.

        A UserError says that one is not there any more, or not the one that was loaded.
        """
        for path, stamp in self._files.items():
            if not path.is_file() or _stamp(path) != stamp:
                raise UserError(f"{path}: was changed since it was loaded: load it again")
        return list(self._files)

    @cached_property
    def _networks(self) -> "list[Network]":
        return [load_model(path)[0] for path in self.files()]

    def attention(self, translation: Translation) -> "AttentionMap":
        """Return the attention of a translation; of an ensemble, that of network after network."""
        from convs2s.decoding.inspection import attention_map, layer_attention

        attending = [network for network in self._networks if network.attends]
        if not attending:
            raise UserError(f"{self.models[0]}: has no attention to show")
        source = self.source.encode(translation.source_tokens)
        target = self.target.encode(translation.tokens)
        layers = [layer_attention(network, source, target) for network in attending]
        return attention_map(layers, translation.source_tokens, translation.tokens)

    def prepare(
        self,
        text: str,
        number: int,
    ) -> list[str]:
        """Return the tokens that the model reads for a line; what it cuts is said."""
        return cut_overlong(self._split(text), self.ensemble.positions("source"), number, text)

    def search(
        self,
        tokens: Sequence[Sequence[str]],
        stopped: Event,
    ) -> list[list[Hypothesis]]:
        """Search for the outputs of the tokens of sentences, none of them empty.

        ``stopped`` is set once nobody wants the result any more. Scores that are not finite, so
        that it finds none, are a UserError.
        """
        rows = [self.source.encode(sentence) for sentence in tokens]
        shortlist: Shortlisted | None = None
        if self.shortlist is not None:
            shortlist = Shortlisted(*self.shortlist.of_sentences(rows))
        results = beam_search(self.ensemble, pad(rows), self.settings, shortlist, stopped.is_set)
        if not all(results) and not stopped.is_set():
            names = " ".join(map(str, self.models))
            raise UserError(
                f"{names}: finds no translation: its scores are not finite numbers; train or "
                "import it again"
            )
        return results

    def _finish(
        self,
        number: int,
        text: str,
        source: list[str],
        hypothesis: Hypothesis,
    ) -> Translation:
        tokens = self.target.decode(hypothesis.tokens)
        alignment = hypothesis.alignment
        after = tokens
        replacements: list[Replacement] = []
        if alignment is not None and self.settings.replace_unknown:
            dictionary = self.description.dictionary
            after, replacements = replace_unknown(tokens, alignment, source, dictionary)
            for row in replacements:  # whose positions are to count words
                row["position"] = self._word_position(tokens, row["position"])
                row["source_position"] = self._word_position(source, row["source_position"])
        return Translation(
            line=number,
            source=text,
            source_words=self._words(source),
            source_tokens=source,
            text=self._text(after),
            words=self._target_words(after),
            text_before=self._text(tokens),
            words_before=self._target_words(tokens),
            tokens=tokens,
            score=hypothesis.score,
            replacements=replacements,
            alignment=alignment,
            precision=self.ensemble.precision,
        )

    def _text(self, tokens: Sequence[str]) -> str:
        if self.pretokenized:
            return " ".join(tokens)
        return self._target_side.restore(" ".join(self._target_words(tokens)))

    def _target_words(self, tokens: Sequence[str]) -> list[str]:
        words = self._words(tokens)
        return detruecase(words) if self._is_truecased else words

    def _words(self, tokens: Sequence[str]) -> list[str]:
        """Return the words of tokens; those of a word model are words already, ``@@`` or not."""
        return list(tokens) if self._of_words else join(" ".join(tokens)).split()

    def _word_position(
        self,
        tokens: Sequence[str],
        position: int,
    ) -> int:
        if self._of_words:
            return position
        return sum(not token.endswith("@@") for token in tokens[:position])


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what tells a file from another one of its name, and from itself after a change."""
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


@contextmanager
def translator_of_job(
    models: Sequence[Path],
    settings: DecodingSettings,
    *,
    device: str,
    threads: int,
) -> Iterator[LineTranslator]:
    """Yield the translator of a job, which holds its GPU, with so many threads."""
    from convs2s.devices import held_device

    with held_device(device) as own:
        yield LineTranslator(models, settings, own, threads=threads)


def load_searched(
    models: Sequence[Path],
    device: str,
    settings: DecodingSettings,
) -> tuple["Ensemble | OnnxEnsemble", ModelDescription]:
    """Load what a search asks, without torch where ONNX Runtime serves it: on a CPU, but for bf16.

    Errors are those of ``load_ensemble``, and a UserError for int8 where there is none.
    """
    precision = settings.precision
    runs_onnx = device == "cpu" and all(
        describe_model(path).architecture.runs_onnx for path in models
    )
    if precision == "auto":
        precision = "int8" if runs_onnx else "fp32"
        if device != "cpu":
            from convs2s.devices import has_bf16  # which asks torch

            precision = "bf16" if has_bf16() else "fp32"
        print(f"precision: auto is {precision} here", file=sys.stderr)
        settings = settings.model_copy(update={"precision": precision})
    if precision == "int8" and not runs_onnx:
        raise UserError(
            f"{models[0]}: precision: int8 is for networks of kind: convs2s on a CPU: translate "
            "with precision: bf16 (--precision bf16)"
        )
    if precision == "bf16" or not runs_onnx:
        return load_ensemble(models, device, settings)
    loaded = [load_weights(path) for path in models]
    descriptions = [description for _, description in loaded]
    _check_alike(models, descriptions)
    networks = [Weights(arrays, about.architecture, about.sizes) for arrays, about in loaded]
    try:
        return OnnxEnsemble(networks, precision, settings.ensemble), descriptions[0]
    except ValueError:
        return load_ensemble(models, device, DecodingSettings())  # says what is wrong


def load_ensemble(
    models: Sequence[Path],
    device: str,
    settings: DecodingSettings,
) -> tuple["Ensemble", ModelDescription]:
    """Load the model files of an ensemble for torch.

    A UserError refuses models that do not fit together or cannot compute in the precision here.
    """
    from convs2s.devices import check_precision
    from convs2s.models.ensemble import Ensemble

    precision = "fp32" if settings.precision == "auto" else settings.precision
    check_precision(precision, device)
    with one_thread():  # a pool of threads would not survive the fork of workers
        loaded = [load_model(path, device) for path in models]
        networks = [network for network, _ in loaded]
        descriptions = [description for _, description in loaded]
        _check_alike(models, descriptions)
        if settings.cuda_graphs and device == "cuda":
            from convs2s.models.recorded_ensemble import RecordedEnsemble  # saves others its start

            return RecordedEnsemble(networks, settings.ensemble, precision), descriptions[0]
        return Ensemble(networks, settings.ensemble, precision), descriptions[0]


def _check_alike(models: Sequence[Path], descriptions: Sequence[ModelDescription]) -> None:
    first = descriptions[0]
    for path, description in zip(models, descriptions, strict=True):
        for name in ALIKE:
            if getattr(first, name) != getattr(description, name):
                raise UserError(
                    f"{path}: cannot form an ensemble with {models[0]}: their {name} differ; an "
                    "ensemble's models differ in the seed of their training or in their network "
                    "alone"
                )
