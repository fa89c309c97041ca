"""``convs2s score``: BLEU, ROUGE, comparisons, and what an n-best list has."""

import argparse
from pathlib import Path

from convs2s.cli.common import standard_input
from convs2s.cli.learned import add_learned
from convs2s.cli.oracle import add_oracle
from convs2s.cli.rouge import add_rouge
from convs2s.files.text import read_lines


def add_score(command: argparse.ArgumentParser) -> None:
    """Add the command's metrics."""
    metrics = command.add_subparsers(required=True, metavar="METRIC")
    bleu = metrics.add_parser("bleu", help="BLEU of the standard input against references")
    bleu.add_argument("--reference", type=Path, nargs="+", required=True, help="reference files")
    bleu.add_argument(
        "--lowercase", action="store_true", help="without case of A to Z (multi-bleu -lc)"
    )
    bleu.set_defaults(run=_score_bleu)
    add_rouge(metrics.add_parser("rouge", help="ROUGE of a file against references"))
    comparison = metrics.add_parser("compare", help="two systems' BLEU, by paired bootstrap")
    comparison.add_argument("baseline", type=Path, help="file of one system's lines")
    comparison.add_argument("system", type=Path, help="file of the other system's lines")
    comparison.add_argument(
        "--reference", type=Path, action="append", required=True, help="of several, give each so"
    )
    comparison.set_defaults(run=_score_compare)
    add_learned(metrics.add_parser("learned", help="COMET or BLEURT, where they are installed"))
    oracle = metrics.add_parser("oracle", help="the best that an n-best list has")
    add_oracle(oracle)
    for metric in (bleu, comparison, oracle):
        metric.add_argument(
            "--tokenized", action="store_true", help="words are what spaces separate (multi-bleu)"
        )


def _score_bleu(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.bleu import detokenized_bleu, tokenized_bleu

    metric = tokenized_bleu if arguments.tokenized else detokenized_bleu
    references = [list(read_lines(path)) for path in arguments.reference]
    hypotheses = list(standard_input())
    score = metric(hypotheses, *references, lowercase=arguments.lowercase)
    names = " ".join(str(path) for path in arguments.reference)
    print(f"BLEU = {score}  {score.signature}  ({names}, {len(hypotheses)} lines)")


def _score_compare(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.bleu import SAMPLES, compare

    paths = arguments.baseline, arguments.system
    references = [list(read_lines(path)) for path in arguments.reference]
    baseline, system = (list(read_lines(path)) for path in paths)
    result = compare(
        baseline,
        system,
        *references,
        kind="tokenized" if arguments.tokenized else "detokenized",
        names=(str(paths[0]), str(paths[1])),
    )
    for path, side in zip(paths, (result.baseline, result.system), strict=True):
        print(f"BLEU = {side.score:.2f} ± {side.interval:.2f}  {path}")
    print(f"difference = {result.difference:+.2f}, p = {result.p_value:.4f}, {SAMPLES} resamples")
    names = " ".join(str(path) for path in arguments.reference)
    print(f"{result.signature}  ({names}, {len(system)} lines)")
