"""Translating a file of any length: chunk by chunk, with progress, from where it was stopped.

``OUTPUT.part`` holds what is finished, ``OUTPUT.part.json`` how much of it counts, and of which
work it is. The final name appears when everything is there.
"""

import bz2
import fcntl
import gzip
import json
import lzma
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import zstandard
from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from convs2s import __version__
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import digest_of_extension
from convs2s.decoding.parallel import translate_chunks
from convs2s.decoding.progress import progress
from convs2s.decoding.streams import ChunkTranslator
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import check_not_read, check_place, is_written_in_place, writing
from convs2s.files.checksums import sha256
from convs2s.files.interrupts import STOPPING, Interrupted, handling, interrupt
from convs2s.files.text import read_lines, write_text
from convs2s.model_file import describe_model

CHUNK_BATCHES = 8  # batches of a chunk for each thread; a kill loses a chunk of each worker at most

SPEED_ALONE = {"batch_sentences", "batch_tokens", "cuda_graphs"}
"""Settings of config/decodings.yaml that a CPU's results do not depend on, but for bf16 on AMX."""

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": partial(gzip.compress, mtime=0),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
"""Each chunk is compressed on its own: what these formats' readers see as one text."""


def translate_long_file(
    translate: ChunkTranslator,
    source: Path,
    output: Path | None,
    identity: Mapping[str, object],
    *,
    workers: int,
    silent: bool = False,
) -> None:
    """Translate a file, showing progress on the standard error unless ``silent``.

    Without an ``output``, the standard output is written, which nothing can be resumed in.
    ``identity`` is what the output's bytes depend on besides the source. When Ctrl-C or SIGTERM
    stops it, an UnfinishedError says what is written.
    """
    if source.exists():
        if not source.is_file():
            raise UserError(f"{source}: is no file that can be read twice: use standard input")
        if output is not None:
            for suffix in ("", ".part", ".part.json"):
                check_not_read(_beside(output, suffix), [source, *translate.translator.files()])
    translator = translate.translator
    size = CHUNK_BATCHES * translator.threads * translator.settings.batch_sentences
    with handling(STOPPING, interrupt):
        count = sum(1 for _ in read_lines(source))  # an invalid line is found before work begins
        digest = sha256(source)
        with growing_output(output, {**identity, "input": digest}) as growing:
            rest = islice(enumerate(read_lines(source), start=1), growing.done, None)
            chunks = iter(lambda: list(islice(rest, size)), [])
            with (
                progress(" sentences", count, done=growing.done, silent=silent) as bar,
                closing(translate_chunks(translate, chunks, workers)) as translated,
            ):
                try:
                    for lines, part in translated:
                        growing.append(part, lines)
                        bar.update(lines)
                    if not count:  # a compressed file of nothing has bytes
                        growing.append("", 0)
                except Interrupted as stop:
                    if output is None:
                        raise
                    raise growing.unfinished(
                        f"translation is not finished: {stop} was received; {growing.done} of "
                        f"{count} lines {growing.left}"
                    ) from None
            if sha256(source) != digest:
                raise UserError(
                    f"{source}: was changed while it was translated: run the command again"
                )


def identity_of(
    models: Sequence[Path],
    settings: DecodingSettings,
    device: str,
    **others: object,
) -> dict[str, object]:
    """Return what the translations' bytes depend on, by name: models by their checksums.

    A GPU rounds a sentence in another way in another batch: there all settings count. So do the
    version of this program, and the code of networks and of a preparation that an extension has.
    """
    described = [describe_model(path) for path in models]
    return {
        "models": list(map(sha256, models)),
        "networks": [description.architecture.code() for description in described],
        **settings.model_dump(mode="json", exclude=SPEED_ALONE if device == "cpu" else None),
        "device": device,
        "code": [__version__, digest_of_extension("PREPARATIONS", described[0].preparation)],
        **others,
    }


@dataclass(frozen=True)
class _State:
    """Of what work an unfinished output is, and how much of the input and of itself counts."""

    identity: Mapping[str, object]
    lines: NonNegativeInt
    bytes: NonNegativeInt


_STATE = TypeAdapter(_State)


class GrowingOutput:
    """An unfinished output, in which so many lines of the input are ``done``."""

    unfinished = UnfinishedError

    def __init__(
        self,
        path: Path,
        part: BinaryIO,
        identity: Mapping[str, object],
    ) -> None:
        """Resume after the last complete chunk, if the part is of the same work."""
        self._path = path
        self._part = part
        self._identity = identity
        self._compress = _COMPRESSORS.get(path.suffix, bytes)
        self.left = f"are in {path}.part: rerun the same command to resume"
        state = self._resumed()
        self.done = state.lines
        part.truncate(state.bytes)
        part.seek(state.bytes)
        self._write_state(state)

    def append(
        self,
        text: str,
        lines: int,
    ) -> None:
        """Add the output of the next ``lines`` lines of the input."""
        self._part.write(self._compress(text.encode()))
        self._part.flush()
        os.fsync(self._part.fileno())
        self._write_state(_State(self._identity, self.done + lines, self._part.tell()))
        self.done += lines  # last: a signal may come before the state says so

    def _write_state(self, state: _State) -> None:
        write_text(_beside(self._path, ".part.json"), json.dumps(asdict(state)))

    def _resumed(self) -> _State:
        """Return how much counts; say why where nothing does."""
        size = os.fstat(self._part.fileno()).st_size
        nothing = _State(self._identity, 0, 0)
        written = _beside(self._path, ".part.json")
        if not written.is_file():
            if size:
                raise UserError(
                    f"{self._path}.part: is there already, and no unfinished output: remove it, or "
                    "name another --output"
                )
            return nothing
        try:
            state = _STATE.validate_json(written.read_bytes(), strict=True)
        except (OSError, ValidationError):
            reason = "whose state cannot be read"
        else:
            of_another = state.identity
            names = {**of_another, **self._identity}
            others = [name for name in names if of_another.get(name) != self._identity.get(name)]
            if others:
                reason = f"of another {' and '.join(others)} than this command's"
            elif size < state.bytes:
                reason = "whose text is shorter than its state says"
            else:
                print(f"{self._path}: resuming after line {state.lines}", file=sys.stderr)
                return state
        print(
            f"{self._path}: starting over: there is an unfinished output, {reason}",
            file=sys.stderr,
        )
        return nothing


class DirectOutput:
    """The standard output, a device or a pipe, which nothing can be resumed in."""

    unfinished = UserError
    left = "were written, which no command can resume"

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.done = 0

    def append(
        self,
        text: str,
        lines: int,
    ) -> None:
        """Write the output of the next ``lines`` lines of the input."""
        self._stream.write(text.encode())
        self._stream.flush()
        self.done += lines


@contextmanager
def growing_output(
    path: Path | None, identity: Mapping[str, object]
) -> Iterator[GrowingOutput | DirectOutput]:
    """Open an output; it gets its name if the block succeeds, else stays to be resumed.

    It is compressed if its suffix says so; a device or a pipe is written to, and None is the
    standard output. Where ``identity``, what its bytes depend on, differs from that of an
    unfinished output, that one is thrown away. An output that another process is writing is refused
    with a UserError.
    """
    if path is None:
        yield DirectOutput(sys.stdout.buffer)
        return
    if is_written_in_place(path):
        with writing(path), path.open("wb") as stream:
            yield DirectOutput(stream)
        return
    check_place(path)
    unfinished = _beside(path, ".part")
    with writing(path), unfinished.open("ab") as part:
        try:
            # A record lock: unlike flock's it dies with this process, whatever workers outlive it.
            fcntl.lockf(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            raise UserError(
                f"{unfinished}: another process is writing it: wait for it, or name another output"
            ) from None
        except OSError as error:
            raise UserError(
                f"{unfinished}: cannot be locked ({error.strerror}), and two processes must not "
                "write it at once: name an output on a file system with locks"
            ) from None
        opened = os.fstat(part.fileno())
        if not unfinished.exists() or not os.path.samestat(unfinished.stat(), opened):
            raise UserError(f"{path}: another process has written it just now")
        yield GrowingOutput(path, part, identity)
        os.fsync(part.fileno())
        unfinished.replace(path)
        _beside(path, ".part.json").unlink(missing_ok=True)


def _beside(output: Path, suffix: str) -> Path:
    """Return where an output is while it is unfinished, or what is known of it."""
    return output.with_name(output.name + suffix)
