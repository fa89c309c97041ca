"""``convs2s``: what the workflow does, by hand; its help, its exit codes, its completion."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from convs2s import __version__
from convs2s.cli.models import add_card, add_export, add_import, add_pull, add_push
from convs2s.cli.n_best import add_rerank, add_score_pairs
from convs2s.cli.options import add_command, check_options, prepare_streams
from convs2s.cli.results import add_config, add_export_results, add_mirror, add_results
from convs2s.cli.score import add_compare_outputs, add_score
from convs2s.cli.text import add_detokenize, add_tokenize
from convs2s.cli.train import add_kernels, add_remove_states, add_status, add_train
from convs2s.cli.translate import add_attention, add_serve, add_translate
from convs2s.config.messages import unknown
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import NO_FILE, NO_ROOM
from convs2s.pipeline.process import provide_environment

EXIT_AFTER_CTRL_C = 130  # exit code after Ctrl-C, as in the shell; 75 if the work can be resumed

EXIT_CODES = (
    "exit codes: 0 done; 1 an error, said in one line; 2 unknown, missing or malformed\n"
    "  options; 75 stopped with its state saved: rerun the same command to resume;\n"
    "  130 Ctrl-C in a command that cannot resume"
)

EXTRAS = {
    "hub": ("httpx2", "huggingface_hub"),
    "report": ("pandas", "scipy", "tabulate", "vl_convert"),
    "serve": ("prometheus_client", "starlette", "uvicorn"),
    "train": ("pyarrow", "rich"),
}
"""Extra of the package -> the modules that it brings and that commands import."""

EXAMPLES = """examples:
  echo "The man sees two red cars." | convs2s translate model.safetensors
  convs2s translate model.safetensors --input news.en --output news.fr --workers 4
  convs2s serve model.safetensors --port 8000
  convs2s train results/demo_en_fr --model demo --seed 1 --output model.safetensors
  convs2s status results --watch
  convs2s score bleu --reference test.fr < translations.fr
  convs2s score rouge --reference titles.txt --stem outputs.txt
  convs2s score rouge --reference r1.txt --reference r2.txt --bytes 75 --stem outputs.txt
  convs2s score rouge --reference titles.txt --items items.tsv outputs.txt
  convs2s score compare --reference test.fr baseline.fr system.fr
  convs2s compare-outputs baseline.fr system.fr --reference test.fr
  convs2s attention model.safetensors "The man sees two red cars." > page.html
  convs2s score oracle test.nbest --reference test.fr
  convs2s score-pairs model.safetensors --source test.en --n-best test.nbest > scored.nbest
  convs2s rerank scored.nbest > best.fr
  convs2s tokenize --language en < raw.en | convs2s detokenize --language en
  convs2s import fairseq model.pt --source-dictionary dict.en.txt --target-dictionary dict.fr.txt \\
    --bpe-codes bpecodes --output model.safetensors
  convs2s mirror my_mirror
  convs2s card model.safetensors
  convs2s export hub model.safetensors my_model --license cc-by-4.0
  convs2s export onnx model.safetensors my_graphs
  convs2s push my_model USER/NAME
  convs2s pull USER/NAME my_copy
  convs2s export-results results/demo_en_fr demo.zip
  convs2s results docs/results/multi30k.ledger.jsonl --scale multi30k --output docs/short_run.md
  convs2s remove-states results
  convs2s kernels --model small
  convs2s config --task demo_en_fr
  convs2s completion bash > ~/.local/share/bash-completion/completions/convs2s
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; an input fault is one line on the standard error and exit code 1."""
    argv = sys.argv[1:] if arguments is None else arguments
    parser = whole_parser()
    used = _command_meant(parser, argv)
    parsed, rest = parser.parse_known_args(argv, argparse.Namespace(command=argv, parser=parser))
    if rest:
        options = re.findall(r"--[\w.-]+", used.format_usage())
        typed = rest[0].partition("=")[0]
        if typed.startswith("--") and options:
            used.error(unknown("option", typed, options))
        used.error(f"unknown arguments: {' '.join(rest)}")
    provide_environment()  # before torch is loaded
    prepare_streams()
    try:
        check_options(parsed)
        parsed.run(parsed)
        sys.stdout.flush()
    except UnfinishedError as error:
        print(f"convs2s: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except UserError as error:
        sys.exit(f"convs2s: error: {error}")
    except ModuleNotFoundError as error:
        for extra, modules in EXTRAS.items():
            if error.name in modules:
                sys.exit(
                    f"convs2s: error: {error.name} is not installed: pip install "
                    f"'convs2s[{extra}]' "
                    f"(in a clone: pip install -c constraints.txt -e '.[{extra}]')"
                )
        raise
    except KeyboardInterrupt:
        print("convs2s: interrupted", file=sys.stderr)
        sys.exit(EXIT_AFTER_CTRL_C)
    except BrokenPipeError:
        _drop_output()  # the reader has gone (`| head`): end quietly, as other filters do
        sys.exit(1)
    except OSError as error:
        name = error.filename
        if isinstance(error, PermissionError) and name is not None:
            said = f"{name}: {error.strerror}"
        elif error.errno in NO_FILE:
            said = f"{name!s:.80}...: {error.strerror}"
        elif error.errno in NO_ROOM and name is None:
            _drop_output()
            said = f"the output cannot be written: {error.strerror}"
        else:
            raise
        sys.exit(f"convs2s: error: {said}")


def _drop_output() -> None:
    """Let what is still to be written go nowhere, or Python's end would try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command_meant(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command that is typed; end with exit code 2 over an unknown one."""
    for word in argv:
        below = commands_below(parser)
        if word.startswith("-") or not below:
            break
        if word not in below:
            parser.error(unknown("command", word, below))
        parser = below[word]
    return parser


def _add_completion(command: argparse.ArgumentParser) -> None:
    """Print the script by which a shell completes commands, options and file names after Tab.

    Make it anew after an update of this program (docs/command_line.md).
    """
    command.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")
    command.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> None:
    import shtab

    def complete_files(parser: argparse.ArgumentParser) -> None:
        for action in parser._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        for below in commands_below(parser).values():
            complete_files(below)

    complete_files(arguments.parser)
    print(shtab.complete(arguments.parser, shell=arguments.shell))


COMMANDS = {
    "translate": (add_translate, "raw text in, translated text out"),
    "serve": (add_serve, "a server with a page: translation and attention"),
    "train": (add_train, "train a model on a prepared task"),
    "status": (add_status, "how trainings and jobs are"),
    "score": (add_score, "score translations"),
    "compare-outputs": (add_compare_outputs, "two systems' translations side by side"),
    "attention": (add_attention, "where a model looks, as a page"),
    "score-pairs": (add_score_pairs, "log-probabilities of translations"),
    "rerank": (add_rerank, "choose from an n-best list"),
    "tokenize": (add_tokenize, "tokenize the standard input"),
    "detokenize": (add_detokenize, "detokenize the standard input"),
    "import": (add_import, "make a model file of another toolkit's model"),
    "mirror": (add_mirror, "write small generated archives in place of the tasks' downloads"),
    "card": (add_card, "where a model file comes from"),
    "export": (add_export, "write a model in another form"),
    "pull": (add_pull, "bring a model of the Hugging Face Hub"),
    "push": (add_push, "send a model to the Hugging Face Hub"),
    "export-results": (add_export_results, "pack results with what they rest on"),
    "results": (add_results, "the papers' tables from a ledger"),
    "remove-states": (add_remove_states, "what trainings that have ended no longer need"),
    "kernels": (add_kernels, "how fast this machine multiplies"),
    "config": (add_config, "print the effective configuration"),
    "completion": (_add_completion, "a shell's script that completes what is typed"),
}
"""Name -> what adds its options, whose docstring ``--help`` shows, and its line in the list."""


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = argparse.ArgumentParser(
        prog="convs2s", description="Convolutional sequence to sequence learning, by hand."
    )
    parser.add_argument("--version", action="version", version=f"convs2s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (add_options, text) in COMMANDS.items():
        add_command(commands, name, add_options, text)
    _add_examples(parser, "convs2s")
    return parser


class HelpWithExamples(argparse.HelpFormatter):
    """Wraps what describes a command, and leaves a text that has lines of its own as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _add_examples(parser: argparse.ArgumentParser, typed: str) -> None:
    """End the help of a command, and of those below it, with the examples that are of it."""
    examples = [text for text in examples_in(EXAMPLES) if re.search(rf"\b{typed}(?!\S)", text)]
    parser.formatter_class = HelpWithExamples
    parser.epilog = "\n".join(["examples:", *examples, "", EXIT_CODES])
    for name, below in commands_below(parser).items():
        _add_examples(below, f"{typed} {name}")


def examples_in(text: str) -> list[str]:
    """Return the commands of a text of examples, those of several lines in one piece."""
    return re.findall(r"^(  \S(?:.*\\\n)*.*)$", text, re.MULTILINE)


def commands_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a parser by their names; none where it has options alone."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}
