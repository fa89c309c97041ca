"""System calls of a process, which strace records, lets fail, or ends with SIGKILL."""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

NAMES_CHANGE = ("mkdir", "link", "rename", "rmdir", "unlink")
FILES_CHANGE = (*NAMES_CHANGE, *(f"{name}at" for name in NAMES_CHANGE), "renameat2")
"""Calls that change the names in a folder, in the order of which a disk keeps the changes."""

WRITES = ("write", "writev", "pwrite64", "sendfile", "copy_file_range")
CALLS = ("openat", *WRITES, "fsync", "fdatasync", "ftruncate", *FILES_CHANGE)


class Call(NamedTuple):
    """A system call that has ended, or was entered last.

    Attributes:
        name: such as ``openat``.
        number: how many calls of this name its thread had made with it.
        paths: the files that it is about, absolute.
        words: its arguments, as strace prints them.
        result: what it returned; None: it did not return, or an error.
        is_injected: whether the error was strace's.
    """

    name: str
    number: int
    paths: tuple[Path, ...]
    words: str
    result: int | None
    is_injected: bool


def is_available() -> bool:
    """Return whether there is a strace that may trace another process of this user."""
    if shutil.which("strace") is None:
        return False
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            tracer = attach(other.pid, Path(os.devnull))
        except PermissionError:
            return False
        finally:
            other.kill()
    return tracer.wait() == 0


def attach(
    process: int, log: Path, injected: str | None = None, *files: str
) -> subprocess.Popen[str]:
    """Trace a process, with all that it starts, until they end; return the tracer.

    ``injected`` is an expression of strace's option ``--inject``. With ``files``, only calls about
    these are seen, by the names that the processes give.
    """
    # A question mark: not every processor has a call of this name.
    traced = ",".join(f"?{name}" for name in CALLS)
    command = ["strace", "-f", "-y", "-s", "0", "-o", str(log), f"--trace={traced}"]
    if injected:
        command.append(f"--inject={injected}")
    command += [f"--trace-path={file}" for file in files]
    command += ["-p", str(process)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    if "attached" not in tracer.stderr.readline():
        tracer.kill()
        tracer.communicate()
        raise PermissionError(f"strace cannot attach to process {process}")
    return tracer


def calls(log: Path, folder: Path) -> Iterator[Call]:
    """Yield the calls in a log, in their order, of a process that worked in a folder."""
    counts: Counter[tuple[str, str]] = Counter()
    begun: dict[str, tuple[str, int]] = {}
    for line in log.read_text("utf-8", "replace").splitlines():
        thread, said = line.split(maxsplit=1)
        if resumed := re.match(r"<\.\.\. \w+ resumed>", said):
            start, number = begun.pop(thread)
            yield _call(start + said[resumed.end() :], number, folder)
            continue
        entered = re.match(r"(\w+)\(", said)
        if entered is None:
            continue
        counts[thread, entered[1]] += 1
        number = counts[thread, entered[1]]
        if said.endswith("<unfinished ...>"):
            begun[thread] = said.removesuffix("<unfinished ...>"), number
        else:
            yield _call(said, number, folder)
    for start, number in begun.values():
        yield _call(start, number, folder)


def _call(said: str, number: int, folder: Path) -> Call:
    name, _, rest = said.partition("(")
    words, _, result = rest.rpartition(" = ")
    returned = re.match(r"\d+", result)
    paths = [Path(path) for path in re.findall(r"^\d+<([^>]*)>", words)]
    if name in ("openat", *FILES_CHANGE):
        # A name, with the folder before it that it is relative to.
        named = re.findall(r'(?:<([^>]*)>, )?"((?:[^"\\]|\\.)*)"', words)
        paths = [Path(os.path.normpath(folder / base / path)) for base, path in named]
    number_returned = int(returned[0]) if returned else None
    is_injected = result.endswith("(INJECTED)")
    return Call(name, number, tuple(paths), words, number_returned, is_injected)
