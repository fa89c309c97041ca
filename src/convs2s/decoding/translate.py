"""Translate raw text to text.

The steps are: prepare the source, search, replace unknown words, restore plain text.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convs2s.config.decoding import DecodingSettings
from convs2s.data.batches import Indices, cut, pad
from convs2s.decoding.device import held_search_device
from convs2s.decoding.inspection import (
    AttentionMap,
    ReadsAttention,
    attention_map,
    attention_reader,
)
from convs2s.decoding.parallel import (
    Chunk,
    Stop,
    StoppedError,
    in_chunks,
    one_thread,
    search_in_threads,
    sentences_per_batch,
)
from convs2s.decoding.search import Hypothesis, beam_search
from convs2s.decoding.words import (
    Form,
    Replacement,
    Splitter,
    cut_overlong,
    held_positions,
    most_tokens,
    put_back,
    replace_unknown,
)
from convs2s.errors import UserError
from convs2s.model_file import (
    ModelDescription,
    describe_model,
    load_model,
    load_weights,
)
from convs2s.models.onnx_ensemble import OnnxEnsemble
from convs2s.models.onnx_graphs import Weights
from convs2s.models.steps import Shortlisted
from convs2s.text.bpe import join
from convs2s.text.preparation import Preparation
from convs2s.text.truecase import detruecase

if TYPE_CHECKING:
    from convs2s.models.ensemble import Ensemble

LINES_PER_CHUNK = 2048
"""Number of lines that are read, sorted by length and translated together.

It bounds the memory.
"""

_MAY_DIFFER = {"task", "architecture", "training", "int8_scales"}
ALIKE = [name for name in ModelDescription.model_fields if name not in _MAY_DIFFER]
"""Fields of a model's description that must be equal in all models of an ensemble."""


_LISTED_FIELDS = ("text", "words", "tokens", "score", "replacements", "alignment")
"""Fields that can differ between the hypotheses of an n-best list."""


@dataclass(frozen=True)
class Translation:
    """One translated line, with the fields of the workflow's JSON lines.

    - ``line`` counts from 1.
    - ``source`` is the line that was given: raw text or, for a pretokenized line, tokens. ``text``
      has the same form.
    - ``text_before`` and ``words_before`` are from before the replacement of unknown words, and
      still contain ``<unk>``.
    - ``score`` is log-likelihood / |y|^alpha.
    - ``replacements`` have positions in words, not in tokens.
    - ``alignment`` has, for each of ``tokens``, the index of the token in ``source_tokens`` with
      the most attention. It is None if no network has attention.
    - ``n_best`` has the best hypotheses, this one first, if the caller asked for them. Otherwise it
      is empty.
    - ``unknown_words`` has the source words with a token outside the source vocabulary, each once,
      in the order of the line.
    - ``attention`` is set only if the caller asked for it. It is not part of a JSON line.
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
    unknown_words: list[str] = field(default_factory=list)
    attention: AttentionMap | None = field(default=None, compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return the fields of an answer in JSON; ``n_best`` has only `_LISTED_FIELDS`.

        ``n_best`` and ``unknown_words`` are left out if they are empty, and ``attention`` always.
        """
        content = self.as_line()
        if self.unknown_words:
            content["unknown_words"] = self.unknown_words
        return content

    def as_line(self) -> dict[str, Any]:
        """Return the fields of a line of the workflow: `as_json` without ``unknown_words``.

        So the files have the same bytes as before that field was added.
        """
        content = dict(vars(self))
        del content["unknown_words"], content["attention"]
        listed = []
        for hypothesis in content.pop("n_best"):
            listed.append({name: getattr(hypothesis, name) for name in _LISTED_FIELDS})
        if listed:
            content["n_best"] = listed
        return content


class LineTranslator:
    """Translates lines with one model, or with several as an ensemble."""

    def __init__(
        self,
        models: Sequence[Path],
        settings: DecodingSettings,
        device: str,
        *,
        pretokenized: bool = False,
        threads: int = 1,
    ) -> None:
        """Load the models. Several models form an ensemble.

        If ``pretokenized``, lines and translations are the model's tokens, separated by blanks; a
        line may contain tokens that are not in the vocabulary. On a CPU, ``threads`` batches are
        searched at a time.

        Raises:
            UserError: the models do not fit together, or unknown words are to be replaced but no
                model has attention.
        """
        self.models = models
        # The stamps are taken before the files are loaded, so that `files` notices each later
        # change. A file that is missing is reported by `load_searched`.
        self._files = {
            path.absolute(): _stamp(path) for path in models if path.is_file()
        }
        self.ensemble, description = load_searched(models, device, settings)
        self.description = description
        self.pretokenized = pretokenized
        self.threads = threads if device == "cpu" else 1
        self._set_search(settings)
        self.source, self.target = description.vocabularies()
        form: Form = "tokens" if pretokenized else "raw"
        # Returns the tokens of a line, however many they are.
        self.tokens = Splitter(description, description.languages["source"], form)
        self._target_side = Preparation(
            description.preparation, description.languages["target"]
        )

    def _set_search(self, settings: DecodingSettings) -> None:
        if settings.replace_unknown and not self.ensemble.attends:
            raise UserError(
                f"{self.models[0]}: has no attention, which the replacement of unknown words "
                "needs; translate with `replace_unknown: false` (--no-replace-unknown)"
            )
        # The precision was fixed when the models were loaded, whatever `settings` say.
        self.settings = settings.model_copy(
            update={"precision": self.ensemble.precision}
        )
        uses_shortlist = settings.vocabulary_selection == "model"
        self.shortlist = self.description.shortlist if uses_shortlist else None

    def searching_by(self, settings: DecodingSettings) -> "LineTranslator":
        """Return a translator with the same models in memory, but with other search settings.

        The precision and the average of the ensemble stay as they were when the models were loaded.
        """
        translator = copy(self)
        translator._set_search(settings)
        return translator

    def translate(
        self, lines: Iterable[str], n_best: int | None = None
    ) -> Iterator[Translation]:
        """Translate lines in chunks, and yield the translations in the lines' order.

        ``n_best`` is as in `translate_chunk`.
        """
        for chunk in in_chunks(lines, LINES_PER_CHUNK):
            yield from self.translate_chunk(chunk, n_best)

    def translate_chunk(
        self, lines: Chunk, n_best: int | None = None
    ) -> list[Translation]:
        """Translate numbered lines together, and return their translations in the lines' order.

        Each translation has up to ``n_best`` hypotheses in its field ``n_best``; None leaves that
        field empty.
        """
        sources = [self.prepare(text, number) for number, text in lines]
        return self.translate_prepared(lines, sources, n_best)

    def prepare(self, text: str, number: int) -> list[str]:
        """Return the tokens that the model reads for a line.

        If the line is longer than the model can read, it is cut, with a warning that gives its
        ``number``.
        """
        return cut_overlong(self.tokens(text), self.most_tokens, number, text)

    @property
    def most_tokens(self) -> int:
        """The maximum number of tokens in a line, without ``</s>``."""
        return most_tokens(self.ensemble.positions("source"))

    def translate_prepared(
        self,
        lines: Chunk,
        sources: Sequence[list[str]],
        n_best: int | None = None,
        stopped: Stop | None = None,
    ) -> list[Translation]:
        """Translate numbered lines whose tokens are given; otherwise as `translate_chunk`.

        ``sources`` has the tokens of each line, at most `most_tokens`. Another thread may set
        ``stopped`` if the translations are no longer needed.

        Raises:
            StoppedError: ``stopped`` was set before the translations were made.
        """
        read_positions = [self._positions_to_read(source) for source in sources]
        read_tokens = []
        for source, positions in zip(sources, read_positions, strict=True):
            read_tokens.append([source[position] for position in positions])
        searched = self._search_in_batches(read_tokens, stopped)
        translations = []
        for (number, text), source, positions, hypotheses in zip(
            lines, sources, read_positions, searched, strict=True
        ):
            listed = [
                self._finish(number, text, source, positions, hypothesis)
                for hypothesis in hypotheses[: n_best or 1]
            ]
            best = listed[0]
            if n_best is not None:
                best = replace(best, n_best=listed)
            translations.append(best)
        return translations

    def _positions_to_read(self, source: Sequence[str]) -> Sequence[int]:
        """Return the positions of the tokens that the search reads.

        A BPE model has seen no ``<unk>`` in training. It would not write one, and it would
        translate the words around it badly. So the search does not read words of which the
        vocabulary has no token. `put_back` and `replace_unknown` copy them into the output.
        """
        if self.description.bpe_codes is None or not self.settings.replace_unknown:
            return range(len(source))
        return held_positions(source, self.source)

    def _search_in_batches(
        self,
        sources: Sequence[Sequence[str]],
        stopped: Stop | None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, the best first.

        An empty sentence is not searched for; its only hypothesis is empty.
        """
        lengths = np.array([len(tokens) for tokens in sources])
        # Sort by length, so that sentences of similar length share a batch.
        by_length = np.argsort(lengths, kind="stable")
        empty_sentences = np.count_nonzero(lengths == 0)
        # Empty sentences are the shortest, so they come first.
        order = by_length[empty_sentences:]
        batch_size = sentences_per_batch(
            len(order), self.threads, self.settings.batch_sentences
        )
        batches = list(cut(order, lengths, batch_size, self.settings.batch_tokens))

        def search(indices: Indices, stopped: Stop) -> list[list[Hypothesis]]:
            return self.search([sources[index] for index in indices], stopped)

        searched = search_in_threads(search, batches, self.threads, stopped)
        empty = Hypothesis([], 0.0, [] if self.ensemble.attends else None)
        hypotheses = [[empty] for _ in sources]
        for indices, results in zip(batches, searched, strict=True):
            for index, result in zip(indices, results, strict=True):
                hypotheses[index] = result
        return hypotheses

    def search(
        self, tokens: Sequence[Sequence[str]], stopped: Stop
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, the best first.

        ``tokens`` has the tokens of each sentence; no sentence may be empty. Another thread may set
        ``stopped`` if the result is no longer needed.

        Raises:
            StoppedError: ``stopped`` was set before the search was over.
            UserError: the models' scores are not finite, so that the search finds no hypothesis.
        """
        rows = [self.source.encode(sentence) for sentence in tokens]
        shortlist: Shortlisted | None = None
        if self.shortlist is not None:
            shortlist = Shortlisted(*self.shortlist.of_sentences(rows))
        results = beam_search(
            self.ensemble, pad(rows), self.settings, shortlist, stopped
        )
        if stopped.is_set():
            raise StoppedError
        if not all(results):
            names = " ".join(map(str, self.models))
            raise UserError(
                f"{names}: finds no translation, because its scores are not finite; train or "
                "import it again"
            )
        return results

    def _finish(
        self,
        number: int,
        text: str,
        source: list[str],
        positions: Sequence[int],
        hypothesis: Hypothesis,
    ) -> Translation:
        """Return the translation of a source by a hypothesis, with unknown words replaced.

        ``positions`` are those of the source tokens that were read.
        """
        tokens = self.target.decode(hypothesis.tokens)
        alignment = hypothesis.alignment
        if alignment is not None:
            tokens, alignment = put_back(tokens, alignment, positions, len(source))
        tokens_after = tokens  # after the replacement of unknown words
        replacements: list[Replacement] = []
        if alignment is not None and self.settings.replace_unknown:
            tokens_after, replacements = replace_unknown(
                tokens, alignment, source, self.description.dictionary
            )
            # Turn positions in tokens into positions in words.
            for item in replacements:
                item["position"] = self._word_position(tokens_after, item["position"])
                item["source_position"] = self._word_position(
                    source, item["source_position"]
                )
        words, translated = self._words_and_text(tokens_after)
        words_before, text_before = self._words_and_text(tokens)
        return Translation(
            line=number,
            source=text,
            source_words=self._words(source),
            source_tokens=source,
            text=translated,
            words=words,
            text_before=text_before,
            words_before=words_before,
            tokens=tokens,
            score=hypothesis.score,
            replacements=replacements,
            alignment=alignment,
            precision=self.ensemble.precision,
            unknown_words=self._unknown_words(source),
        )

    def _words_and_text(self, tokens: Sequence[str]) -> tuple[list[str], str]:
        """Return the words and the text of an output."""
        words = self._words(tokens)
        if self.description.truecasers:
            words = detruecase(words)
        if self.pretokenized:
            return words, " ".join(tokens)
        return words, self._target_side.restore(" ".join(words))

    def _words(self, tokens: Sequence[str]) -> list[str]:
        """Return the words that the tokens form.

        The tokens of a model without BPE are words already, even if they end in ``@@``.
        """
        if self.description.bpe_codes is None:
            return list(tokens)
        return join(" ".join(tokens)).split()

    def _unknown_words(self, tokens: Sequence[str]) -> list[str]:
        """Return the words of a source that have a token outside of the source vocabulary."""
        words = self._words(tokens)
        unknown = []
        word_position = 0
        for token in tokens:
            # A last token "@@" belongs to no word.
            if token not in self.source and word_position < len(words):
                unknown.append(words[word_position])
            ends_word = self.description.bpe_codes is None or not token.endswith("@@")
            if ends_word:
                word_position += 1
        return list(dict.fromkeys(unknown))  # each once

    def _word_position(self, tokens: Sequence[str], position: int) -> int:
        """Return the position of the word to which the token at ``position`` belongs."""
        if self.description.bpe_codes is None:
            return position
        # Each earlier word has exactly one token that does not end in @@: its last one.
        return sum(not token.endswith("@@") for token in tokens[:position])

    def files(self) -> list[Path]:
        """Return the model files, for callers that load or check them again.

        Raises:
            UserError: a file was removed or changed since it was loaded.
        """
        for path, stamp in self._files.items():
            if not path.is_file() or _stamp(path) != stamp:
                raise UserError(
                    f"{path}: was changed since it was loaded; load it again"
                )
        return list(self._files)

    @cached_property
    def _attention_readers(self) -> list[ReadsAttention]:
        """For each network that has attention, the function that computes it."""
        readers = map(attention_reader, self.files())
        return [reader for reader in readers if reader is not None]

    def attention(self, translation: Translation) -> AttentionMap:
        """Return the attention of a translation by layer.

        For an ensemble, the layers of its networks follow each other. Networks without attention
        are left out.

        Raises:
            UserError: no network has attention.
        """
        if not self._attention_readers:
            raise UserError(f"{self.models[0]}: has no attention to show")
        source = self.source.encode(translation.source_tokens)
        target = self.target.encode(translation.tokens)
        by_network = [read(source, target) for read in self._attention_readers]
        return attention_map(by_network, translation.source_tokens, translation.tokens)


@contextmanager
def translator_of_job(
    models: Sequence[Path],
    settings: DecodingSettings,
    *,
    device: str,
    threads: int,
) -> Iterator[LineTranslator]:
    """Yield a translator for a job of the workflow, with ``threads`` on a CPU.

    If it translates on a GPU, this process holds the GPU while the block runs.
    """
    with held_search_device(device) as held:
        yield LineTranslator(models, settings, held, threads=threads)


def load_searched(
    models: Sequence[Path],
    device: str,
    settings: DecodingSettings,
) -> tuple["Ensemble | OnnxEnsemble", ModelDescription]:
    """Load the models for a search.

    ONNX Runtime computes if the device is a CPU, the precision is fp32 or int8, and all networks
    can run in ONNX Runtime. torch is then not imported. Otherwise torch computes.

    The precision "auto" means:

    - bf16 on a GPU that supports it, and fp32 on another GPU;
    - int8 on a CPU if all networks can run in ONNX Runtime, and fp32 otherwise.

    Raises:
        UserError: as `load_ensemble`, or the precision is int8 but ONNX Runtime does not compute.
    """
    precision = settings.precision
    runs_onnx = device == "cpu" and all(
        describe_model(path).architecture.runs_onnx for path in models
    )
    if precision == "auto":
        if device == "cpu":
            precision = "int8" if runs_onnx else "fp32"
        else:
            from convs2s.devices import has_bf16  # imports torch

            precision = "bf16" if has_bf16() else "fp32"
        print(f"precision: auto is {precision} here", file=sys.stderr)
        settings = settings.model_copy(update={"precision": precision})
    if precision == "int8" and not runs_onnx:
        raise UserError(
            f"{models[0]}: `precision: int8` is only for networks of kind convs2s on a CPU; "
            "translate with `precision: bf16` (--precision bf16)"
        )
    if precision == "bf16" or not runs_onnx:
        return load_ensemble(models, device, settings)
    loaded = [load_weights(path) for path in models]
    descriptions = [description for _, description in loaded]
    _check_alike(models, descriptions)
    networks = []
    for arrays, description in loaded:
        scales = description.int8_scales if precision == "int8" else {}
        networks.append(
            Weights(arrays, description.architecture, description.sizes, scales)
        )
    try:
        return OnnxEnsemble(networks, precision, settings.ensemble), descriptions[0]
    except ValueError as error:
        # If the weights do not fit the architecture or are not finite, `load_ensemble` raises a
        # UserError that says what is wrong. Otherwise a scale of int8 is missing.
        load_ensemble(models, device, DecodingSettings())
        raise UserError(
            f"{', '.join(map(str, models))}: `int8_scales` has no {error}: train or import the "
            "model again, or translate with `precision: fp32` (--precision fp32)"
        ) from error


def load_ensemble(
    models: Sequence[Path],
    device: str,
    settings: DecodingSettings,
) -> tuple["Ensemble", ModelDescription]:
    """Load the model files of an ensemble for torch.

    The precision in ``settings`` must not be "auto", which only `load_searched` resolves.

    Raises:
        UserError: the models do not fit together, or the device cannot compute in the precision.
    """
    from convs2s.devices import check_precision
    from convs2s.models.ensemble import Ensemble

    assert settings.precision != "auto"
    check_precision(settings.precision, device)
    # Use one thread, because torch's pool of threads would not survive a later fork of workers.
    with one_thread():
        loaded = [load_model(path, device) for path in models]
        networks = [network for network, _ in loaded]
        descriptions = [description for _, description in loaded]
        _check_alike(models, descriptions)
        average = settings.ensemble
        if settings.cuda_graphs and device == "cuda":
            # Imported here, so that other decodings start faster.
            from convs2s.models.recorded_ensemble import RecordedEnsemble

            recorded = RecordedEnsemble(networks, average, settings.precision)
            return recorded, descriptions[0]
        ensemble = Ensemble(networks, average, settings.precision)
        return ensemble, descriptions[0]


def _check_alike(
    models: Sequence[Path], descriptions: Sequence[ModelDescription]
) -> None:
    """Check that the models can form an ensemble: their fields in `ALIKE` must be equal."""
    first = descriptions[0]
    for path, description in zip(models, descriptions, strict=True):
        for name in ALIKE:
            if getattr(first, name) != getattr(description, name):
                raise UserError(
                    f"{path}: cannot form an ensemble with {models[0]}, because their {name} "
                    "differ; the models of an ensemble may differ only in the seed of their "
                    "training and in their network"
                )


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return the inode, the size and the time of modification of a file.

    At least one of them differs after the file has been changed or replaced.
    """
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
