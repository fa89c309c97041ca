"""How a training selects its vocabulary (section 5.4), and how much that leaves out."""

from pathlib import Path

import numpy as np

from convs2s.config.architecture import Architecture
from convs2s.config.model import Recipe
from convs2s.data.batches import collate
from convs2s.data.shortlist import Shortlist
from convs2s.data.store import TokenStore
from convs2s.data.vocabulary import Vocabulary
from convs2s.errors import UserError
from convs2s.text.dictionary import read_candidates
from convs2s.training.data import TrainingData
from convs2s.training.history import ShortlistFigures
from convs2s.training.update import validation_batches


def read_shortlist(
    architecture: Architecture, candidates: Path | None, data: TrainingData
) -> Shortlist | None:
    """Return how the model selects its vocabulary; None where it scores all types.

    Args:
        architecture: the model's.
        candidates: the alignment's ``candidates.tsv``, for a model that selects.
        data: the task, whose vocabularies number the candidates.

    Raises:
        UserError: the model selects and there are no candidates, or the other way round, or its
            vocabulary is of pieces of words, which the alignment does not have.
    """
    wanted = architecture.vocabulary_selection
    if wanted is None:
        if candidates is not None:
            raise UserError(f"--candidates {candidates}: this model selects no vocabulary")
        return None
    if candidates is None:
        raise UserError(
            "architecture.vocabulary_selection: needs the alignment's candidates: give "
            "--candidates, such as results/TASK/alignment/candidates.tsv (snakemake align)"
        )
    if data.bpe_codes is not None:
        raise UserError(
            "architecture.vocabulary_selection: needs a vocabulary of words, as the alignment's "
            "are; this task's is of pieces of words"
        )
    return Shortlist.from_words(
        read_candidates(candidates),
        *(Vocabulary(data.types[side]) for side in ("source", "target")),
        frequent=wanted.frequent,
        most=wanted.candidates,
    )


def shortlist_figures(shortlist: Shortlist, store: TokenStore, recipe: Recipe) -> ShortlistFigures:
    """Return what validation perplexity over a shortlist rests on."""
    sizes, outside, tokens = [], 0, 0
    for rows in validation_batches(store, recipe, shortlist):
        batch = collate(store, rows)
        types = shortlist.types(batch.source)
        sizes.append(len(types))
        outside += int(np.isin(batch.target, types, invert=True).sum())
        tokens += batch.target_tokens
    return ShortlistFigures(sum(sizes) / len(sizes), outside / tokens)
