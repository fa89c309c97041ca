"""The commands ``convs2s translate``, ``translate-document``, ``serve`` and ``attention``."""

import gc
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from convs2s.cli.options import (
    Run,
    add_device,
    add_file,
    add_flag,
    add_models,
    add_section,
    add_threads,
    model_files,
    print_warning,
    read_section,
)
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.device import held_search_device
from convs2s.errors import UserError
from convs2s.files.atomic import check_not_read
from convs2s.serving.settings import ServerSettings

MODEL_SUFFIX = ".safetensors"


def add_translate(command: ArgumentParser) -> Run:
    """Translate a file or the standard input, line by line and in order.

    Each line is a sentence, unless --split-sentences is given. The text is raw and is prepared like
    the test sets of the model's task, unless --pretokenized is given. If the translation of a file
    was killed, rerun the same command to resume it.
    """
    add_file(
        command,
        "model",
        "model file; several files make an ensemble; if the name of the last file does not end in "
        f"{MODEL_SUFFIX}, it is the file to translate",
        nargs="+",
    )
    add_file(command, "--input", "file to translate [the standard input]")
    add_file(command, "--output", "file to write, with --input [the standard output]")
    add_flag(
        command,
        "--json",
        "print JSON lines with tokens, score, alignment and replaced words",
    )
    add_flag(
        command,
        "--pretokenized",
        "input and output are the model's tokens (such as lo@@ w), separated by blanks",
    )
    add_flag(
        command,
        "--split-sentences",
        "translate each sentence of a line by itself, and join their translations into one line",
    )
    command.add_argument(
        "--n-best",
        type=_count,
        metavar="N",
        help="print the N best translations of each line, in the format of Moses",
    )
    command.add_argument(
        "--workers",
        type=_count,
        default=1,
        metavar="N",
        help="processes that translate a file; they share the --threads, and one copy of the "
        "weights in memory [1]",
    )
    add_flag(command, "--quiet", "print no progress and no hints")
    add_device(command)
    add_threads(command)
    add_section(command, DecodingSettings)
    return _translate


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r}: expected a whole number of at least 1")
    return int(text)


def _translate(arguments: Namespace) -> None:
    # Loading libraries and models makes almost no garbage, but the collector's search for garbage
    # would take a tenth of the time until the first translation.
    gc.disable()
    last_is_model = arguments.model[-1].suffix == MODEL_SUFFIX
    if arguments.input is None and len(arguments.model) > 1 and not last_is_model:
        arguments.input = arguments.model.pop()
    if Path("-") in (arguments.input, arguments.output):
        raise UserError(
            "-: leave --input and --output out for the standard input and output"
        )
    if arguments.input is None and (arguments.output or arguments.workers > 1):
        raise UserError(
            "--output and --workers need a file to translate: name one after the model"
        )
    prints_moses_list = arguments.n_best and not arguments.json
    if arguments.split_sentences and (arguments.pretokenized or prints_moses_list):
        raise UserError(
            "--split-sentences: cannot be combined with --pretokenized; with --n-best it needs "
            "--json"
        )
    arguments.model = model_files(arguments.model)
    with held_search_device(arguments.device, waits=False) as device:
        _translate_on(device, arguments)


def _translate_on(device: str, arguments: Namespace) -> None:
    from convs2s.decoding.long_files import identity_of, translate_long_file
    from convs2s.decoding.streams import ChunkTranslator, translate_stream
    from convs2s.decoding.translate import LineTranslator

    settings = read_section(arguments, DecodingSettings)
    if arguments.n_best is not None:
        settings.check_n_best(arguments.n_best, f"--n-best {arguments.n_best}")
    if arguments.workers > 1 and device != "cpu":
        raise UserError(
            "--workers: only for CPUs, because one process keeps a GPU busy: raise "
            "--batch-sentences instead"
        )
    translator = LineTranslator(
        arguments.model,
        settings,
        device,
        pretokenized=arguments.pretokenized,
        threads=max(1, arguments.threads // arguments.workers),
    )
    translate = ChunkTranslator(
        translator,
        arguments.json,
        arguments.n_best,
        arguments.split_sentences,
        hints=not (arguments.pretokenized or arguments.quiet or arguments.workers > 1),
    )
    gc.freeze()  # Later collections skip all objects that exist now.
    gc.enable()
    if arguments.input is None:
        translate_stream(translate, sys.stdin.buffer, "standard input")  # type: ignore[arg-type]
        return
    identity = identity_of(
        arguments.model,
        translator.settings,
        device,
        json=arguments.json,
        n_best=arguments.n_best,
        pretokenized=arguments.pretokenized,
        split_sentences=arguments.split_sentences,
    )
    translate_long_file(
        translate,
        arguments.input,
        arguments.output,
        identity,
        workers=arguments.workers,
        silent=arguments.quiet,
    )


def add_translate_document(command: ArgumentParser) -> Run:
    """Translate the text of a document, sentence by sentence, and keep everything else.

    The documents are plain text, HTML, Markdown, subtitles (srt, vtt), Word documents (docx) and
    gettext's catalogues (po). The suffix of --input states the format (docs/documents.md). Markdown
    and po need the extra `documents` of the package.
    """
    add_models(command)
    add_file(command, "--input", "document to translate", required=True)
    add_file(command, "--output", "document to write", required=True)
    add_flag(command, "--quiet", "print no progress")
    add_device(command)
    add_threads(command)
    add_section(command, DecodingSettings)
    return _translate_document


def _translate_document(arguments: Namespace) -> None:
    from convs2s.decoding.translate import LineTranslator
    from convs2s.documents.read import read_document
    from convs2s.documents.translate import translate_document

    models = model_files(arguments.model)
    check_not_read(arguments.output, [arguments.input, *models])
    document = read_document(arguments.input)
    settings = read_section(arguments, DecodingSettings)
    with held_search_device(arguments.device, waits=False) as device:
        translator = LineTranslator(models, settings, device, threads=arguments.threads)
        warning = translate_document(
            translator, document, arguments.output, silent=arguments.quiet
        )
    print_warning(warning)


def add_serve(command: ArgumentParser) -> Run:
    """Run a server that translates for other programs and for a web page (docs/serving.md).

    A request chooses among models for different languages. The server accepts connections from this
    machine only, unless --host states another address. Requests that arrive together are translated
    together. After Ctrl-C, SIGTERM or SIGHUP, the server finishes the requests that it has received
    and then ends.
    """
    add_file(
        command,
        "model",
        "model file; several files for the same languages make an ensemble",
        nargs="+",
    )
    add_section(command, ServerSettings)
    add_flag(
        command,
        "--pretokenized",
        "texts are the model's tokens (such as lo@@ w), separated by blanks",
    )
    add_device(command)
    add_threads(command)
    add_section(command, DecodingSettings)
    return _serve


def _serve(arguments: Namespace) -> None:
    from convs2s.serving.server import serve

    with held_search_device(arguments.device, waits=False) as device:
        serve(
            model_files(arguments.model),
            read_section(arguments, DecodingSettings),
            read_section(arguments, ServerSettings),
            device=device,
            threads=arguments.threads,
            pretokenized=arguments.pretokenized,
        )


def add_attention(command: ArgumentParser) -> Run:
    """Translate a sentence and print an HTML page that shows the attention of each decoder layer.

    On the page, point at a token, or move to it with Tab and the arrow keys, to see its attention.
    The page needs no network connection.
    """
    add_file(command, "model", "model file, or name of a published model")
    command.add_argument("sentence", help="raw text of the sentence to translate")
    # The page is made by one model from one sentence on the CPU, so these settings do nothing.
    without_effect = {"batch_sentences", "batch_tokens", "cuda_graphs", "ensemble"}
    add_section(command, DecodingSettings, without=without_effect)
    return _attention


def _attention(arguments: Namespace) -> None:
    from convs2s.model_file import describe_model
    from convs2s.paper.attention import attention_page, example_of

    (model,) = model_files([arguments.model])
    description = describe_model(model)
    if not description.architecture.has_attention:
        raise UserError(
            f"{model}: a model of kind {description.architecture.kind} has no attention to show"
        )
    stand_in = description.training.get("stand_in")
    example = example_of(
        model,
        arguments.sentence,
        read_section(arguments, DecodingSettings),
        {
            "task": description.task,
            "model": model.name,
            "run": model.parent.name,
            # The workflow's report shows the scale, which this command does not know.
            "scale": "",
        },
        None if stand_in is None else str(stand_in),
    )
    print(attention_page(example))
