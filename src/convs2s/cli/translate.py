"""``convs2s translate``: streams, files, several models."""

import argparse
import gc
import sys
from pathlib import Path

from convs2s.cli.common import add_device, add_models, add_threads, write_utf8
from convs2s.cli.decoding_options import add_decoding_options, decoding_settings
from convs2s.config.decoding import DecodingSettings
from convs2s.errors import UserError


def add_translate(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Translate the standard input, line by line and in order, or a file. The text is raw: it "
        "is prepared as the test sets of the model's task are. With --pretokenized it is in the "
        "model's tokens. A file's translation that was killed goes on where it was with the same "
        "command."
    )
    add_models(command)
    command.add_argument("--input", type=Path, help="file to translate [the standard input]")
    command.add_argument(
        "--output", type=Path, help="file to write, with --input [the standard output]"
    )
    command.add_argument(
        "--json", action="store_true", help="JSON lines: tokens, score, alignment, replacements"
    )
    command.add_argument(
        "--pretokenized",
        action="store_true",
        help="input and output in the model's own tokens, separated by blanks, such as lo@@ w",
    )
    command.add_argument(
        "--n-best", type=_count, metavar="N", help="the N best of each line, as Moses lists them"
    )
    command.add_argument(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes that share the --threads, and the memory of the weights, for a file [1]",
    )
    command.add_argument("--quiet", action="store_true", help="show no progress, errors alone")
    add_device(command)
    add_threads(command)
    add_decoding_options(command)
    command.set_defaults(run=_translate)


def _translate(arguments: argparse.Namespace) -> None:
    gc.disable()  # what is loaded stays: looking for garbage in it takes a tenth of the start
    import torch

    from convs2s.decoding.long_files import identity_of, translate_long_file
    from convs2s.decoding.streams import ChunkTranslator, translate_stream
    from convs2s.decoding.translate import LineTranslator
    from convs2s.devices import pick_device

    settings = decoding_settings(arguments)
    device = pick_device(arguments.device)
    _check_translation(arguments, settings, device)
    # Workers are forked, and a pool of threads does not survive a fork: each makes its own.
    torch.set_num_threads(arguments.threads if arguments.workers == 1 else 1)
    translator = LineTranslator(
        *(arguments.model, settings, device),
        pretokenized=arguments.pretokenized,
        threads=max(1, arguments.threads // arguments.workers),
    )
    translate = ChunkTranslator(translator, arguments.json, arguments.n_best)
    gc.freeze()
    gc.enable()
    write_utf8()
    if arguments.input is None:
        translate_stream(translate, sys.stdin.buffer, "standard input")  # type: ignore[arg-type]
        return
    choices = {name: getattr(arguments, name) for name in ("json", "n_best", "pretokenized")}
    translate_long_file(
        translate,
        arguments.input,
        arguments.output,
        identity_of(arguments.model, translator.settings, device, **choices),
        workers=arguments.workers,
        silent=arguments.quiet,
    )


def _check_translation(
    arguments: argparse.Namespace, settings: DecodingSettings, device: str
) -> None:
    """Check what the parser cannot: options that rest on others.

    Raises:
        UserError: they do not go together.
    """
    if arguments.input is None and (arguments.output or arguments.workers > 1):
        raise UserError("--output and --workers are for files: name one with --input")
    if arguments.n_best is not None:
        settings.check_n_best(arguments.n_best, f"--n-best {arguments.n_best}")
    if arguments.workers > 1 and device != "cpu":
        raise UserError(
            "--workers: for CPUs alone: one process keeps a GPU busy (raise --batch-sentences)"
        )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 1")
    return int(text)
