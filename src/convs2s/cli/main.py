"""``convs2s``: what the workflow does, by hand."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from convs2s import __version__
from convs2s.cli.common import add_device, add_threads, standard_input
from convs2s.cli.rescore import add_oracle, add_rerank, add_score_pairs
from convs2s.cli.translate import add_translate
from convs2s.config import effective, load, model_settings, schema
from convs2s.errors import UnfinishedError, UserError
from convs2s.files import read_lines
from convs2s.pipeline.process import provide_environment

EXAMPLES = """examples:
  echo "The man sees two red cars." | convs2s translate model.safetensors
  convs2s translate model.safetensors --input news.en --output news.fr --workers 4
  convs2s train results/demo_en_fr --model demo --seed 1 --output model.safetensors
  convs2s score bleu --reference test.fr < translations.fr
  convs2s score compare --reference test.fr baseline.fr system.fr
  convs2s score-pairs model.safetensors --source test.en --n-best test.nbest > scored.nbest
  convs2s rerank scored.nbest > best.fr
  convs2s tokenize --language en < raw.en | convs2s detokenize --language en
  convs2s import fairseq model.pt --source-dictionary dict.en.txt --target-dictionary dict.fr.txt \\
    --bpe-codes bpecodes --output model.safetensors
  convs2s config --task demo_en_fr
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an input fault is one line on the standard error and exit code 1."""
    given = sys.argv[1:] if arguments is None else arguments
    parsed = _parser().parse_args(given, argparse.Namespace(command=given))
    provide_environment()  # before torch is loaded
    try:
        parsed.run(parsed)
        sys.stdout.flush()
    except UnfinishedError as error:
        print(f"convs2s: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except UserError as error:
        sys.exit(f"convs2s: error: {error}")
    except BrokenPipeError:
        # The reader has gone (`| head`): end quietly, as other filters do.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="convs2s",
        description="Convolutional sequence to sequence learning, by hand.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"convs2s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_translate(commands.add_parser("translate", help="raw text in, translated text out"))
    _add_train(commands.add_parser("train", help="train a model on a prepared task"))
    _add_score(commands.add_parser("score", help="score translations"))
    add_score_pairs(commands.add_parser("score-pairs", help="log-probabilities of translations"))
    add_rerank(commands.add_parser("rerank", help="choose from an n-best list"))
    for name, run in (("tokenize", _tokenize), ("detokenize", _detokenize)):
        command = commands.add_parser(name, help=f"{name} the standard input")
        command.add_argument("--language", required=True, help="two-letter code, such as en")
        command.set_defaults(run=run)
    _add_import(commands.add_parser("import", help="make a model file of another toolkit's model"))
    _add_config(commands.add_parser("config", help="print the effective configuration"))
    return parser


def _add_train(command: argparse.ArgumentParser) -> None:
    command.description = "Train a model, or go on where an earlier command was stopped."
    command.add_argument("folder", type=Path, help="a prepared task, such as results/demo_en_fr")
    settings = command.add_mutually_exclusive_group(required=True)
    settings.add_argument("--model", help="a name of config/models.yaml")
    settings.add_argument("--settings", type=Path, help="a JSON file with such an entry's settings")
    command.add_argument("--seed", type=int, default=1, help="random seed [1]")
    command.add_argument("--output", type=Path, required=True, help="the model file to write")
    command.add_argument("--dictionary", type=Path, help="dictionary.tsv for unknown words")
    command.add_argument("--candidates", type=Path, help="candidates.tsv for vocabulary selection")
    command.add_argument(
        "--truecasers",
        nargs=2,
        type=Path,
        metavar=("SOURCE", "TARGET"),
        help="truecasers of a truecased text",
    )
    add_device(command)
    add_threads(command)
    command.add_argument(
        "--workers",
        type=int,
        default=1,
        help="processes that share each batch, one per GPU where there are any [1]; 0 is 1",
    )
    command.add_argument(
        "--time-limit",
        type=float,
        metavar="MINUTES",
        help="save and end with exit code 75 shortly before so many minutes have passed",
    )
    command.set_defaults(run=_train)


def _train(arguments: argparse.Namespace) -> None:
    from convs2s.training.launch import launch
    from convs2s.training.run import TrainingJob

    if arguments.settings:
        settings = _read_settings(arguments.settings)
    else:
        settings = model_settings(load(Path.cwd()), arguments.model)
    job = TrainingJob(
        folder=arguments.folder,
        settings=settings,
        seed=arguments.seed,
        output=arguments.output,
        dictionary=arguments.dictionary,
        device=arguments.device,
        threads=arguments.threads,
        candidates=arguments.candidates,
        truecasers=arguments.truecasers,
        time_limit=arguments.time_limit,
    )
    launch(job, max(1, arguments.workers), arguments.command)


def _add_score(command: argparse.ArgumentParser) -> None:
    metrics = command.add_subparsers(required=True, metavar="METRIC")
    bleu = metrics.add_parser("bleu", help="BLEU of the standard input against references")
    bleu.add_argument("--reference", type=Path, nargs="+", required=True, help="reference files")
    bleu.set_defaults(run=_score_bleu)
    comparison = metrics.add_parser("compare", help="two systems' BLEU, by paired bootstrap")
    comparison.add_argument("baseline", type=Path, help="file of one system's lines")
    comparison.add_argument("system", type=Path, help="file of the other system's lines")
    comparison.add_argument(
        "--reference", type=Path, action="append", required=True, help="of several, give each so"
    )
    comparison.set_defaults(run=_score_compare)
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
    score = metric(hypotheses, *references)
    names = " ".join(str(path) for path in arguments.reference)
    print(f"BLEU = {score.score:.2f}  {score.signature}  ({names}, {len(hypotheses)} lines)")


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
    print(f"BLEU = {result.baseline.score:.2f} ± {result.baseline_interval:.2f}  {paths[0]}")
    print(f"BLEU = {result.system.score:.2f} ± {result.system_interval:.2f}  {paths[1]}")
    print(f"difference = {result.difference:+.2f}, p = {result.p_value:.4f}, {SAMPLES} resamples")
    names = " ".join(str(path) for path in arguments.reference)
    print(f"{result.system.signature}  ({names}, {len(system)} lines)")


def _tokenize(arguments: argparse.Namespace) -> None:
    from convs2s.text.preparation import Preparation

    preparation = Preparation("moses_test", arguments.language)
    for line in standard_input():
        print(preparation.prepare(line))


def _detokenize(arguments: argparse.Namespace) -> None:
    from convs2s.text.preparation import Preparation

    preparation = Preparation("moses_test", arguments.language)
    for line in standard_input():
        print(preparation.restore(line))


def _add_import(command: argparse.ArgumentParser) -> None:
    toolkits = command.add_subparsers(required=True, metavar="TOOLKIT")
    fairseq = toolkits.add_parser("fairseq", help="a convolutional model that fairseq trained")
    fairseq.description = "Make a model file of an fconv model; nothing in the checkpoint is run."
    fairseq.add_argument("checkpoint", type=Path, help="such as model.pt or checkpoint_best.pt")
    for side in ("source", "target"):
        fairseq.add_argument(
            f"--{side}-dictionary", type=Path, required=True, help="its dict.LANGUAGE.txt"
        )
    fairseq.add_argument("--bpe-codes", type=Path, help="its BPE codes; none: whole words")
    fairseq.add_argument(
        "--languages", nargs=2, metavar=("SOURCE", "TARGET"), help="[what the checkpoint states]"
    )
    recipe = schema("task")["properties"]["preparation"]["properties"]["test"]
    fairseq.add_argument(
        "--preparation",
        choices=recipe["enum"],
        default=recipe["default"],
        help=f"how raw text becomes the words that the codes split [{recipe['default']}]",
    )
    fairseq.add_argument("--output", type=Path, required=True, help="the model file to write")
    fairseq.set_defaults(run=_import_fairseq)


def _import_fairseq(arguments: argparse.Namespace) -> None:
    from convs2s.interop.fairseq import FairseqFiles, import_fairseq

    languages = arguments.languages
    import_fairseq(
        FairseqFiles(
            arguments.checkpoint,
            arguments.source_dictionary,
            arguments.target_dictionary,
            arguments.bpe_codes,
        ),
        arguments.output,
        task=arguments.output.stem,
        languages=dict(zip(("source", "target"), languages, strict=True)) if languages else None,
        preparation=arguments.preparation,
    )


def _add_config(command: argparse.ArgumentParser) -> None:
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("--task", help="what applies to this task")
    group.add_argument("--reference", action="store_true", help="the page docs/configuration.md")
    group.add_argument("--template", action="store_true", help="config.yaml as it comes")
    command.add_argument("--model", help="a model other than the task's headline")
    command.add_argument("--decoding", help="a decoding other than the task's headline")
    command.set_defaults(run=_config)


def _config(arguments: argparse.Namespace) -> None:
    from convs2s.config_reference import reference, template

    if arguments.reference:
        sys.stdout.write(reference())
    elif arguments.template:
        sys.stdout.write(template())
    else:
        settings = load(Path.cwd())
        values = effective(settings, arguments.task, arguments.model, arguments.decoding)
        yaml.safe_dump(values, sys.stdout, sort_keys=False, allow_unicode=True)


def _read_settings(path: Path) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    return settings
