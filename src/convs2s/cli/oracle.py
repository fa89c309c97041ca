"""``convs2s score oracle``: the best that an n-best list has."""

import argparse
from pathlib import Path

from convs2s.cli.n_best import read_groups
from convs2s.files.text import read_lines
from convs2s.scoring.n_best import unescaped


def add_oracle(command: argparse.ArgumentParser) -> None:
    """Add the options of ``score oracle``."""
    command.description = (
        "Print BLEU of an n-best list's first choices, and of the best that could be chosen: of "
        "each sentence the hypothesis with the highest smoothed BLEU of its own."
    )
    command.add_argument("list", type=Path, help="Moses n-best list")
    command.add_argument("--reference", type=Path, nargs="+", required=True, help="reference files")
    command.set_defaults(run=_oracle)


def _oracle(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.bleu import detokenized_bleu, tokenized_bleu
    from convs2s.scoring.reranking import first_and_oracle

    references = [list(read_lines(path)) for path in arguments.reference]
    names = " ".join(str(path) for path in arguments.reference)
    choices = first_and_oracle(
        read_groups(arguments.list),
        references,
        "tokenized" if arguments.tokenized else "detokenized",
        str if arguments.tokenized else unescaped,
    )
    metric = tokenized_bleu if arguments.tokenized else detokenized_bleu
    for name, texts in zip(("first of the list", "oracle"), choices, strict=True):
        score = metric(texts, *references)
        print(f"BLEU = {score}  {name}  {score.signature}  ({names}, {len(texts)} lines)")
