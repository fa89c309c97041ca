"""``convs2s score learned``: the score of a learned metric that is installed."""

import argparse
from pathlib import Path
from typing import get_args

from convs2s.cli.common import standard_input
from convs2s.config.messages import validated
from convs2s.config.options import LearnedMetric, LearnedMetricName
from convs2s.files.text import read_lines


def add_learned(command: argparse.ArgumentParser) -> None:
    """Add the options of ``score learned``."""
    command.description = (
        "Print the score of the standard input by a learned metric whose package (unbabel-comet or "
        "BLEURT) is installed, with the package's version and the model."
    )
    command.add_argument("--metric", choices=get_args(LearnedMetricName), required=True)
    command.add_argument("--model", required=True, help="its model: a file or folder, not fetched")
    command.add_argument("--source", type=Path, required=True, help="file of source sentences")
    command.add_argument("--reference", type=Path, required=True, help="reference file")
    command.set_defaults(run=_learned)


def _learned(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.learned import learned_score

    stated = {"name": arguments.metric, "model": arguments.model}
    metric = validated(LearnedMetric, stated, "options")
    sources, references = (
        list(read_lines(path)) for path in (arguments.source, arguments.reference)
    )
    score = learned_score(metric, sources, list(standard_input()), references)
    names = f"{arguments.reference}, {len(references)} lines"
    print(f"{score.title} = {score}  {score.signature}  ({names})")
