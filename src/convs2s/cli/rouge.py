"""``convs2s score rouge``: ROUGE of a file of texts, as ROUGE-1.5.5.pl has it."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.cli.common import write_utf8
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines

if TYPE_CHECKING:
    from convs2s.scoring.rouge import RougeItem

_EXAMPLES = """examples:
  convs2s score rouge --reference titles.txt --stem outputs.txt
  convs2s score rouge --reference r1.txt --reference r2.txt --bytes 75 --stem outputs.txt
  convs2s score rouge --reference titles.txt --items items.tsv outputs.txt
"""


def add_rouge(command: argparse.ArgumentParser) -> None:
    """Add the options of ``score rouge``."""
    command.description = (
        "Print recall, precision and F1 of ROUGE-1, ROUGE-2 and ROUGE-L, 0 to 100: means over\n"
        "the lines, in brackets their 95% confidence intervals by bootstrap. Each line's values\n"
        "are those that ROUGE-1.5.5.pl prints (docs/rouge.md)."
    )
    command.epilog = _EXAMPLES
    command.add_argument("hypotheses", type=Path, help="file of texts, one a line")
    command.add_argument(
        "--reference", type=Path, action="append", required=True, help="of several, give each so"
    )
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
    from convs2s.scoring.rouge import (
        ROUGE_NAMES,
        ROUGE_PARTS,
        RougeOptions,
        mean_rouge,
        rouge_items,
    )
    from convs2s.scoring.rouge_stem import read_exceptions

    _check(arguments)
    exceptions = read_exceptions(arguments.exceptions) if arguments.exceptions else None
    options = RougeOptions(
        arguments.bytes, arguments.stem, exceptions, arguments.best, arguments.skip_empty
    )
    hypotheses, *references = _texts(arguments.hypotheses, arguments.reference)
    items = rouge_items(hypotheses, *references, options=options)
    if arguments.items:
        write_lines(arguments.items, _table(items))
    signature = options.signature(len(references), arguments.samples)
    scores = mean_rouge(items, signature, arguments.samples)
    write_utf8()
    for kind, name in ROUGE_NAMES.items():
        values = (f"{text} = {scores[kind][part]}" for part, text in ROUGE_PARTS.items())
        print(f"{name}  {'  '.join(values)}")
    names = " ".join(str(path) for path in arguments.reference)
    print(f"{signature}  ({names}, {len(hypotheses)} lines)")


def _check(arguments: argparse.Namespace) -> None:
    if arguments.exceptions and not arguments.stem:
        raise UserError(
            f"--exceptions {arguments.exceptions}: irregular forms are of use to the stemmer "
            "alone: add --stem"
        )


def _texts(hypotheses: Path, references: Sequence[Path]) -> list[list[str]]:
    """Read the hypotheses and each file of references; all must have as many lines."""
    first, *others = ([*read_lines(path)] for path in (hypotheses, *references))
    if not first:
        raise UserError(f"{hypotheses}: no lines to score; give at least one text")
    for path, lines in zip(references, others, strict=True):
        if len(lines) != len(first):
            raise UserError(
                f"{hypotheses} has {len(first)} lines but {path} has {len(lines)}: line N of one "
                "belongs to line N of the other; give files of the same texts"
            )
    return [first, *others]


def _table(items: "Sequence[RougeItem]") -> Iterator[str]:
    """Yield a row for each item, with the columns as the script names its scores."""
    names = [f"{kind}.{part}" for kind in "12L" for part in "RPF"]
    yield "\t".join(["item", *names])
    for number, item in enumerate(items, start=1):
        triples = [(triple.recall, triple.precision, triple.f1) for triple in item.values()]
        values = [f"{value:.5f}" for values in triples for value in values]
        yield "\t".join([str(number), *values])
