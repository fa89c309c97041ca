"""The commands ``convs2s score-pairs``, ``rerank`` and ``score oracle`` for n-best lists."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from convs2s.cli.options import (
    Run,
    add_device,
    add_file,
    add_flag,
    add_models,
    add_references,
    add_threads,
    add_tokenized,
    model_files,
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
    """Yield the hypotheses of each sentence in a Moses n-best list."""
    return read_n_best(read_lines(path), str(path))


def _add_feature(command: ArgumentParser, meaning: str) -> None:
    command.add_argument(
        "--feature",
        default=MODEL,
        metavar="NAME",
        help=f"{meaning}, without a final = [{MODEL}]",
    )


def add_score_pairs(command: ArgumentParser) -> Run:
    """Print the log-probabilities that a model gives to translations.

    With --target, print for each line the log-probability (nats) of the target given the source,
    and the number of target tokens, counting </s>. With --n-best, print the lines of the list with
    the log-probability as a further feature.
    """
    add_models(command)
    add_file(command, "--source", "file of source sentences", required=True)
    targets = command.add_mutually_exclusive_group(required=True)
    add_file(targets, "--target", "file with one translation of each source sentence")
    add_file(
        targets,
        "--n-best",
        "Moses n-best list with translations of the source sentences",
        metavar="LIST",
    )
    forms = command.add_mutually_exclusive_group()
    forms.add_argument(
        "--tokenized",
        dest="form",
        action="store_const",
        const="words",
        help="both sides are words separated by blanks, as in the lists of Moses [raw text]",
    )
    forms.add_argument(
        "--pretokenized",
        dest="form",
        action="store_const",
        const="tokens",
        help="both sides are the model's tokens, such as lo@@ w [raw text]",
    )
    _add_feature(command, "name of the feature to add to the --n-best list")
    command.add_argument(
        "--length-penalty",
        type=float,
        default=0.0,
        metavar="ALPHA",
        help="divide the log-probability in the feature by tokens^ALPHA [0: do not divide]",
    )
    add_device(command)
    add_threads(command)
    command.set_defaults(form="raw")
    return _score_pairs


def _score_pairs(arguments: Namespace) -> None:
    import torch

    from convs2s.decoding.rescoring import PairScorer, score_groups, score_pairs
    from convs2s.devices import held_device

    states_list_option = arguments.feature != MODEL or arguments.length_penalty != 0
    if arguments.n_best is None and states_list_option:
        raise UserError(
            "--feature and --length-penalty: apply to an n-best list: name it with --n-best"
        )
    # The settings of decoding check the bounds of the length penalty.
    stated = {"length_penalty": arguments.length_penalty}
    alpha = validated(DecodingSettings, stated, "options").alpha
    torch.set_num_threads(arguments.threads)
    models = model_files(arguments.model)
    with held_device(arguments.device, waits=False) as device:
        scorer = PairScorer.load(models, device, arguments.form)
        if arguments.n_best is not None:
            groups = read_groups(arguments.n_best)
            sources = read_lines(arguments.source)
            scored = score_groups(scorer, sources, groups, arguments.feature, alpha)
            for hypothesis in scored:
                print(hypothesis.line())
            return
        print("log_probability\ttokens")
        pairs = read_line_pairs(arguments.source, arguments.target)
        names = str(arguments.source), str(arguments.target)
        for score in score_pairs(scorer, pairs, *names):
            print(f"{score.log_probability:.9g}\t{score.tokens}")


def add_rerank(command: ArgumentParser) -> Run:
    """Print the best hypothesis of each sentence in an n-best list.

    The best hypothesis has the highest average of the list's score and a feature, with equal
    weights. score-pairs adds such a feature.
    """
    add_file(command, "list", "Moses n-best list")
    _add_feature(command, "name of the feature")
    forms = command.add_mutually_exclusive_group()
    add_flag(
        forms,
        "--tokenized",
        "print texts as in the list, with the escapes of Moses such as &#124;",
    )
    add_flag(
        forms,
        "--n-best",
        "print the whole list, sorted by the average, which replaces the score",
    )
    return _rerank


def _rerank(arguments: Namespace) -> None:
    average = average_with(arguments.feature)
    for group in every_sentence(read_groups(arguments.list)):
        if arguments.n_best:
            for hypothesis in reranked(group, average):
                print(hypothesis.line())
        else:
            text = max(group, key=average).text
            print(text if arguments.tokenized else unescaped(text))


def add_oracle(command: ArgumentParser) -> Run:
    """Print the BLEU of an n-best list's first hypotheses, and of its best hypotheses (oracle).

    The best hypothesis of a sentence is the one with the highest smoothed sentence BLEU.
    """
    add_file(command, "list", "Moses n-best list")
    add_references(command, "+")
    add_tokenized(command)
    return _score_oracle


def _score_oracle(arguments: Namespace) -> None:
    from convs2s.scoring.bleu import corpus_bleu
    from convs2s.scoring.reranking import first_and_oracle

    references, names = read_references(arguments)
    is_tokenized = arguments.form == "tokenized"
    choices = first_and_oracle(
        read_groups(arguments.list),
        references,
        arguments.form,
        str if is_tokenized else unescaped,
        arguments.list,
        arguments.reference,
    )
    # `choices` has the texts of the first hypotheses, then those of the oracle.
    for name, texts in zip(("first of the list", "oracle"), choices, strict=True):
        score = corpus_bleu(texts, *references, form=arguments.form)
        shown = f"BLEU = {score}  {name}  {score.signature}"
        print(f"{shown}  ({names}, {len(texts)} lines)")
