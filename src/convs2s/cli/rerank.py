"""``convs2s rerank``: a choice from an n-best list."""

import argparse
from pathlib import Path

from convs2s.cli.common import write_utf8
from convs2s.cli.n_best import add_feature, read_groups
from convs2s.scoring.n_best import average_with, best, every_sentence, reranked, unescaped


def add_rerank(command: argparse.ArgumentParser) -> None:
    """Add the options of ``rerank``."""
    command.description = (
        "Print the best hypothesis of each sentence by the even average of the list's score and a "
        "feature, such as score-pairs adds."
    )
    command.add_argument("list", type=Path, help="Moses n-best list")
    add_feature(command, "the feature")
    command.add_argument(
        "--tokenized", action="store_true", help="print texts as they stand, with Moses' &#124;"
    )
    command.add_argument(
        "--n-best", action="store_true", help="print the whole list, the average as its score"
    )
    command.set_defaults(run=_rerank)


def _rerank(arguments: argparse.Namespace) -> None:
    write_utf8()
    average = average_with(arguments.feature)
    for group in every_sentence(read_groups(arguments.list)):
        if arguments.n_best:
            print(*(hypothesis.line() for hypothesis in reranked(group, average)), sep="\n")
        else:
            text = best(group, average).text
            print(text if arguments.tokenized else unescaped(text))
