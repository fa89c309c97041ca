"""Translating a file of any length: chunk by chunk, with progress, from where it was stopped.

``OUTPUT.part`` holds what is finished, ``OUTPUT.part.json`` how much of it counts, and of which
work it is. The final name appears when everything is there.
"""

import bz2
import fcntl
import gzip
import hashlib
import json
import lzma
import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import zstandard

from convs2s import __version__
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import digest_of_extension
from convs2s.decoding.parallel import Chunk, translate_chunks
from convs2s.decoding.progress import progress
from convs2s.decoding.streams import ChunkTranslator
from convs2s.errors import UnfinishedError, UserError
from convs2s.files.atomic import check_not_read, check_place, is_written_in_place, writing
from convs2s.files.checksums import sha256
from convs2s.files.interrupts import STOPPING, Interrupted, handling, interrupt
from convs2s.files.text import read_json, read_lines, write_text
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
        for written in _files_of(output) if output is not None else ():
            check_not_read(written, [source, *translate.translator.files()])
    with handling(STOPPING, interrupt):
        text = _Text(source)
        deque(text, maxlen=0)  # which finds a line that is no text before work begins
        results = partial(_results, translate, text, workers, silent)
        if output is None:
            with closing(results(done=0)) as translated:
                for _, part in translated:
                    sys.stdout.write(part)
            return
        with (
            growing_output(output, {**identity, "input": text.digest}) as growing,
            closing(results(done=growing.done)) as translated,
        ):
            try:
                for count, part in translated:
                    growing.append(part, count)
                if not text.count:  # a compressed file of nothing has bytes
                    growing.append("", 0)
            except Interrupted as stop:
                raise growing.stopped(
                    f"translation is not finished: {stop} was received; {growing.kept(text.count)}"
                ) from None


class _Text:
    """The lines of a file: their number and digest are known once they were read."""

    def __init__(self, path: Path) -> None:
        self.path, self.count, self._sum = path, 0, hashlib.sha256()

    def __iter__(self) -> Iterator[str]:
        for line in read_lines(self.path):
            self._sum.update(f"{line}\n".encode())
            self.count += 1
            yield line

    @property
    def digest(self) -> str:
        return self._sum.hexdigest()


def _results(
    translate: ChunkTranslator, text: _Text, workers: int, silent: bool, *, done: int
) -> Generator[tuple[int, str], None, None]:
    """Yield the lines and the translation of each chunk; ``done`` moves no chunk's beginning.

    A UserError says that the text, which was read before, is another one this time.
    """
    translator, again = translate.translator, _Text(text.path)
    size = CHUNK_BATCHES * translator.threads * translator.settings.batch_sentences
    numbered = islice(enumerate(again, start=1), done, None)
    chunks: Iterator[Chunk] = iter(lambda: list(islice(numbered, size)), [])
    with progress(" sentences", text.count, done=done, silent=silent) as bar:
        for count, translated in translate_chunks(translate, chunks, workers):
            yield count, translated
            bar.update(count)
    if again.digest != text.digest:
        raise UserError(f"{text.path}: was changed while it was translated: run the command again")


def identity_of(
    models: Sequence[Path], settings: DecodingSettings, device: str, **others: object
) -> dict[str, object]:
    """Return what the translations' bytes depend on, by name: models by their checksums.

    A GPU rounds a sentence in another way in another batch: there all settings count. So do the
    version of this program, and the code of networks and of a preparation that an extension has.
    """
    counted = settings.model_dump(mode="json", exclude=SPEED_ALONE if device == "cpu" else None)
    described = list(map(describe_model, models))
    networks = [digest for one in described for digest in one.architecture.code().values()]
    digest = digest_of_extension("PREPARATIONS", described[0].preparation)
    stated = {"models": [*map(sha256, models), *networks], **counted, "device": device}
    return stated | {"code": f"{__version__} {digest}" if digest else __version__, **others}


class GrowingOutput:
    """An unfinished output, in which so many lines of the input are ``done``."""

    stopped: type[UserError] = UnfinishedError

    def __init__(self, path: Path, part: BinaryIO, identity: Mapping[str, object]) -> None:
        """Resume after the last complete chunk, if the part is of the same work."""
        self._path, self._part, self._identity = path, part, dict(identity)
        self._state = _files_of(path)[2]
        self._compress = _COMPRESSORS.get(path.suffix, bytes)
        self.done, size = self._resumed()
        part.truncate(size)
        part.seek(size)
        self._write_state()

    def append(self, text: str, lines: int) -> None:
        """Add the output of the next ``lines`` lines of the input."""
        self._part.write(self._compress(text.encode()))
        self._part.flush()
        os.fsync(self._part.fileno())
        self.done += lines
        self._write_state()

    def _write_state(self) -> None:
        state = {"identity": self._identity, "lines": self.done, "bytes": self._part.tell()}
        write_text(self._state, json.dumps(state))

    def kept(self, lines: int) -> str:
        """Return, in words, what of the input's lines is written, and how to resume."""
        # What the state says counts: a signal may come while a chunk is being added.
        done = _read_state(self._state)[1] if self._state.is_file() else 0
        return f"{done} of {lines} lines are in {self._path}.part: rerun the same command to resume"

    def _resumed(self) -> tuple[int, int]:
        """Return how many lines and bytes count; say why where they do not."""
        if not self._state.is_file():
            if os.fstat(self._part.fileno()).st_size:
                raise UserError(
                    f"{self._path}.part: is there already, and no unfinished output: remove it, or "
                    "name another --output"
                )
            return 0, 0
        identity, lines, size = _read_state(self._state)
        names = {**identity, **self._identity}
        others = [name for name in names if identity.get(name) != self._identity.get(name)]
        if not identity:
            reason = "whose state cannot be read"
        elif others:
            reason = f"of another {' and '.join(others)} than this command's"
        elif os.fstat(self._part.fileno()).st_size < size:
            reason = "whose text is shorter than its state says"
        else:
            print(f"{self._path}: resuming after line {lines}", file=sys.stderr)
            return lines, size
        print(
            f"{self._path}: starting over: there is an unfinished output, {reason}",
            file=sys.stderr,
        )
        return 0, 0


class DirectOutput:
    """A device or a pipe, which nothing can be resumed in."""

    done = 0
    stopped = UserError

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def append(self, text: str, lines: int) -> None:
        """Write the output of the next ``lines`` lines of the input."""
        self._stream.write(text.encode())
        self._stream.flush()
        self.done += lines

    def kept(self, lines: int) -> str:
        """Return, in words, what of the input's lines was written."""
        return f"{self.done} of {lines} lines were written, which no command can resume"


@contextmanager
def growing_output(
    path: Path, identity: Mapping[str, object]
) -> Iterator[GrowingOutput | DirectOutput]:
    """Open an output; it gets its name if the block succeeds, else stays to be resumed.

    It is compressed if its suffix says so; a device or a pipe is written to. Where ``identity``,
    what its bytes depend on, differs from that of an unfinished output, that one is thrown away. An
    output that another process is writing is refused with a UserError.
    """
    if is_written_in_place(path):
        with writing(path), path.open("wb") as stream:
            yield DirectOutput(stream)
        return
    check_place(path)
    _, unfinished, state = _files_of(path)
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
        if not unfinished.exists() or not os.path.samestat(
            unfinished.stat(), os.fstat(part.fileno())
        ):
            raise UserError(f"{path}: another process has written it just now")
        yield GrowingOutput(path, part, identity)
        os.fsync(part.fileno())
        unfinished.replace(path)
        state.unlink(missing_ok=True)


def _files_of(output: Path) -> tuple[Path, Path, Path]:
    """Return an output, and where it is and what is known of it while it is unfinished."""
    part = output.with_name(f"{output.name}.part")
    return output, part, part.with_name(f"{part.name}.json")


def _read_state(path: Path) -> tuple[dict[str, object], int, int]:
    """Return of what work an output is, and how many lines and bytes count; nothing if damaged."""
    with suppress(UserError):
        match read_json(path):
            case {"identity": dict(identity), "lines": int(lines), "bytes": int(size)} if (
                min(lines, size) >= 0
            ):
                return identity, lines, size
    return {}, 0, 0
