"""A task's BPE codes and vocabularies out of a model file, in place of learning its own."""

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
        UserError: it has none, or separate ones for its two sides.
    """
    _, description = load_weights(model)  # weights as well, or its digest would go unchecked
    if description.bpe_codes is None:
        raise UserError(
            f"{model}: reads whole words and has no BPE codes: write `vocabulary: {{kind: word}}`"
        )
    # The file of a model whose target side has codes of its own does not hold these.
    strange = types_of_other_codes(description.bpe_codes, description.target_types)
    if strange:
        raise UserError(
            f"{model}: its BPE codes make no such target vocabulary ({strange} types): the sides "
            "have codes of their own, and its file holds those of the source"
        )
    write_text(output, description.bpe_codes)


def take_vocabulary(
    *, model: Path, words: Path, side: Literal["source", "target"], vocabulary: str, output: Path
) -> None:
    """Write one side's vocabulary of a model, with how often the task's own text has each type.

    ``words`` says how often each word of the side's training text occurs, ``vocabulary`` is ``bpe``
    or ``word``, as the task states it. The table is in the model's order.

    Raises:
        UserError: the file is no model, its vocabulary is of another kind, or has a threshold whose
            counts its file does not hold.
    """
    _, description = load_weights(model)
    if (description.bpe_codes is None) != (vocabulary == "word"):
        stated = "word" if description.bpe_codes is None else "bpe"
        raise UserError(f"{model}: its vocabulary is of the kind {stated}: write `kind: {stated}`")
    if description.splittable is not None:
        raise UserError(
            f"{model}: its vocabulary has a threshold, and counts that its file does not hold: "
            "another text cannot be split as its own was"
        )
    counts = read_counts(words)
    if description.bpe_codes is not None:
        tokens = Bpe(description.bpe_codes, None, description.glossaries)
        counts = iter(count_tokens(counts, tokens).items())
    occurrences = Counter(dict(counts))
    types = description.source_types if side == "source" else description.target_types
    write_counts(output, ((token, occurrences[token]) for token in types))
