"""What every job of a rule runs in.

It imports next to nothing, as its code is part of every script's fingerprint.
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

from convs2s.errors import UserError
from convs2s.files.checksums import check_noted, forget_checksums, note_checksums
from convs2s.files.locks import PATIENT, try_lock, wait_for_lock
from convs2s.pipeline.living import living_job
from convs2s.pipeline.tries import noted_try


@contextmanager
def job(snakemake: Any) -> Iterator[None]:
    """Run a rule's work: what it prints goes to its log, a fault of the input also to the terminal.

    The inputs must be what the jobs before have noted; the outputs are noted for the next. A
    ``UserError`` ends the job with exit code 1 and one line; Ctrl-C or SIGTERM with 130.
    """
    with _logged(snakemake.log[0]), living_job(), noted_try(snakemake.output):
        forget_checksums(snakemake.output)
        check_noted(snakemake.input)
        yield
        results = None
        for folder in Path(snakemake.log[0]).parents:
            if folder.name == "logs":  # the rules' logs have a folder in that of the results
                results = folder.parent
                break
        note_checksums(snakemake.output, results)


@contextmanager
def _logged(log: str) -> Iterator[None]:
    """Send what is printed to a log: who works, since when, and at its end for how long."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    started = time.time()
    terminal = os.dup(2)
    me = f"{time.strftime('%Y-%m-%d %H:%M:%S')}, process {os.getpid()} on {os.uname().nodename}\n"
    with _locked(log, me), Path(log).open("w", encoding="utf-8") as stream:
        saved = os.dup(1)
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        # Snakemake ends jobs by SIGTERM after Ctrl-C: it is answered as that is.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _say(me)
            yield
            _say(f"done in {time.time() - started:.1f} s\n")
        except UserError as error:
            _say(f"error: {error}\n", 2, terminal)
            sys.exit(1)
        except KeyboardInterrupt:
            _say("error: interrupted: the same command makes it again\n")
            sys.exit(130)
        except Exception:
            _say(traceback.format_exc())
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
            _say("")  # the rest of what was printed
            os.dup2(saved, 1)
            os.dup2(terminal, 2)
            os.close(saved)
            os.close(terminal)


def prefix_of(output: str, stated: str) -> str:
    """Return what stands before a path where a job really has it.

    That is the ``prefix`` of a module, or the folder of local copies of a storage: Snakemake puts
    it before inputs and outputs, and not before paths among params. ``output`` begins with it,
    then with ``stated``.
    """
    return output[: output.index(stated)]


def lock_beside(log: str | Path) -> Path:
    """Return the file that a job locks, as Snakemake removes its log before the next one starts."""
    return Path(log).with_name(f".{Path(log).name}.lock")


@contextmanager
def _locked(log: str, me: str) -> Iterator[None]:
    """Hold a job's lock; where another process has it, such as an orphan, say so and wait.

    A log without an end is a killed job's if nobody holds the lock.
    """
    with lock_beside(log).open("a+", encoding="utf-8", errors="replace") as lock:
        with suppress(OSError):  # a file system without locks, or a full one
            if not try_lock(lock, tries=PATIENT):
                lock.seek(0)
                holder = lock.readline(200).strip() or "another process"
                _say(f"{log}: {holder} still does this work: waiting until it ends, or is ended\n")
                wait_for_lock(lock)
            os.ftruncate(lock.fileno(), 0)
            os.write(lock.fileno(), me.encode())
        yield


def _say(text: str, *descriptors: int) -> None:
    """Write to the log, or to these descriptors, after all that was printed before."""
    with suppress(OSError):  # a full disk: what the job itself writes says so
        sys.stdout.flush()
    for descriptor in descriptors or (2,):
        with suppress(OSError):
            os.write(descriptor, text.encode())
