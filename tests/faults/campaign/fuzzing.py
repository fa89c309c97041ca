"""Hostile inputs for every reader and every command, in a process that has bounds.

Input N of a reader is the same for the same seed, whatever else is tried.
"""

import argparse
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from convs2s.cli.main import commands_below, whole_parser
from convs2s.cli.main import main as command
from tests.faults.campaign.damage import WORDS, Draw, damaged
from tests.faults.campaign.readers import Reader, readers

MOST_SECONDS = 10.0
"""CPU time that a reader may take for an input."""

MOST_BYTES = 512 << 20
"""Memory that a reader may take beside what the process has before: xz alone may take 256 MiB."""

ADDRESS_SPACE = 2 << 30
"""What the process gets beside what it has, so that a bomb does not stop the tests."""

OUTSIDE = {"serve", "push", "pull", "kernels", "mirror", "hub", "onnx"}
"""Commands that wait, compute for long, write much, or ask the network."""


class TooSlowError(BaseException):
    """An input takes too long; no handler of exceptions takes it for a fault of a file."""


@dataclass
class Outcome:
    """What became of a reader's inputs: how many were read, or refused in a line, or neither."""

    name: str
    read: int = 0
    refused: int = 0
    bytes: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = f"{self.name:40} {self.read:6} read, {self.refused:6} refused"
        return "\n  ".join([f"{said}, {self.bytes >> 20:4} MiB", *self.faults])


def _try(outcome: Outcome, attempt: Callable[[], str | None], keep: str) -> None:
    """Try an input; an attempt returns the message with which it was refused."""
    fault = ""
    started = time.process_time()
    try:
        with _alarm():
            refused = attempt()
        outcome.refused += refused is not None
        outcome.read += refused is None
        if refused and "memory" in refused:
            fault = f"wants too much memory: {refused:.300}"
    except TooSlowError:
        fault = "takes too long"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = (
            f"{type(error).__name__}: {error!s:.300} ({where.filename}:{where.lineno})"
        )
    if time.process_time() - started > MOST_SECONDS:
        fault = "takes too long"
    if fault:
        outcome.faults.append(f"{fault}: {keep}")


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


def _try_reader(reader: Reader, inputs: int, seed: int, kept: Path) -> Outcome:
    name = f"{reader.path.parent.name}/{reader.path.name}"
    outcome = Outcome(name)
    sound = reader.path.read_bytes()
    before = _peak()
    for number in range(inputs):
        draw = random.Random(f"{name} {seed} {number}")
        change = draw.choice((damaged, reader.change))
        content = change(sound, draw)
        reader.path.write_bytes(content)
        copy = kept / f"{number}.{reader.path.name}"
        _try(outcome, lambda: reader.outcome()[0], str(copy))
        if outcome.faults and outcome.faults[-1].endswith(str(copy)):
            copy.write_bytes(content)
    reader.path.write_bytes(sound)
    outcome.bytes = _peak() - before
    if outcome.bytes > MOST_BYTES:
        outcome.faults.append(f"takes {outcome.bytes >> 20} MiB")
    return outcome


def _peak() -> int:
    """Return the most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def command_line(draw: Draw, words: list[str]) -> list[str]:
    """Draw a command with words that nobody would type after its options."""
    parser = whole_parser()
    line: list[str] = []
    while commands := commands_below(parser):
        line.append(draw.choice(sorted(commands.keys() - OUTSIDE)))
        parser = commands[line[-1]]
    for action in parser._actions:
        if action.required or draw.random() < 0.4:
            line += action.option_strings[-1:]
            line += [draw.choice([*words, *(action.choices or [])])][
                : action.nargs != 0
            ]
    return line


def _try_commands(inputs: int, seed: int, files: list[str]) -> Outcome:
    outcome = Outcome("commands")
    words = [*WORDS, *files, "1", "2", "0.5", "en", "demo", "cpu", "absent"]
    typed = [word for word in words if "\0" not in word and "\udcff" not in word]
    for number in range(inputs):
        line = command_line(random.Random(f"{seed} {number}"), typed)

        def attempt(line: list[str] = line) -> str | None:
            try:
                command(line)
            except SystemExit as ended:
                code = ended.code
            else:
                return None
            # argparse has codes of its own; a text is a line for the user.
            assert code in (None, 0, 2) or str(code).startswith("convs2s: error: ")
            assert str(code).isprintable()
            return str(code)

        _try(outcome, attempt, f"{line}"[:1000])
    return outcome


def _try_all(arguments: argparse.Namespace, folder: Path, sender: Connection) -> None:
    """Try the inputs; this process is for nothing else, and says nothing else."""
    torch.set_num_threads(1)
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    every = list(readers(folder / "samples"))
    used = int(Path("/proc/self/statm").read_text().split()[0])
    limit = used * resource.getpagesize() + ADDRESS_SPACE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    inputs = -(-arguments.inputs // (len(every) + 1))
    for reader in every:
        sender.send(_try_reader(reader, inputs, arguments.seed, arguments.kept))
    files = sorted({str(reader.path) for reader in every})
    sender.send(_try_commands(inputs, arguments.seed, files))


def main() -> None:
    """Try the inputs; exit with 1 where one finds a fault."""
    parser = argparse.ArgumentParser(description="Hostile inputs for every reader.")
    parser.add_argument("--inputs", type=int, default=20_000, help="in all [20000]")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs [1]")
    kept = Path(tempfile.mkdtemp(prefix="convs2s-faults-"))
    parser.set_defaults(kept=kept)
    arguments = parser.parse_args()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="convs2s-fuzzing-") as name:
        process = multiprocessing.get_context("fork").Process(
            target=_try_all, args=(arguments, Path(name), sender)
        )
        process.start()
        sender.close()
        try:
            while True:
                outcomes.append(receiver.recv())
                print(outcomes[-1], flush=True)
        except EOFError:
            process.join()
    if process.exitcode:
        print(f"the process died after {outcomes[-1:]}: exit code {process.exitcode}")
    faults = sum(len(one.faults) for one in outcomes) + (process.exitcode != 0)
    tried = sum(one.read + one.refused for one in outcomes)
    print(
        f"fuzzing: {tried} inputs of {len(outcomes)} readers, {faults} faults in {kept}"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
