"""``convs2s score-pairs``: what models say of translations."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.cli.common import add_device, add_models, add_threads, write_utf8
from convs2s.cli.n_best import add_feature, read_groups
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.files.text import read_line_pairs, read_lines

if TYPE_CHECKING:
    from convs2s.decoding.words import Form


def add_score_pairs(command: argparse.ArgumentParser) -> None:
    """Add the options of ``score-pairs``."""
    command.description = (
        "Print what a model says of given translations: of each line of --target its "
        "log-probability given that of --source (nats) and its tokens, </s> counted; or the lines "
        "of --n-best with one more feature."
    )
    add_models(command)
    command.add_argument("--source", type=Path, required=True, help="file of source sentences")
    targets = command.add_mutually_exclusive_group(required=True)
    targets.add_argument("--target", type=Path, help="file of one translation of each")
    targets.add_argument(
        "--n-best", type=Path, metavar="LIST", help="Moses n-best list of translations of each"
    )
    forms = command.add_mutually_exclusive_group()
    forms.add_argument(
        "--tokenized",
        dest="form",
        action="store_const",
        const="words",
        help="both sides are words that blanks separate, as Moses' lists are [raw text]",
    )
    forms.add_argument(
        "--pretokenized",
        dest="form",
        action="store_const",
        const="tokens",
        help="both sides are the model's own tokens, such as lo@@ w",
    )
    add_feature(command, "name of the feature that --n-best gets")
    command.add_argument(
        "--length-penalty",
        type=float,
        default=0.0,
        metavar="ALPHA",
        help="that feature is log-probability / tokens^ALPHA [0: the log-probability]",
    )
    add_device(command)
    add_threads(command)
    command.set_defaults(run=_score_pairs, form="raw")


def _score_pairs(arguments: argparse.Namespace) -> None:
    import torch

    from convs2s.decoding.rescoring import PairScorer, score_groups, score_pairs
    from convs2s.devices import pick_device

    stated = {"length_penalty": arguments.length_penalty}
    alpha = validated(DecodingSettings, stated, "options").alpha
    torch.set_num_threads(arguments.threads)
    form: Form = arguments.form
    scorer = PairScorer.load(arguments.model, pick_device(arguments.device), form)
    write_utf8()
    if arguments.n_best is not None:
        groups = read_groups(arguments.n_best)
        sources = read_lines(arguments.source)
        for hypothesis in score_groups(scorer, sources, groups, arguments.feature, alpha):
            print(hypothesis.line())
        return
    print("log_probability\ttokens")
    for score in score_pairs(scorer, read_line_pairs(arguments.source, arguments.target)):
        print(f"{score.log_probability:.9g}\t{score.tokens}")
