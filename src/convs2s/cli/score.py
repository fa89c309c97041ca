"""``convs2s score`` and ``compare-outputs``: BLEU, ROUGE, comparisons."""

import argparse
from pathlib import Path

from convs2s.cli.n_best import add_oracle
from convs2s.cli.options import (
    add_command,
    add_references,
    add_systems,
    add_tokenized,
    read_references,
    standard_input,
)
from convs2s.errors import UserError
from convs2s.files.atomic import check_not_read
from convs2s.files.text import read_lines, write_lines


def add_score(command: argparse.ArgumentParser) -> None:
    """Score translations, or compare two systems' translations."""
    metrics = command.add_subparsers(required=True, metavar="METRIC")
    bleu = metrics.add_parser("bleu", help="BLEU of the standard input against references")
    add_references(bleu, "+")
    bleu.add_argument(
        "--lowercase", action="store_true", help="without case of A to Z (multi-bleu -lc)"
    )
    add_tokenized(bleu)
    bleu.add_argument("--metric", help="one of an extension in BLEU's place (docs/extending.md)")
    bleu.add_argument("--source", type=Path, help="source sentences, which some of them read")
    bleu.set_defaults(run=_score_bleu)
    add_command(metrics, "rouge", _add_rouge, "ROUGE of a file against references")
    comparison = metrics.add_parser("compare", help="two systems' BLEU, by paired bootstrap")
    add_systems(comparison)
    add_tokenized(comparison)
    comparison.set_defaults(run=_score_compare)
    add_command(metrics, "oracle", add_oracle, "the best that an n-best list has")


def _score_bleu(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.bleu import check_lines, detokenized_bleu, tokenized_bleu
    from convs2s.scoring.evaluation import further_score

    if arguments.metric and (arguments.tokenized or arguments.lowercase):
        raise UserError("--tokenized, --lowercase: are of BLEU; leave them out with --metric")
    if arguments.source and not arguments.metric:
        raise UserError("--source: is for a metric that reads it: name it by --metric")
    references, names = read_references(arguments)
    hypotheses = list(standard_input())
    check_lines(hypotheses, references, "standard input", arguments.reference)
    if arguments.metric:
        source = list(read_lines(arguments.source)) if arguments.source else None
        score = further_score(arguments.metric, hypotheses, *references, source=source)
    else:
        metric = tokenized_bleu if arguments.tokenized else detokenized_bleu
        score = metric(hypotheses, *references, lowercase=arguments.lowercase)
    title = arguments.metric or "BLEU"
    print(f"{title} = {score}  {score.signature}  ({names}, {len(hypotheses)} lines)")


def _score_compare(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.bleu import compare

    references, names = read_references(arguments)
    system = list(read_lines(arguments.system))
    result = compare(
        list(read_lines(arguments.baseline)),
        system,
        *references,
        form="tokenized" if arguments.tokenized else "detokenized",
        names=(str(arguments.baseline), str(arguments.system)),
    )
    counted = f"{names}, {len(system)} lines"
    print("\n".join(result.summary((arguments.baseline, arguments.system), counted)))


def add_compare_outputs(command: argparse.ArgumentParser) -> None:
    """Print two systems' translations side by side, the words marked in which they differ.

    The lines are those whose own BLEU differs most, from the largest gain to the largest loss;
    with them is BLEU of the whole with a paired bootstrap.
    """
    add_systems(command)
    command.add_argument("--source", type=Path, help="file of what was translated, to be shown")
    add_tokenized(command)
    command.add_argument("--html", action="store_true", help="print a page, not plain text")
    command.add_argument("--most", type=int, default=100, help="lines to show [100]")
    command.set_defaults(run=_compare_outputs)


def _compare_outputs(arguments: argparse.Namespace) -> None:
    from convs2s.scoring.comparison import compare_outputs
    from convs2s.scoring.reports.layout import render_text

    references, _ = read_references(arguments)
    comparison = compare_outputs(
        list(read_lines(arguments.baseline)),
        list(read_lines(arguments.system)),
        *references,
        form="tokenized" if arguments.tokenized else "detokenized",
        names=(str(arguments.baseline), str(arguments.system)),
        most=arguments.most,
        source=None if arguments.source is None else list(read_lines(arguments.source)),
    )
    if arguments.html:
        from convs2s.pages.render import asset, render_page

        styles = map(asset, ("page.css", "outputs_page.css"))
        print(render_page("outputs_page.html.j2", {"comparison": comparison}, styles=styles))
        return
    print(render_text("outputs.txt.j2", comparison=comparison), end="")


def _add_rouge(command: argparse.ArgumentParser) -> None:
    """Print recall, precision and F1 of ROUGE-1, ROUGE-2 and ROUGE-L, 0 to 100.

    They are means over the lines, in brackets their 95% confidence intervals by bootstrap. Each
    line's values are those that ROUGE-1.5.5.pl prints (docs/rouge.md).
    """
    command.add_argument("hypotheses", type=Path, help="file of texts, one a line")
    add_references(command)
    command.add_argument(
        "--bytes", type=int, metavar="N", help="cut all texts to N bytes first (DUC: 75) [no cut]"
    )
    command.add_argument("--stem", action="store_true", help="compare the stems of words")
    command.add_argument(
        "--exceptions",
        type=Path,
        metavar="FILE",
        help="irregular forms for --stem: a word, a tab, its base form a line",
    )
    command.add_argument(
        "--best", action="store_true", help="the best reference counts [the sum over all of them]"
    )
    command.add_argument(
        "--skip-empty",
        action="store_true",
        help="an empty line of a further reference is none, as of texts that have fewer",
    )
    command.add_argument(
        "--samples", type=int, default=1000, metavar="N", help="resamples of the bootstrap [1000]"
    )
    command.add_argument("--items", type=Path, metavar="FILE", help="write each line's values: TSV")
    command.set_defaults(run=_score_rouge)


def _score_rouge(arguments: argparse.Namespace) -> None:
    from convs2s.scoring import rouge
    from convs2s.scoring.bleu import check_lines
    from convs2s.scoring.rouge_stem import read_exceptions

    if arguments.exceptions and not arguments.stem:
        raise UserError(
            f"--exceptions {arguments.exceptions}: the stemmer alone reads it: add --stem"
        )
    exceptions = read_exceptions(arguments.exceptions) if arguments.exceptions else None
    options = rouge.RougeOptions(
        arguments.bytes,
        arguments.stem,
        exceptions,
        arguments.best,
        arguments.skip_empty,
    )
    hypotheses = list(read_lines(arguments.hypotheses))
    references, names = read_references(arguments)
    check_lines(hypotheses, references, arguments.hypotheses, arguments.reference)
    items = rouge.rouge_items(hypotheses, *references, options=options)
    if arguments.items:
        check_not_read(arguments.items, [arguments.hypotheses, *arguments.reference])
        # The columns as the script names its scores.
        lines = ["item\t1.R\t1.P\t1.F\t2.R\t2.P\t2.F\tL.R\tL.P\tL.F"]
        for number, item in enumerate(items, start=1):
            line = f"{number}"
            for triple in item.values():
                line += f"\t{triple.recall:.5f}\t{triple.precision:.5f}\t{triple.f1:.5f}"
            lines.append(line)
        write_lines(arguments.items, lines)
    signature = options.signature(len(references), arguments.samples)
    scores = rouge.mean_rouge(items, signature, arguments.samples)
    for key, name in rouge.ROUGE_NAMES.items():
        values = (f"{text} = {scores[key][part]}" for part, text in rouge.ROUGE_PARTS.items())
        print(f"{name}  {'  '.join(values)}")
    print(f"{signature}  ({names}, {len(hypotheses)} lines)")
