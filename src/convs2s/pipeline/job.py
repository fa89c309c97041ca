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
from typing import Any, TextIO

from convs2s.errors import UserError
from convs2s.files.checksums import check_noted, forget_checksums, note_checksums
from convs2s.files.locks import PATIENT, try_lock, wait_for_lock


@contextmanager
def job(snakemake: Any) -> Iterator[None]:
    """Run a rule's work: what it prints goes to its log, a fault of the input also to the terminal.

    The inputs must be what the jobs before have noted; the outputs are noted for the next. A
    ``UserError`` ends the job with exit code 1 and one line; Ctrl-C or SIGTERM with 130.
    """
    with _logged(snakemake.log[0]):
        forget_checksums(snakemake.output)
        check_noted(snakemake.input)
        yield
        # The rules' logs have a folder in that of the results.
        above = Path(snakemake.log[0]).parents
        results = next((folder.parent for folder in above if folder.name == "logs"), None)
        note_checksums(snakemake.output, results)


@contextmanager
def _logged(log: str) -> Iterator[None]:
    """Send what is printed to a log: who works, since when, and at its end for how long.

    The log is locked meanwhile, so that a log without an end tells work that goes on from a kill.
    """
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    terminal, started = os.dup(2), time.time()
    with Path(log).open("a+", encoding="utf-8", errors="replace") as stream:
        _lock(stream)
        os.ftruncate(stream.fileno(), 0)
        saved = os.dup(1)
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        # Snakemake ends jobs by SIGTERM after Ctrl-C: it is answered as that is.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            os.write(2, f"{now}, process {os.getpid()} on {os.uname().nodename}\n".encode())
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
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.dup2(terminal, 2)
            os.close(saved)
            os.close(terminal)


def _lock(log: TextIO) -> None:
    """Take a log's lock; where another process works under it, such as an orphan, say so and wait.

    Until the lock is held the log is the other one's, whose first line names it.
    """
    with suppress(OSError):  # a file system without locks
        if not try_lock(log, tries=PATIENT):
            log.seek(0)
            since, _, owner = log.readline(200).strip().partition(", ")
            is_named = owner.startswith("process ")
            holder = f"{owner} (since {since})" if is_named else "another process"
            _say(f"{log.name}: {holder} still does this work: waiting until it ends, or is ended\n")
            wait_for_lock(log)


def _say(text: str, *descriptors: int) -> None:
    """Write to the log, or to these descriptors, after all that was printed before."""
    sys.stdout.flush()
    for descriptor in descriptors or (2,):
        os.write(descriptor, text.encode())
