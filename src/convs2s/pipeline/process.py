"""The processes that run the workflow: their environment and their shell commands."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).absolute().parents[2]
"""The folder that contains this package: ``src`` in a clone."""


def provide_environment(source: Path | None = SOURCE) -> None:
    """Set the environment variables that every job inherits, whatever starts the job.

    - Jobs find this package in the folder ``source``; None means that it is installed.
    - Jobs find the Python that runs now, unless a conda environment puts its own before it.
    - Threads of OpenMP that wait give up their core, because busy waiting makes each of several
      jobs on one machine many times slower. OpenBLAS, which numpy uses, always waits busily. It
      gets one thread, as numpy's products are small here. A user's own settings are kept.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if source is not None:
        _put_first("PYTHONPATH", source)
    _put_first("PATH", Path(sys.executable).parent)


def _put_first(name: str, folder: Path) -> None:
    """Put a folder before the folders that an environment variable lists."""
    folders = filter(None, os.environ.get(name, "").split(os.pathsep))
    os.environ[name] = os.pathsep.join([str(folder), *folders])


def logged(command: str, before: str) -> str:
    """Return a shell command for a rule that runs ``command`` and copies its output to the log.

    The log begins with the contents of the file ``before``, a path in shell quotes. That file has
    the log of earlier tries, which Snakemake removes from the rule's log.

    A scheduler and Ctrl-C send their signals to the whole process group. ``command`` handles
    SIGTERM, SIGUSR1 and SIGINT itself, and the shell and tee ignore them, so that its last lines
    are still copied. tee also goes on if nobody reads the terminal's copy any more (``| head``). If
    tee fails because the disk is full, the job does not fail.
    """
    # A command inherits what `trap ''` ignores, but not what `trap :` handles. So tee ignores the
    # signals, and `command` receives them although the shell survives them.
    copy = "(trap '' TERM USR1 INT HUP PIPE; tee -a {log:q} || true)"
    return (
        f"if [ -f {before} ]; then cat {before} > {{log:q}}; fi; "
        f"trap : TERM USR1 INT HUP; {command} 2>&1 | {copy}"
    )


def options_of_training(files: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """Return the folder and the options of ``convs2s train`` for a job, quoted for a shell.

    ``files`` are the named inputs of the rule ``train_model``. ``machine`` has the keys of a recipe
    that change no result (``convs2s.config.identity.machine_settings``).
    """
    store = Path(files["dataset"][0])  # TASK/dataset/train.arrow
    words = [str(store.parents[1])]
    for name in ("start", "dictionary", "candidates", "truecasers"):
        paths = files[name]
        if paths:
            words.append(f"--{name}")
            words += [paths] if isinstance(paths, str) else paths
    words += ["--checkpoint-minutes", str(machine["checkpoint_minutes"])]
    if machine["tensorboard"]:
        words.append("--tensorboard")
    return shlex.join(words)
