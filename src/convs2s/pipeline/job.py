"""The context in which every script of a rule runs: its log, its locks, its notes.

This module imports next to nothing, because its code is part of every script's fingerprint.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from convs2s.errors import UserError, failures_in_one_line, failures_of_system
from convs2s.files.checksums import check_noted, forget_checksums, note_checksums
from convs2s.files.locks import PATIENT, try_lock, wait_for_lock
from convs2s.pipeline.living import living_job
from convs2s.pipeline.made import noted_origin, without_changes
from convs2s.pipeline.tries import noted_try


@contextmanager
def job(snakemake: Any) -> Iterator[list[str]]:
    """Run the block as a rule's job, and yield the inputs that the rule states.

    They are ``snakemake.input`` without the change file that a plan may have added (`made`).

    What the block prints goes to the rule's log. The checksums of the inputs must be those that
    earlier jobs have noted, and those of the outputs are noted for later jobs. A ``UserError`` or a
    failure of the system is printed in one line, also on the terminal, and ends the job with exit
    code 1. Ctrl-C and SIGTERM end it with exit code 130.
    """
    inputs = without_changes(snakemake.input)
    params = dict(snakemake.params.items())
    with (
        failures_in_one_line(),  # to open or lock the log, which `_logged` cannot report
        _logged(snakemake.log[0]),
        # A failure to write an output names the output. A failure that names no file is most
        # likely that of the log, which the block's prints go to.
        failures_of_system(f"{snakemake.log[0]}, or another file that is open"),
        living_job(),  # tells a later run that this job still lives
        noted_try(snakemake.output),  # makes Snakemake run a failed job again
        noted_origin(snakemake.output, params, inputs),
    ):
        forget_checksums(snakemake.output)
        check_noted(inputs)
        yield inputs
        results = None
        for folder in Path(snakemake.log[0]).parents:
            if folder.name == "logs":  # logs are in RESULTS/logs
                results = folder.parent
                break
        note_checksums(snakemake.output, results)


@contextmanager
def _logged(log: str) -> Iterator[None]:
    """Send everything that the block prints to a log, also from subprocesses and from C code.

    The first line of the log names the time, the process and the machine. The last one is
    ``done in SECONDS s``, or says how the job failed. The log of a killed job has no such end.
    ``convs2s.pipeline.status`` reads both lines.
    """
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    started = time.time()
    owner = f"{time.strftime('%Y-%m-%d %H:%M:%S')}, process {os.getpid()} on {os.uname().nodename}"
    terminal_errors = os.dup(2)
    with _locked(log, owner), Path(log).open("w", encoding="utf-8") as stream:
        terminal_output = os.dup(1)
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        # After Ctrl-C Snakemake ends its jobs by SIGTERM, so both raise KeyboardInterrupt.
        handler_before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _print(f"{owner}\n")
            yield
            _print(f"done in {time.time() - started:.1f} s\n")
        except UserError as error:
            _print(f"error: {error}\n")
            _print(f"error: {error}\n", terminal_errors)
            sys.exit(1)
        except KeyboardInterrupt:
            _print("error: interrupted: the same command makes it again\n")
            sys.exit(130)
        except Exception:
            _print(traceback.format_exc())
            raise
        finally:
            signal.signal(signal.SIGTERM, handler_before)
            _print("")  # flushes Python's buffer while descriptor 1 is still the log
            os.dup2(terminal_output, 1)
            os.dup2(terminal_errors, 2)
            os.close(terminal_output)
            os.close(terminal_errors)


def prefix_of(output: str, stated: str) -> str:
    """Return what Snakemake has put before a path: ``PREFIX`` if ``output`` is ``PREFIXstated``.

    It is the ``prefix`` of a module, or the folder for local copies of a storage. Snakemake puts it
    before inputs and outputs, but not before paths among params. A job has to do that itself.
    """
    return output[: output.index(stated)]


def lock_beside(log: str | Path) -> Path:
    """Return the path of a job's lock file, ``.NAME.lock`` beside its log ``NAME``.

    The log itself cannot be locked, because Snakemake removes it before the next job starts.
    """
    return Path(log).with_name(f".{Path(log).name}.lock")


@contextmanager
def _locked(log: str, owner: str) -> Iterator[None]:
    """Hold a job's lock while the block runs, and write its owner into the lock file.

    If another process holds the lock, such as a job whose Snakemake was killed, print the name of
    that process and wait until it ends. The kernel frees a lock when its process dies. So a log
    that does not say how the job ended belongs to a killed job if nobody holds the lock, and to a
    running job otherwise.
    """
    with lock_beside(log).open("a+", encoding="utf-8", errors="replace") as lock:
        with suppress(OSError):  # a file system that has no locks, or is full
            if not try_lock(lock, tries=PATIENT):
                lock.seek(0)
                holder = lock.readline(200).strip() or "another process"
                _print(f"{log}: {holder} still does this work: waiting until it ends\n")
                wait_for_lock(lock)
            os.ftruncate(lock.fileno(), 0)
            os.write(lock.fileno(), f"{owner}\n".encode())
        yield


def _print(text: str, descriptor: int = 2) -> None:
    """Write to a file descriptor, after everything that was printed before.

    The default is the standard error. It is the log inside the block of `_logged`, and still the
    terminal while `_locked` waits for the lock. A full disk is ignored here; the job fails when it
    writes its outputs.
    """
    with suppress(OSError):
        sys.stdout.flush()
    with suppress(OSError):
        os.write(descriptor, text.encode())
