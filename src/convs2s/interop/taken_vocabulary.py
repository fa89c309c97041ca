"""Take the BPE codes and vocabularies of a task from a model file, instead of learning them."""

from collections import Counter
from pathlib import Path
from typing import Literal

from convs2s.data.vocabulary import read_counts, write_counts
from convs2s.errors import UserError
from convs2s.files.text import write_text
from convs2s.model_file import load_weights
from convs2s.text.bpe import Bpe, count_tokens, types_of_other_codes


def take_codes(*, model: Path, output: Path) -> None:
    """Write the BPE codes of a model.

    Raises:
        UserError: the file is not a model, or the model has no BPE codes, or separate codes for its
            two sides.
    """
    # The weights are not needed, but the digest of the file is checked only if they are read.
    _, description = load_weights(model)
    if description.bpe_codes is None:
        raise UserError(
            f"{model}: reads whole words and has no BPE codes: write `vocabulary: {{kind: word}}`"
        )
    # A model file contains the codes of the source side only. If they cannot have made the target
    # vocabulary, the target side has other codes, which are not in the file.
    impossible_types = types_of_other_codes(
        description.bpe_codes, description.target_types
    )
    if impossible_types:
        raise UserError(
            f"{model}: its BPE codes cannot have made its target vocabulary ({impossible_types} "
            "types): the two sides have different codes, and the file contains those of the source "
            "only"
        )
    write_text(output, description.bpe_codes)


def take_vocabulary(
    *,
    model: Path,
    words: Path,
    side: Literal["source", "target"],
    vocabulary: str,
    output: Path,
) -> None:
    """Write the vocabulary of one side of a model, with the counts of the task's own text.

    Args:
        model: The model file.
        words: The table of the word counts in the side's training text.
        side: The side of the model.
        vocabulary: The kind of vocabulary in the task's configuration, ``bpe`` or ``word``.
        output: The table to write, with the types in the model's order.

    Raises:
        UserError: the file is not a model, its vocabulary is of another kind, or its vocabulary has
            a threshold.
    """
    _, description = load_weights(model)
    model_kind = "word" if description.bpe_codes is None else "bpe"
    if (model_kind == "word") != (vocabulary == "word"):
        raise UserError(
            f"{model}: its vocabulary is of the kind {model_kind}: write `kind: {model_kind}`"
        )
    if description.splittable is not None:
        raise UserError(
            f"{model}: its vocabulary has a threshold, and the file does not contain the counts "
            "that it was applied to: another text cannot be split as the training text was"
        )
    counts = read_counts(words)
    if description.bpe_codes is not None:
        bpe = Bpe(description.bpe_codes, None, description.glossaries)
        counts = iter(count_tokens(counts, bpe).items())
    occurrences = Counter(dict(counts))
    types = description.source_types if side == "source" else description.target_types
    write_counts(output, ((token, occurrences[token]) for token in types))
