"""The processes that run the workflow: their environment, commands and failures."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from convs2s.errors import UserError

SOURCE = Path(__file__).absolute().parents[2]
"""The folder that this package lies in."""


def provide_environment(source: Path | None = SOURCE) -> None:
    """Let jobs find this package and the Python that runs now, whoever started it and how.

    The package lies in ``source``; None where it is installed for that Python. A conda
    environment's own Python still comes first. Threads that wait give up their core: where several
    jobs share a machine, busy waiting makes each of them many times slower. numpy's OpenBLAS always
    waits busily, and its products are small here: it has one thread.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if source is not None:
        _put_first("PYTHONPATH", source)
    _put_first("PATH", Path(sys.executable).parent)


def _put_first(name: str, folder: Path) -> None:
    """Put a folder before those that an environment variable names."""
    others = filter(None, os.environ.get(name, "").split(os.pathsep))
    os.environ[name] = os.pathsep.join([str(folder), *others])


def logged(command: str, before: str) -> str:
    """Return a rule's shell command that also goes to its log, and outlives a scheduler's signals.

    A scheduler signals the whole process group, and so does Ctrl-C. The command answers SIGTERM,
    SIGUSR1 and SIGINT itself; the shell and tee have to be there for all that it says, also where
    nobody reads the terminal's copy any more (``| head``), or no line fits on the disk. The log
    begins with the file ``before`` (quoted) of earlier tries, as Snakemake removes the last one's.
    """
    copy = "(trap '' TERM USR1 INT HUP PIPE; tee -a {log:q} || true)"
    return (
        f"if [ -f {before} ]; then cat {before} > {{log:q}}; fi; "
        f"trap : TERM USR1 INT HUP; {command} 2>&1 | {copy}"
    )


def options_of_training(files: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """Return the folder and the options of ``convs2s train`` for a job's inputs, by name.

    ``machine`` has what of a recipe changes no result.
    """
    store = Path(files["dataset"][0])
    words = [str(store.parents[1])]
    for name in ("start", "dictionary", "candidates", "truecasers"):
        given = files[name]
        if given:
            words.append(f"--{name}")
            words += [given] if isinstance(given, str) else given
    words += ["--checkpoint-minutes", str(machine["checkpoint_minutes"])]
    if machine["tensorboard"]:
        words.append("--tensorboard")
    return shlex.join(words)


@contextmanager
def failures_in_one_line() -> Iterator[None]:
    """Exit with a fault of the input in one line, where Snakemake would also show the code."""
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")
