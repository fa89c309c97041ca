"""Runs the inputs of every reader, each reader in a process of its own that has bounds."""

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from convs2s.errors import UserError
from tests.faults.fuzzing.readers import Reader

MOST_SECONDS = 10.0
"""CPU time that a reader may take for an input."""

MOST_BYTES = 512 << 20
"""Memory that a reader may take beside what the process has before: xz alone may take 256 MiB."""

_NOT_ASKED_FOR = 2 << 30
"""Address space that a process gets beside what it has, so that a bomb does not stop the tests."""


class TooSlowError(BaseException):
    """An input takes too long; no handler of exceptions takes it for a fault of a file."""


@dataclass
class Outcome:
    """What became of a reader's inputs.

    Attributes:
        name: the reader's.
        read: how many were read.
        refused: how many were refused in one line that names the file.
        slowest: CPU seconds of the one that took most.
        bytes: memory that the process took beside what it had before.
        faults: of the others: what went wrong, and where the input is kept.
    """

    name: str
    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    bytes: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """How many inputs were tried."""
        return self.read + self.refused + len(self.faults)

    def __str__(self) -> str:
        return (
            f"{self.name:24} {self.inputs:6} inputs: {self.read:6} read, {self.refused:6} refused, "
            f"{len(self.faults):3} faults; {self.slowest:5.2f} s, {self.bytes >> 20:4} MiB at most"
        )


def run(
    readers: Sequence[Reader], inputs: int, number: int, kept: Path, *, apart: bool
) -> Iterator[Outcome]:
    """Try inputs with every reader; yield what became of each reader's.

    Args:
        readers: what reads.
        inputs: how many inputs there are in all, at least one for each reader.
        number: the seed.
        kept: folder for the inputs that find a fault.
        apart: whether each reader has a process of its own, so that one which dies ends no other's.
    """
    whole = sum(one.share for one in readers)
    shares = [(one, round(inputs * one.share / whole + 0.5)) for one in readers]
    for group in [[share] for share in shares] if apart else [shares]:
        yield from _in_a_process(group, number, kept)


def _in_a_process(
    group: Sequence[tuple[Reader, int]], number: int, kept: Path
) -> Iterator[Outcome]:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_try_group, args=(group, number, kept, sender))
    process.start()
    sender.close()
    for reader, _ in group:
        try:
            yield receiver.recv()
        except EOFError:
            lost = Outcome(reader.name)
            lost.faults.append(f"the process died: {_keep(reader, kept)}")
            yield lost
            break
    process.join()


def _try_group(
    group: Sequence[tuple[Reader, int]],
    number: int,
    kept: Path,
    sender: "Connection[Outcome, object]",
) -> None:
    """Try the inputs of readers; this process is for nothing else, and says nothing else."""
    with Path(os.devnull).open("w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    _bound_memory()
    for reader, inputs in group:
        sender.send(_try_all(reader, inputs, number, kept))


def _try_all(reader: Reader, inputs: int, number: int, kept: Path) -> Outcome:
    """Try the inputs of one reader."""
    outcome = Outcome(reader.name)
    before = _peak()
    for round_ in range(3):  # hypothesis stops where it has drawn what it can think of
        missing = inputs - outcome.inputs
        if missing > 0:
            _round(reader, outcome, missing, number + round_, kept)
    outcome.bytes = _peak() - before
    if outcome.bytes > MOST_BYTES:
        outcome.faults.append(f"takes {outcome.bytes >> 20} MiB")
    return outcome


def _round(
    reader: Reader, outcome: Outcome, inputs: int, number: int, kept: Path
) -> None:
    @seed(number)
    @settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        # What finds a fault is kept as it is, and the search goes on.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(reader.inputs)
    def attempt(content: bytes) -> None:
        _attempt(reader, content, outcome, kept)

    attempt()


def _attempt(reader: Reader, content: bytes, outcome: Outcome, kept: Path) -> None:
    reader.path.parent.mkdir(parents=True, exist_ok=True)
    reader.path.write_bytes(content)
    fault, seconds = try_one(reader.read, reader.path, reader.faults_of)
    outcome.slowest = max(outcome.slowest, seconds)
    if fault is None:
        outcome.read += 1
    elif not fault:
        outcome.refused += 1
    else:
        outcome.faults.append(f"{fault}: {_keep(reader, kept, len(outcome.faults))}")


def try_one(
    read: Callable[[Path], object], path: Path, faults_of: Callable[[str], str | None]
) -> tuple[str | None, float]:
    """Read one input.

    Args:
        read: reads it.
        path: where it is.
        faults_of: says what is wrong with a message to the user.

    Returns:
        What went wrong, nothing where it was refused as it should be, None where it was read; and
        the CPU seconds that it took.
    """
    started = time.process_time()
    fault: str | None = None
    try:
        with _alarm():
            read(path)
    except UserError as error:
        told = faults_of(str(error))
        fault = f"{told!s}: {error!s:.300}" if told else ""
        if _asked_for_memory(error):
            fault = f"wants too much memory: {error!s:.300}"
    except TooSlowError:
        fault = "takes too long"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = (
            f"{type(error).__name__}: {error!s:.200} ({where.filename}:{where.lineno})"
        )
    seconds = time.process_time() - started
    if seconds > MOST_SECONDS:
        fault = f"takes {seconds:.1f} s"
    return fault, seconds


def _asked_for_memory(error: BaseException | None) -> bool:
    """Say whether a fault of memory is what was told as one of a file."""
    while error is not None:
        text = str(error)
        if (
            isinstance(error, MemoryError)
            or "allocate memory" in text
            or "bad_alloc" in text
        ):
            return True
        error = error.__context__
    return False


def _bound_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + _NOT_ASKED_FOR, hard))


@contextmanager
def _alarm() -> Iterator[None]:
    """Raise an error in a block that takes too much CPU time."""

    def ring(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, 1.5 * MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _peak() -> int:
    """Return the most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _keep(reader: Reader, kept: Path, number: int = 0) -> Path:
    """Keep the input that was read last."""
    kept.mkdir(parents=True, exist_ok=True)
    copy = (
        kept
        / f"{reader.name.replace('/', '_').replace(' ', '_')}.{number}.{reader.path.name}"
    )
    copy.write_bytes(reader.path.read_bytes())
    return copy
