"""``convs2s score-pairs``, ``rerank`` and ``score oracle``: n-best lists and what models say."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from convs2s.cli.options import (
    add_device,
    add_models,
    add_references,
    add_threads,
    add_tokenized,
    read_references,
)
from convs2s.config.decoding import DecodingSettings
from convs2s.config.messages import validated
from convs2s.errors import UserError
from convs2s.files.text import read_line_pairs, read_lines
from convs2s.scoring.n_best import (
    MODEL,
    Group,
    average_with,
    every_sentence,
    read_n_best,
    reranked,
    unescaped,
)


def read_groups(path: Path) -> Iterator[Group]:
    """Yield the hypotheses of each sentence of a list."""
    return read_n_best(read_lines(path), str(path))


def _add_feature(command: argparse.ArgumentParser, meaning: str) -> None:
    command.add_argument(
        "--feature", default=MODEL, metavar="NAME", help=f"{meaning}, without the = [{MODEL}]"
    )


def add_score_pairs(command: argparse.ArgumentParser) -> None:
    """Print what a model says of given translations.

    Of each line of --target its log-probability given that of --source (nats) and its tokens,
    </s> counted; or the lines of --n-best with one more feature.
    """
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
    _add_feature(command, "name of the feature that --n-best gets")
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
    from convs2s.devices import held_device

    is_default = arguments.feature == MODEL and arguments.length_penalty == 0
    if arguments.n_best is None and not is_default:
        raise UserError("--feature and --length-penalty: are for a list: name it with --n-best")
    stated = {"length_penalty": arguments.length_penalty}
    alpha = validated(DecodingSettings, stated, "options").alpha
    torch.set_num_threads(arguments.threads)
    with held_device(arguments.device, waits=False) as device:
        scorer = PairScorer.load(arguments.model, device, arguments.form)
        if arguments.n_best is not None:
            groups = read_groups(arguments.n_best)
            sources = read_lines(arguments.source)
            for hypothesis in score_groups(scorer, sources, groups, arguments.feature, alpha):
                print(hypothesis.line())
            return
        print("log_probability\ttokens")
        pairs = read_line_pairs(arguments.source, arguments.target)
        for score in score_pairs(scorer, pairs, str(arguments.source), str(arguments.target)):
            print(f"{score.log_probability:.9g}\t{score.tokens}")


def add_rerank(command: argparse.ArgumentParser) -> None:
    """Print the best hypothesis of each sentence.

    The best is by the even average of the list's score and a feature, such as score-pairs adds.
    """
    command.add_argument("list", type=Path, help="Moses n-best list")
    _add_feature(command, "the feature")
    forms = command.add_mutually_exclusive_group()
    forms.add_argument(
        "--tokenized", action="store_true", help="print texts as they stand, with Moses' &#124;"
    )
    forms.add_argument(
        "--n-best", action="store_true", help="print the whole list, the average as its score"
    )
    command.set_defaults(run=_rerank)


def _rerank(arguments: argparse.Namespace) -> None:
    average = average_with(arguments.feature)
    for group in every_sentence(read_groups(arguments.list)):
        if arguments.n_best:
            print(*(hypothesis.line() for hypothesis in reranked(group, average)), sep="\n")
        else:
            text = max(group, key=average).text
            print(text if arguments.tokenized else unescaped(text))


def add_oracle(command: argparse.ArgumentParser) -> None:
    """Print BLEU of an n-best list's first choices, and of the best that could be chosen.

    The best is of each sentence the hypothesis with the highest smoothed BLEU of its own.
    """
    command.add_argument("list", type=Path, help="Moses n-best list")
    add_references(command, "+")
    add_tokenized(command)
    command.set_defaults(run=_score_oracle)


def _score_oracle(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.bleu import detokenized_bleu, tokenized_bleu
    from convs2s.scoring.reranking import first_and_oracle

    references, names = read_references(arguments)
    choices = first_and_oracle(
        read_groups(arguments.list),
        references,
        "tokenized" if arguments.tokenized else "detokenized",
        str if arguments.tokenized else unescaped,
        arguments.list,
        arguments.reference,
    )
    metric = tokenized_bleu if arguments.tokenized else detokenized_bleu
    for name, texts in zip(("first of the list", "oracle"), choices, strict=True):
        score = metric(texts, *references)
        print(f"BLEU = {score}  {name}  {score.signature}  ({names}, {len(texts)} lines)")
