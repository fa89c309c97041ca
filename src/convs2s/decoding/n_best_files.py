"""N-best lists of a test set: made from its raw text, and scored by another model."""

from collections.abc import Sequence
from pathlib import Path

import torch

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.formats import n_best_line
from convs2s.decoding.progress import counted
from convs2s.decoding.rescoring import PairScorer, score_groups
from convs2s.decoding.translate import prepare_translator
from convs2s.devices import pick_device
from convs2s.files.text import read_lines, write_lines
from convs2s.scoring.n_best import MODEL, read_n_best


def list_n_best(
    *,
    models: Sequence[Path],
    source: Path,
    output: Path,
    settings: DecodingSettings,
    device: str,
    threads: int,
) -> None:
    """Write the n-best list of a file of raw text: all hypotheses that the search finishes.

    Its texts are words that blanks separate, unknown ones replaced: what tokenized BLEU is of.

    Args:
        models: model files; several make an ensemble.
        source: raw text, one sentence a line.
        output: the list to write.
        settings: how to search.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads.
    """
    translator = prepare_translator(models, settings, device=device, threads=threads)
    translations = translator.translate(read_lines(source), n_best=settings.beam)
    write_lines(
        output,
        (
            n_best_line(one, " ".join(one.words), settings.alpha)
            for translation in counted(translations, " lines")
            for one in translation.n_best
        ),
    )


def score_n_best(
    *,
    models: Sequence[Path],
    source: Path,
    n_best: Path,
    output: Path,
    length_penalty: float,
    device: str,
    threads: int,
) -> None:
    """Write an n-best list with what models say of its hypotheses as one more feature.

    Args:
        models: model files; several make an ensemble.
        source: words, one sentence a line.
        n_best: a list of its translations, in words.
        output: the list to write.
        length_penalty: alpha of the feature, log-probability / |y|^alpha.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads.
    """
    torch.set_num_threads(threads)
    scorer = PairScorer.load(models, pick_device(device), "words")
    groups = read_n_best(counted(read_lines(n_best), " hypotheses"), str(n_best))
    scored = score_groups(scorer, read_lines(source), groups, MODEL, length_penalty)
    write_lines(output, (one.line() for one in scored))
