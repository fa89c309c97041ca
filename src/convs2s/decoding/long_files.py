"""Translate a file of any length, chunk by chunk, with progress. A stopped run can be resumed.

While the output is unfinished, ``OUTPUT.part`` contains the translations so far.
``OUTPUT.part.json`` contains the numbers of complete lines and bytes in ``OUTPUT.part``, and the
identity of the work: everything that the output's bytes depend on. When the translation is
complete, ``OUTPUT.part`` is renamed to ``OUTPUT``.
"""

import bz2
import gzip
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import zstandard
from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from convs2s import __version__
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import digest_of_extension
from convs2s.decoding.parallel import in_chunks, translate_chunks
from convs2s.decoding.progress import progress
from convs2s.decoding.streams import ChunkTranslator
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import check_not_read, is_written_in_place, writing
from convs2s.files.checksums import sha256
from convs2s.files.interrupts import STOPPING, Interrupted, handling, interrupt
from convs2s.files.locks import PATIENT, try_lock
from convs2s.files.text import read_lines, write_text
from convs2s.model_file import describe_model
from convs2s.text.plain_text import check_plain_text

CHUNK_BATCHES = 8
"""Number of batches in a chunk for each thread.

If the process is killed, all chunks that are not yet appended to the output are lost. With one
worker, this is one chunk. With several workers, this is at most one chunk more than two for each
worker (`translate_chunks`)."""

SPEED_ALONE = {"batch_sentences", "batch_tokens", "cuda_graphs"}
"""Settings of config/decodings.yaml that are left out of the identity on a CPU (`identity_of`).

On a CPU they change only the speed, with one exception: in bf16 on a CPU with AMX, the results can
depend on the batch. Even there, the settings are left out."""

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": partial(gzip.compress, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
"""Functions that compress one chunk, by the suffix of the file. Chunks are compressed separately
and written one after the other. Readers of these formats return the text of all of them."""


def translate_long_file(
    translate: ChunkTranslator,
    source: Path,
    output: Path | None,
    identity: Mapping[str, object],
    *,
    workers: int,
    silent: bool = False,
) -> None:
    """Translate a file, and show progress on the standard error unless ``silent``.

    If ``output`` is None, the standard output is written, which cannot be resumed. ``identity`` is
    everything that the output's bytes depend on besides the source.

    Raises:
        UnfinishedError: Ctrl-C or SIGTERM stopped the translation, and the same command resumes it.
        UserError: the source cannot be read twice, is a document with markup or was changed
            meanwhile; the output is one of the inputs; or such a signal came and the output is a
            device or a pipe, which cannot be resumed.
        Interrupted: such a signal came while the standard output was written.
    """
    translator = translate.translator
    if source.exists() and not source.is_file():
        raise UserError(
            f"{source}: is not a file that can be read twice; use standard input"
        )
    check_plain_text(source)
    if output is not None:
        inputs = [source, *translator.models]
        for suffix in ("", ".part", ".part.json"):
            check_not_read(_beside(output, suffix), inputs)
    batches_per_chunk = CHUNK_BATCHES * translator.threads
    lines_per_chunk = batches_per_chunk * translator.settings.batch_sentences
    with handling(STOPPING, interrupt):
        # Read the whole file first, so that an invalid line is found before the work begins.
        count = sum(1 for _ in read_lines(source))
        digest = sha256(source)
        with (
            growing_output(output, {**identity, "input": digest}) as growing,
            progress(" sentences", count, done=growing.done, silent=silent) as bar,
        ):
            chunks = in_chunks(read_lines(source), lines_per_chunk, growing.done)
            translated = translate_chunks(translate, chunks, workers)
            try:
                for lines, part in translated:
                    growing.append(part, lines)
                    bar.update(lines)
                if count == 0:
                    # Even without text, a compressed file must have the header of its format.
                    growing.append("", 0)
            except Interrupted as stop:
                if output is None:
                    raise
                raise growing.interruption(stop, count) from None
            finally:
                translated.close()  # ends the workers
            if sha256(source) != digest:
                raise UserError(
                    f"{source}: was changed while it was translated; run the command again"
                )


def identity_of(
    models: Sequence[Path],
    settings: DecodingSettings,
    device: str,
    **others: object,
) -> dict[str, object]:
    """Return everything that the translations' bytes depend on, by name.

    It consists of the checksums of the models, the decoding settings, the device, the version of
    this program, the digests of the code of extensions (networks and the preparation), and
    ``others``. On a CPU, the settings of `SPEED_ALONE` are left out. On a GPU they are included,
    because a GPU may compute a sentence with other rounding in another batch.
    """
    described = [describe_model(path) for path in models]
    return {
        "models": list(map(sha256, models)),
        "networks": [description.architecture.code() for description in described],
        **settings.model_dump(
            mode="json", exclude=SPEED_ALONE if device == "cpu" else None
        ),
        "device": device,
        "code": [
            __version__,
            digest_of_extension("PREPARATIONS", described[0].preparation),
        ],
        **others,
    }


@dataclass(frozen=True)
class _State:
    """The state of an unfinished output, as in ``OUTPUT.part.json``."""

    identity: Mapping[str, object]  # everything that the output's bytes depend on
    lines: NonNegativeInt  # lines of the input whose translations are complete
    bytes: NonNegativeInt  # length of these translations in ``OUTPUT.part``


_STATE = TypeAdapter(_State)


class GrowingOutput:
    """An output that can be resumed. ``done`` lines of the input are complete in it."""

    def __init__(
        self,
        path: Path,
        part: BinaryIO,
        identity: Mapping[str, object],
    ) -> None:
        """Resume after the last complete chunk, or start over if the identity differs.

        ``part`` is the open file ``OUTPUT.part``, at any position. Its bytes after the last
        complete chunk are removed.
        """
        self._path = path
        self._part = part
        self._identity = identity
        self._state_file = _beside(path, ".part.json")
        # None: the output is not compressed.
        self._compress = _COMPRESSORS.get(path.suffix)
        self.done, size = self._resumed()
        part.truncate(size)
        part.seek(size)
        self._write_state(self.done)

    def append(self, text: str, lines: int) -> None:
        """Add the output of the next ``lines`` lines of the input."""
        content = text.encode()
        if self._compress is not None:
            content = self._compress(content)
        self._part.write(content)
        self._part.flush()
        os.fsync(self._part.fileno())
        self._write_state(self.done + lines)
        self.done += lines

    def interruption(self, stop: Interrupted, count: int) -> UserError:
        """Return the error for a signal that has stopped the translation of ``count`` lines."""
        # The next command resumes with the lines of the state file. They may be more than `done`:
        # the signal may have come after `append` wrote the state, but before it updated `done`.
        state = _STATE.validate_json(self._state_file.read_bytes())
        return UnfinishedError(
            f"translation is not finished: {stop} was received; {state.lines} of {count} lines are "
            f"in {self._path}.part: rerun the same command to resume"
        )

    def _write_state(self, lines: int) -> None:
        state = _State(self._identity, lines, self._part.tell())
        write_text(self._state_file, json.dumps(asdict(state)))

    def _resumed(self) -> tuple[int, int]:
        """Return how many lines and bytes are complete; both are 0 if there is nothing to resume.

        If there is an unfinished output that cannot be resumed, print why.

        Raises:
            UserError: ``OUTPUT.part`` has content, but there is no ``OUTPUT.part.json``, so it may
                be a file of the user's.
        """
        size = os.fstat(self._part.fileno()).st_size
        if not self._state_file.is_file():
            if size:
                raise UserError(
                    f"{self._path}.part: exists already, but is not an unfinished output; remove "
                    "it, or name another --output"
                )
            return 0, 0
        try:
            state = _STATE.validate_json(self._state_file.read_bytes(), strict=True)
        except (OSError, ValidationError):
            reason = "its state cannot be read"
        else:
            differing = [
                name
                for name in {**state.identity, **self._identity}
                if state.identity.get(name) != self._identity.get(name)
            ]
            if differing:
                reason = f"it differs from this command in {' and '.join(differing)}"
            elif size < state.bytes:
                reason = "its text is shorter than its state says"
            else:
                print(
                    f"{self._path}: resuming after line {state.lines}", file=sys.stderr
                )
                return state.lines, state.bytes
        print(
            f"{self._path}: starting over; there is an unfinished output, but {reason}",
            file=sys.stderr,
        )
        return 0, 0


class DirectOutput:
    """An output that cannot be resumed: the standard output, a device or a pipe."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.done = 0

    def append(self, text: str, lines: int) -> None:
        """Write the output of the next ``lines`` lines of the input."""
        self._stream.write(text.encode())
        self._stream.flush()
        self.done += lines

    def interruption(self, stop: Interrupted, count: int) -> UserError:
        """Return the error for a signal that has stopped the translation of ``count`` lines."""
        return UserError(
            f"translation is not finished: {stop} was received; {self.done} of {count} lines were "
            "written; this output cannot be resumed"
        )


@contextmanager
def growing_output(
    path: Path | None, identity: Mapping[str, object]
) -> Iterator[GrowingOutput | DirectOutput]:
    """Open an output for the block.

    If the block succeeds, ``OUTPUT.part`` gets the final name and ``OUTPUT.part.json`` is removed.
    Otherwise both stay, and a later call resumes, if its ``identity`` is the same. If it differs,
    the unfinished output is overwritten. A suffix such as .gz makes the output compressed. A device
    or a pipe is written directly; ``path`` None is the standard output.

    Raises:
        UserError: the output cannot be written, another process is writing it, the file system has
            no locks, or ``OUTPUT.part`` exists but is not an unfinished output.
    """
    if path is None:
        yield DirectOutput(sys.stdout.buffer)
        return
    if is_written_in_place(path):
        with writing(path), path.open("wb") as stream:
            yield DirectOutput(stream)
        return
    unfinished = _beside(path, ".part")
    with writing(path), unfinished.open("ab") as part:
        try:
            # Forked workers hold the lock, too. They end if this process is killed, so the lock
            # does not outlive it.
            is_alone = try_lock(part, tries=PATIENT)
        except OSError as error:
            raise UserError(
                f"{unfinished}: cannot be locked ({error.strerror}), and two processes must not "
                "write it at once; name an output on a file system with locks"
            ) from None
        if not is_alone:
            raise UserError(
                f"{unfinished}: another process is writing it; wait for it, or name another output"
            )
        # Another process may have finished and renamed the file between open and lock.
        opened = os.fstat(part.fileno())
        if not unfinished.exists() or not os.path.samestat(unfinished.stat(), opened):
            raise UserError(f"{path}: another process has written it just now")
        yield GrowingOutput(path, part, identity)
        os.fsync(part.fileno())
        unfinished.replace(path)
        _beside(path, ".part.json").unlink(missing_ok=True)


def _beside(output: Path, suffix: str) -> Path:
    """Return the path of the output with ``suffix`` appended to its name."""
    return output.with_name(output.name + suffix)
