"""Hostile inputs for every reader and every command, in a process that has bounds.

Input N of a reader is the same each time, whatever else is tried.
"""

import os
import random
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from convs2s.cli.main import commands_below, main, whole_parser
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


def _too_slow(*_: object) -> None:
    raise TooSlowError


@dataclass
class Outcome:
    """What became of a reader's inputs: how many were read, or refused in a line, or neither."""

    name: str
    read: int = 0
    refused: int = 0
    bytes: int = 0
    faults: list[str] = field(default_factory=list)

    def attempt(self, read: Callable[[], str | None], keep: str) -> bool:
        """Try an input, which ``read`` refuses by a message; return whether that was no fault."""
        fault = ""
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 1.5 * MOST_SECONDS)
        try:
            message = read()
            self.refused += message is not None
            self.read += message is None
            if message and "memory" in message:
                fault = f"wants too much memory: {message:.300}"
        except TooSlowError:
            fault = "takes too long"
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename}:{where.lineno}"
            fault = f"{type(error).__name__}: {error!s:.300} ({place})"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if time.process_time() - started > MOST_SECONDS:
            fault = "takes too long"
        if fault:
            self.faults.append(f"{fault}: {keep}")
        return not fault

    def __str__(self) -> str:
        said = f"{self.name:40} {self.read:6} read, {self.refused:6} refused"
        return "\n  ".join([f"{said}, {self.bytes >> 20:4} MiB", *self.faults])


def _peak() -> int:
    """Return the most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _try_reader(reader: Reader, inputs: int, kept: Path) -> Outcome:
    outcome = Outcome(reader.name)
    sound = reader.path.read_bytes()
    before = _peak()
    for number in range(inputs):
        draw = random.Random(f"{reader.name} {number}")
        content = draw.choice((damaged, reader.change))(sound, draw)
        reader.path.write_bytes(content)
        copy = kept / f"{number}.{reader.path.name}"
        if not outcome.attempt(lambda: reader.outcome()[0], str(copy)):
            copy.write_bytes(content)
    reader.path.write_bytes(sound)
    outcome.bytes = _peak() - before
    if outcome.bytes > MOST_BYTES:
        outcome.faults.append(f"takes {outcome.bytes >> 20} MiB")
    return outcome


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
            value = draw.choice([*words, *(action.choices or [])])
            if action.nargs != 0:
                line.append(value)
    return line


def _run_command(line: list[str]) -> str | None:
    """Run a command; return what it says in place of doing something."""
    try:
        main(line)
    except SystemExit as ended:
        code = ended.code
    else:
        return None
    # argparse has codes of its own; a text is a line for the user.
    assert code in (None, 0, 2) or str(code).startswith("convs2s: error: ")
    assert str(code).isprintable()
    return str(code)


def _try_commands(inputs: int, files: list[str]) -> Outcome:
    outcome = Outcome("commands")
    words = [*WORDS, *files, "1", "2", "0.5", "en", "demo", "cpu", "absent"]
    typed = [word for word in words if "\0" not in word and "\udcff" not in word]
    for number in range(inputs):
        line = command_line(random.Random(number), typed)
        outcome.attempt(partial(_run_command, line), f"{line}"[:1000])
    return outcome


def run(inputs: int) -> Counter[str]:
    """Try the inputs, so many in all; print what became of them, and count the faults.

    This process has bounds from then on, and of what readers print nothing is seen.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGPROF, _too_slow)
    kept = Path(tempfile.mkdtemp(prefix="convs2s-faults-"))
    nowhere = os.open(os.devnull, os.O_RDWR)
    said = os.fdopen(os.dup(1), "w")
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="convs2s-fuzzing-") as name, chdir(name):
        every = list(readers(Path(name) / "samples"))
        used = int(Path("/proc/self/statm").read_text().split()[0])
        limit = used * resource.getpagesize() + ADDRESS_SPACE
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        share = -(-inputs // (len(every) + 1))
        for reader in every:
            outcomes.append(_try_reader(reader, share, kept))
            print(outcomes[-1], file=said, flush=True)
        outcomes.append(_try_commands(share, [str(reader.path) for reader in every]))
        print(outcomes[-1], file=said)
    faults = sum(len(one.faults) for one in outcomes)
    tried = f"{share * len(outcomes)} inputs of {len(outcomes)} readers"
    print(f"fuzzing: {tried}, {faults} faults in {kept}", file=said, flush=True)
    return Counter(faults=faults)
