"""Translating a file of any length: chunk by chunk, with progress, from where it was stopped."""

import hashlib
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.growing_output import DirectOutput, GrowingOutput, growing_output
from convs2s.decoding.progress import progress
from convs2s.decoding.workers import Chunk, ChunkTranslator, translate_chunks
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.checksums import sha256
from convs2s.files.interrupts import Interrupted, interruptible
from convs2s.files.text import read_lines

CHUNK_BATCHES = 8
"""Batches of a chunk for each thread; a kill loses a chunk of each worker at most."""

SPEED_ALONE = {"batch_sentences", "batch_tokens", "cuda_graphs"}
"""The settings of config/decodings.yaml that the result does not depend on, on a CPU."""


def translate_long_file(
    translate: ChunkTranslator,
    source: Path,
    output: Path | None,
    identity: Mapping[str, object],
    *,
    workers: int,
    silent: bool = False,
) -> None:
    """Translate a file, showing on the standard error how far it is.

    Args:
        translate: the models and what to write.
        source: one sentence a line.
        output: what to write; None: the standard output, where nothing can be gone on with.
        identity: what the output's bytes depend on besides the source.
        workers: processes.
        silent: show nothing.

    Raises:
        UserError: the source is missing or not text, is the output, or a worker was killed.
        UnfinishedError: Ctrl-C or SIGTERM stopped it; the message says what is written.
    """
    _check_files(source, output)
    shown = partial(_results, translate, source, workers=workers, silent=silent)
    with interruptible():
        lines, checksum = _survey(source)
        if output is None:
            with closing(shown(done=0, total=lines)) as results:
                for _, text in results:
                    sys.stdout.write(text)
            return
        with (
            growing_output(output, {**identity, "input": checksum}) as growing,
            closing(shown(done=growing.done, total=lines)) as results,
        ):
            _append_all(growing, results, lines)


def _check_files(source: Path, output: Path | None) -> None:
    if not source.exists():
        return  # said when it is read
    if not source.is_file():
        raise UserError(f"{source}: is no file that can be read twice: give it as standard input")
    if output is not None and output.exists() and output.samefile(source):
        raise UserError(f"{output}: is the input as well: name another --output")


def _append_all(
    growing: GrowingOutput | DirectOutput, results: Iterable[tuple[int, str]], lines: int
) -> None:
    """Write chunk after chunk of an input of so many lines.

    Raises:
        UnfinishedError: Ctrl-C or SIGTERM stopped it; the message says what is written.
    """
    try:
        for count, text in results:
            growing.append(text, count)
    except Interrupted as signal:
        raise UnfinishedError(
            f"translation is not finished: {signal} was received; {growing.kept(lines)}"
        ) from None


def identity_of(
    models: Sequence[Path], settings: DecodingSettings, device: str, **others: object
) -> dict[str, object]:
    """Return what the translations' bytes depend on, by name.

    Args:
        models: model files, by their checksums.
        settings: how to search.
        device: a GPU rounds the same sentence otherwise in another batch.
        others: whatever else.
    """
    kept = settings.model_dump(mode="json", exclude=SPEED_ALONE if device == "cpu" else set())
    return {"models": [sha256(path) for path in models], **kept, "device": device, **others}


def _survey(source: Path) -> tuple[int, str]:
    """Return a file's number of lines and the SHA-256 of its text; every line is valid then."""
    digest, count = hashlib.sha256(), 0
    for line in read_lines(source):
        digest.update(f"{line}\n".encode())
        count += 1
    return count, digest.hexdigest()


def _results(
    translate: ChunkTranslator,
    source: Path,
    *,
    done: int,
    total: int,
    workers: int,
    silent: bool,
) -> Generator[tuple[int, str], None, None]:
    translator = translate.translator
    size = CHUNK_BATCHES * translator.threads * translator.settings.batch_sentences
    results = translate_chunks(translate, _chunks(source, done, size), workers)
    with progress(" sentences", total, done=done, silent=silent) as bar:
        for count, text in results:
            yield count, text
            bar.update(count)


def _chunks(source: Path, done: int, size: int) -> Iterator[Chunk]:
    """Yield the lines after the first ``done``; chunks begin where they would without those."""
    numbered = islice(enumerate(read_lines(source), start=1), done, None)
    while chunk := list(islice(numbered, size)):
        yield chunk
