"""Hostile inputs for every reader and every command, in a process that has bounds.

Input N of a reader is the same each time, whatever else is tried.
"""

import os
import random
import resource
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir
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


def _verdict(read: Callable[[], str | None]) -> str:
    """Try an input, which ``read`` refuses by a message; return what became of it."""
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS, 1)  # again where nobody hears it
    try:
        message = read()
    except TooSlowError:
        return "takes too long"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename}:{where.lineno}"
        return f"{type(error).__name__}: {error!s:.300} ({place})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if message and "memory" in message:
        return f"wants too much memory: {message:.300}"
    return "read" if message is None else "refused"


def _peak() -> int:
    """Return the most bytes of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


Input = tuple[Callable[[], str | None], bytes]
"""What tries an input, and its content, which is kept if that is a fault."""


def _inputs(reader: Reader, number_of_inputs: int) -> Iterator[Input]:
    sound = reader.path.read_bytes()
    for number in range(number_of_inputs):
        draw = random.Random(f"{reader.name} {number}")
        content = draw.choice((damaged, reader.change))(sound, draw)
        reader.path.write_bytes(content)
        yield lambda: reader.outcome()[0], content
    reader.path.write_bytes(sound)


def command_line(draw: Draw, words: list[str]) -> list[str]:
    """Draw a command with words that nobody would type after its options."""
    parser = whole_parser()
    line: list[str] = []
    while commands := commands_below(parser).keys() - OUTSIDE:
        line.append(draw.choice(sorted(commands)))
        parser = commands_below(parser)[line[-1]]
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
        code = str(ended.code)
    else:
        return None
    # argparse has codes of its own; a text is a line for the user.
    assert code in ("None", "0", "2") or code.startswith("convs2s: error: ")
    assert code.isprintable()
    return code


def _command_inputs(number_of_inputs: int, files: list[str]) -> Iterator[Input]:
    words = [*WORDS, *files, "1", "2", "0.5", "en", "demo", "cpu", "absent"]
    typed = [word for word in words if "\0" not in word and "\udcff" not in word]
    for number in range(number_of_inputs):
        line = command_line(random.Random(number), typed)
        yield partial(_run_command, line), repr(line).encode()


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
    faults: Counter[str] = Counter()

    def report(name: str, inputs: Iterable[Input]) -> None:
        before = _peak()
        counts: Counter[str] = Counter()
        for number, (read, content) in enumerate(inputs):
            verdict = _verdict(read)
            if verdict not in ("read", "refused"):
                copy = kept / f"{number}.{Path(name).name}"
                copy.write_bytes(content)
                verdict += f": {copy}"
            counts[verdict] += 1
        grown = _peak() - before
        if grown > MOST_BYTES:
            counts["takes too much memory"] += 1
        line = f"{name:40} {counts.pop('read', 0):6} read, {counts.pop('refused', 0):6} refused"
        print(
            f"{line}, {grown >> 20:4} MiB", *counts, sep="\n  ", file=said, flush=True
        )
        faults.update(counts)

    with tempfile.TemporaryDirectory(prefix="convs2s-fuzzing-") as name, chdir(name):
        every = list(readers(Path(name) / "samples"))
        used = int(Path("/proc/self/statm").read_text().split()[0])
        limit = used * resource.getpagesize() + ADDRESS_SPACE
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        share = -(-inputs // (len(every) + 1))
        for reader in every:
            report(reader.name, _inputs(reader, share))
        paths = [str(reader.path) for reader in every]
        report("commands", _command_inputs(share, paths))
    tried = f"{share} inputs of each of {len(every) + 1} readers"
    print(f"fuzzing: {tried}, {faults.total()} faults in {kept}", file=said, flush=True)
    return Counter(faults=faults.total())
