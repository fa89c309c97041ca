"""The commands ``convs2s score`` (BLEU, ROUGE, comparisons) and ``convs2s compare-outputs``."""

from argparse import ArgumentParser, Namespace

from convs2s.cli.n_best import add_oracle
from convs2s.cli.options import (
    Commands,
    Run,
    add_commands,
    add_file,
    add_flag,
    add_references,
    add_systems,
    add_tokenized,
    print_warning,
    read_references,
    standard_input,
)
from convs2s.errors import UserError
from convs2s.files.atomic import check_not_read
from convs2s.files.text import read_lines, write_lines


def add_score(command: ArgumentParser) -> None:
    """Score translations, or compare the scores of two systems' translations."""
    metrics: Commands = {
        "bleu": (_add_bleu, "BLEU of the standard input against references"),
        "rouge": (_add_rouge, "ROUGE of a file against references"),
        "compare": (
            _add_compare,
            "compare the BLEU of two systems by paired bootstrap",
        ),
        "oracle": (add_oracle, "the best BLEU that an n-best list allows"),
    }
    add_commands(command, "METRIC", metrics)


def _add_bleu(command: ArgumentParser) -> Run:
    """Print the BLEU of the translations on the standard input."""
    add_references(command, "+")
    add_flag(
        command,
        "--lowercase",
        "lowercase A to Z in hypotheses and references before scoring (multi-bleu -lc)",
    )
    add_tokenized(command)
    command.add_argument(
        "--metric",
        metavar="NAME",
        help="metric of an extension to compute instead of BLEU (docs/extending.md)",
    )
    add_file(
        command, "--source", "file of the source sentences, if the --metric needs them"
    )
    return _score_bleu


def _score_bleu(arguments: Namespace) -> None:
    from convs2s.scoring.bleu import check_lines, corpus_bleu, warning_of_bleu
    from convs2s.scoring.evaluation import further_score

    if arguments.metric and (arguments.form != "13a" or arguments.lowercase):
        raise UserError(
            "--tokenized, --tokenize and --lowercase apply to BLEU only: leave them out with "
            "--metric"
        )
    if arguments.source and not arguments.metric:
        raise UserError(
            "--source: BLEU does not read it: name the metric that does with --metric"
        )
    references, names = read_references(arguments)
    hypotheses = list(standard_input())
    check_lines(hypotheses, references, "standard input", arguments.reference)
    if arguments.metric:
        source = list(read_lines(arguments.source)) if arguments.source else None
        score = further_score(arguments.metric, hypotheses, *references, source=source)
    else:
        score = corpus_bleu(
            hypotheses,
            *references,
            form=arguments.form,
            lowercase=arguments.lowercase,
        )
        print_warning(warning_of_bleu(arguments.form, *references))
    title = arguments.metric or "BLEU"
    print(f"{title} = {score}  {score.signature}  ({names}, {len(hypotheses)} lines)")


def _add_compare(command: ArgumentParser) -> Run:
    """Compare the BLEU of two systems' translations by paired bootstrap."""
    add_systems(command)
    return _score_compare


def _score_compare(arguments: Namespace) -> None:
    from convs2s.scoring.bleu import compare, warning_of_bleu

    references, names = read_references(arguments)
    system = list(read_lines(arguments.system))
    print_warning(warning_of_bleu(arguments.form, *references))
    result = compare(
        list(read_lines(arguments.baseline)),
        system,
        *references,
        form=arguments.form,
        names=(str(arguments.baseline), str(arguments.system)),
    )
    counted = f"{names}, {len(system)} lines"
    print("\n".join(result.summary((arguments.baseline, arguments.system), counted)))


def add_compare_outputs(command: ArgumentParser) -> Run:
    """Print two systems' translations side by side, and mark the words that differ.

    The lines are those whose sentence BLEU differs most between the systems, ordered from the
    largest gain to the largest loss. Above them is the BLEU of both files, compared by paired
    bootstrap.
    """
    add_systems(command)
    add_file(command, "--source", "file of the source sentences, to show them")
    add_flag(command, "--html", "print an HTML page, not plain text")
    command.add_argument(
        "--most", type=int, default=100, help="number of lines to show [100]"
    )
    return _compare_outputs


def _compare_outputs(arguments: Namespace) -> None:
    from convs2s.scoring.bleu import warning_of_bleu
    from convs2s.scoring.comparison import compare_outputs
    from convs2s.scoring.reports.layout import render_text

    references, _ = read_references(arguments)
    print_warning(warning_of_bleu(arguments.form, *references))
    comparison = compare_outputs(
        list(read_lines(arguments.baseline)),
        list(read_lines(arguments.system)),
        *references,
        form=arguments.form,
        names=(str(arguments.baseline), str(arguments.system)),
        most=arguments.most,
        source=None if arguments.source is None else list(read_lines(arguments.source)),
    )
    if arguments.html:
        from convs2s.pages.render import asset, render_page

        styles = map(asset, ("page.css", "outputs_page.css"))
        print(
            render_page(
                "outputs_page.html.j2", {"comparison": comparison}, styles=styles
            )
        )
        return
    print(render_text("outputs.txt.j2", comparison=comparison), end="")


def _add_rouge(command: ArgumentParser) -> Run:
    """Print recall, precision and F1 of ROUGE-1, ROUGE-2 and ROUGE-L, from 0 to 100.

    The values are means over the lines, each followed by its 95% confidence interval by bootstrap.
    The values of a single line equal those of ROUGE-1.5.5.pl (docs/rouge.md).
    """
    add_file(command, "hypotheses", "file of texts to score, one per line")
    add_references(command)
    command.add_argument(
        "--bytes",
        type=int,
        metavar="N",
        help="cut all texts to N bytes before scoring (DUC: 75) [no cut]",
    )
    add_flag(command, "--stem", "compare the stems of words instead of the words")
    add_file(
        command,
        "--exceptions",
        "irregular word forms for --stem; each line is a word, a tab and its base form",
        metavar="FILE",
    )
    add_flag(
        command,
        "--best",
        "score each text against its best reference [the sum over all references]",
    )
    add_flag(
        command,
        "--skip-empty",
        "ignore empty lines of the second and later references, for texts that have fewer "
        "references than others",
    )
    command.add_argument(
        "--samples",
        type=int,
        default=1000,
        metavar="N",
        help="resamples of the bootstrap [1000]",
    )
    add_file(
        command,
        "--items",
        "TSV file to which the values of each line are written",
        metavar="FILE",
    )
    return _score_rouge


def _score_rouge(arguments: Namespace) -> None:
    from convs2s.scoring import rouge
    from convs2s.scoring.bleu import check_lines
    from convs2s.scoring.rouge_stem import NO_EXCEPTIONS, read_exceptions

    if arguments.exceptions and not arguments.stem:
        raise UserError(
            f"--exceptions {arguments.exceptions}: only the stemmer reads this file: add --stem"
        )
    exceptions = NO_EXCEPTIONS
    if arguments.exceptions:
        exceptions = read_exceptions(arguments.exceptions)
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
    print_warning(rouge.warning_of_rouge(*references))
    if arguments.items:
        check_not_read(arguments.items, [arguments.hypotheses, *arguments.reference])
        # The names are those of ROUGE-1.5.5.pl: R is recall, P is precision and F is F1.
        rows = ["item\t1.R\t1.P\t1.F\t2.R\t2.P\t2.F\tL.R\tL.P\tL.F"]
        for number, item in enumerate(items, start=1):
            row = f"{number}"
            for triple in item.values():
                row += f"\t{triple.recall:.5f}\t{triple.precision:.5f}\t{triple.f1:.5f}"
            rows.append(row)
        write_lines(arguments.items, rows)
    signature = options.signature(len(references), arguments.samples)
    scores = rouge.mean_rouge(items, signature, arguments.samples)
    for key, name in rouge.ROUGE_NAMES.items():
        values = [
            f"{text} = {scores[key][part]}" for part, text in rouge.ROUGE_PARTS.items()
        ]
        print(name, *values, sep="  ")
    print(f"{signature}  ({names}, {len(hypotheses)} lines)")
