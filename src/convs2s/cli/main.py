"""The command ``convs2s``: its parser, its help, its exit codes and its shell completion."""

import errno
import os
import re
import sys
from argparse import ArgumentParser, HelpFormatter, Namespace
from collections.abc import Sequence
from pathlib import Path

from convs2s import __version__
from convs2s.cli import (
    models,
    n_best,
    new_task,
    results,
    score,
    text,
    train,
    translate,
)
from convs2s.cli.options import (
    Commands,
    Run,
    add_commands,
    check_options,
    prepare_streams,
)
from convs2s.config.messages import unknown
from convs2s.errors import FULL, UnfinishedError, UserError, failure_of_system
from convs2s.files.atomic import NO_FILE
from convs2s.pipeline.process import provide_environment

EXIT_AFTER_CTRL_C = 130
"""Exit code after Ctrl-C, as a shell reports it. Work that can be resumed exits with 75 instead."""

EXIT_WITHOUT_COMMAND = 2
"""Exit code if no command is named and the help is printed; argparse exits with the same code."""

EXIT_CODES = (
    "exit codes: 0 done; 1 an error, reported in one line; 2 unknown, missing or malformed\n"
    "  commands or options; 75 stopped with the state saved (rerun the same command to resume);\n"
    "  130 Ctrl-C in a command that cannot resume"
)

EXTRAS = {
    "documents": ("markdown_it", "polib"),
    "hub": ("httpx2", "huggingface_hub"),
    "report": ("pandas", "scipy", "tabulate", "vl_convert"),
    "train": ("fsspec", "pyarrow", "rich", "torch"),
}
"""Extra of the package -> the modules that it installs and that commands import."""

EXAMPLES = """examples:
  echo "The man sees two red cars." | convs2s translate model.safetensors
  convs2s translate model.safetensors --input news.en --output news.fr --workers 4
  convs2s translate-document model.safetensors --input page.html --output page.fr.html
  convs2s serve model.safetensors --port 8000
  convs2s new-task pairs.tsv --languages en ro
  convs2s new-task memory.tmx more.csv --languages en ro --name mine_en_ro
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
  convs2s get wmt14_en_fr
  convs2s import fairseq model.pt --source-dictionary dict.en.txt --target-dictionary dict.fr.txt \\
    --bpe-codes bpecodes --output model.safetensors
  convs2s mirror my_mirror
  convs2s card model.safetensors
  convs2s export hub model.safetensors my_model --license cc-by-4.0
  convs2s export onnx model.safetensors my_graphs
  convs2s push my_model USER/NAME
  convs2s pull USER/NAME my_copy
  convs2s export-results results/demo_en_fr demo.zip
  convs2s verify results
  convs2s results docs/results/multi30k.ledger.jsonl --scale multi30k --output docs/short_run.md
  convs2s remove-states results
  convs2s kernels --model small
  convs2s config --task demo_en_fr
  convs2s completion bash > ~/.local/share/bash-completion/completions/convs2s
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that ``arguments`` name, by default the arguments of the process.

    A ``UserError`` is printed in one line on the standard error and exits with code 1. The other
    exit codes are listed in ``EXIT_CODES``.
    """
    argv = sys.argv[1:] if arguments is None else arguments
    parser = whole_parser()
    command_parser = _parser_of_typed_command(parser, argv)
    has_options = any(word.startswith("-") for word in argv)
    # Nothing was typed, or a command that only groups other commands, such as `convs2s score`.
    if commands_below(command_parser) and not has_options:
        command_parser.print_help()
        sys.exit(EXIT_WITHOUT_COMMAND)
    # `train` starts its workers with the same arguments, which it finds in `command`.
    parsed, unparsed = parser.parse_known_args(argv, Namespace(command=argv))
    if unparsed:
        options = re.findall(r"--[\w.-]+", command_parser.format_usage())
        typed = unparsed[0].partition("=")[0]
        if typed.startswith("--") and options:
            command_parser.error(unknown("option", typed, options))
        command_parser.error(f"unknown arguments: {' '.join(unparsed)}")
    # This comes before torch is loaded, because torch reads environment variables when it starts.
    provide_environment()
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
        raise  # No extra installs the missing module, so this is a fault of the program.
    except KeyboardInterrupt:
        print("convs2s: interrupted", file=sys.stderr)
        sys.exit(EXIT_AFTER_CTRL_C)
    except BrokenPipeError:
        # The reader has closed the pipe, as `| head` does. End quietly, like other filters.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        name = error.filename
        if isinstance(error, PermissionError) and name is not None:
            message = f"{name}: {error.strerror}"
        elif error.errno in NO_FILE:
            # Such a path cannot name a file and may be very long, so only its beginning is shown.
            message = f"{name!s:.80}...: {error.strerror}"
        elif name is None and error.errno in FULL | {errno.EIO, errno.ESTALE}:
            # A failed write to the standard output names no file.
            _drop_output()
            message = f"the output cannot be written: {error.strerror}"
        elif failure := failure_of_system(error):
            message = str(failure)
        else:
            raise
        sys.exit(f"convs2s: error: {message}")


def _drop_output() -> None:
    """Send the rest of the standard output to the null device.

    Otherwise Python would try to write the rest at exit, and fail in the same way again.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser_of_typed_command(
    parser: ArgumentParser, argv: Sequence[str]
) -> ArgumentParser:
    """Return the parser of the command at the beginning of ``argv``, such as ``score bleu``.

    Exit with code 2 if there is no such command.
    """
    for word in argv:
        commands = commands_below(parser)
        if word.startswith("-") or not commands:
            break
        if word not in commands:
            parser.error(unknown("command", word, commands))
        parser = commands[word]
    return parser


def _add_completion(command: ArgumentParser) -> Run:
    """Print a script with which a shell completes commands, options and file names after Tab.

    Print it again after an update of this program (docs/command_line.md).
    """
    command.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell")
    return _completion


def _completion(arguments: Namespace) -> None:
    import shtab

    def complete_files(parser: ArgumentParser) -> None:
        """Let the shell complete names of files for each argument that is a path."""
        for action in parser._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        for command_parser in commands_below(parser).values():
            complete_files(command_parser)

    parser = whole_parser()
    complete_files(parser)
    print(shtab.complete(parser, shell=arguments.shell))


COMMANDS: Commands = {
    "translate": (translate.add_translate, "translate raw text"),
    "translate-document": (
        translate.add_translate_document,
        "translate a document and keep its markup",
    ),
    "serve": (translate.add_serve, "run a server that translates and shows attention"),
    "new-task": (new_task.add_new_task, "make a task of your own text"),
    "train": (train.add_train, "train a model on a prepared task"),
    "status": (train.add_status, "show the condition of trainings and jobs"),
    "score": (score.add_score, "score translations"),
    "compare-outputs": (
        score.add_compare_outputs,
        "print two systems' translations side by side",
    ),
    "attention": (
        translate.add_attention,
        "print a page that shows where a model looks",
    ),
    "score-pairs": (
        n_best.add_score_pairs,
        "print the log-probabilities of given translations",
    ),
    "rerank": (n_best.add_rerank, "choose the best translations in an n-best list"),
    "tokenize": (text.add_tokenize, "tokenize the standard input"),
    "detokenize": (text.add_detokenize, "detokenize the standard input"),
    "get": (models.add_get, "fetch a published model by its name"),
    "import": (
        models.add_import,
        "convert a model of another toolkit into a model file",
    ),
    "mirror": (
        results.add_mirror,
        "write small generated archives in place of the tasks' downloads",
    ),
    "card": (models.add_card, "print the model card of a model file"),
    "export": (models.add_export, "write a model in another format"),
    "pull": (models.add_pull, "download a model from the Hugging Face Hub"),
    "push": (models.add_push, "upload a model to the Hugging Face Hub"),
    "export-results": (
        results.add_export_results,
        "pack results with the data to check them",
    ),
    "verify": (results.add_verify, "verify that a results folder is whole"),
    "results": (results.add_results, "write the papers' tables from a ledger"),
    "remove-states": (
        train.add_remove_states,
        "remove saved states of finished trainings",
    ),
    "kernels": (
        train.add_kernels,
        "measure which library of matrix products is faster on this machine",
    ),
    "config": (results.add_config, "print the effective configuration"),
    "completion": (
        _add_completion,
        "print a script that completes commands in a shell",
    ),
}


def whole_parser() -> ArgumentParser:
    """Return the parser of ``convs2s`` with all its commands."""
    parser = ArgumentParser(
        prog="convs2s",
        description="Convolutional sequence to sequence learning, one command for each step.",
    )
    parser.add_argument("--version", action="version", version=f"convs2s {__version__}")
    add_commands(parser, "COMMAND", COMMANDS)
    _add_examples(parser, "convs2s")
    return parser


class HelpWithExamples(HelpFormatter):
    """Wraps a description into lines, and leaves a text as it is if it already has line breaks."""

    def _fill_text(
        self,
        text: str,
        width: int,
        indent: str,
    ) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _add_examples(parser: ArgumentParser, command: str) -> None:
    """Append examples and the exit codes to the help of a command and of its subcommands.

    ``command`` is what a user types, such as ``convs2s score bleu``. The help of a command has all
    examples that contain these words.
    """
    examples = [
        text for text in examples_in(EXAMPLES) if re.search(rf"\b{command}(?!\S)", text)
    ]
    parser.formatter_class = HelpWithExamples
    parser.epilog = "\n".join(["examples:", *examples, "", EXIT_CODES])
    for name, subcommand in commands_below(parser).items():
        _add_examples(subcommand, f"{command} {name}")


def examples_in(text: str) -> list[str]:
    r"""Return the commands in a text of examples.

    A command begins after two blanks. A ``\`` at the end of a line continues it in the next line.
    """
    return re.findall(r"^(  \S(?:.*\\\n)*.*)$", text, re.MULTILINE)


def commands_below(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    """Return the parsers of a parser's subcommands by name; an empty dict if it has none."""
    for action in parser._actions:
        # The choices of subcommands are a dict: name -> parser. Those of options are not.
        if isinstance(action.choices, dict):
            return dict(action.choices)
    return {}
