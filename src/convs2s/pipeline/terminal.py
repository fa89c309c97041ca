"""What Snakemake says on a terminal while it runs: a line for each job, and errors whole.

Its own log in .snakemake/log has everything. A logger plugin cannot do this: Snakemake looks for
plugins among installed packages, and the workflow also runs from a checkout that is not installed.
"""

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

import psutil

DROPPED_EVENTS = {"job_finished", "resources_info"}
"""Events that a line for each job makes superfluous."""

DROPPED_WORDS = ("Removing temporary output", "Select jobs to execute", "Execute ")
"""How messages of no event begin that it makes superfluous too."""

INTERRUPTED = "Terminating processes on user request"  # how Snakemake's message after Ctrl-C begins

DEAF_TO_INTERRUPTS = "set -euo pipefail; trap '' INT; "
"""Begins the shell of each job: Ctrl-C is for Snakemake, which ends jobs by SIGTERM."""

TO_RESUME = "interrupted: running jobs are ended; rerun the same command to resume"


class ShortMessages(logging.Filter):
    """Lets through what a person needs; after Ctrl-C none of the errors that it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.counts, self.is_interrupted = "", False

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is shown."""
        event = event_of(record)
        if event == "progress":
            done, total = vars(record)["done"], vars(record)["total"]
            self.counts = f" ({done} of {total} done)"
            return bool(done == total)
        if self.is_interrupted and record.levelno >= logging.ERROR:
            return False
        return event not in DROPPED_EVENTS and not record.getMessage().startswith(DROPPED_WORDS)


class ShortFormat(logging.Formatter):
    """Says in one line which job starts; leaves all other messages as they are."""

    def __init__(self, whole: logging.Formatter, shown: ShortMessages) -> None:
        """Take the format of all other messages, and the filter that knows how many are done."""
        super().__init__()
        self._whole, self._shown = whole, shown

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a message."""
        if event_of(record) == "job_info":
            stated = vars(record)
            without = "done with all of it" if stated["input"] else "started"
            made = ", ".join(stated["output"][:1]) or without
            now = time.strftime("%H:%M:%S")
            return f"[{now}] {stated['rule_name']}: {made}{self._shown.counts}"
        if record.getMessage().startswith(INTERRUPTED):
            return TO_RESUME
        return self._whole.format(record)


class OutlivingStream:
    """A stream that falls silent once its reader has gone, as that of ``| head`` does."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write a text."""
        with self._outliving():
            self._stream.write(text)

    def flush(self) -> None:
        """Write what is still in the stream's memory."""
        with self._outliving():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # such as isatty

    @contextmanager
    def _outliving(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # As Python's documentation advises (module signal, "Note on SIGPIPE"). What is still in
            # memory, and what jobs say that start later, goes to the null device as well.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


def event_of(record: logging.LogRecord) -> str:
    """Return the event that a message of Snakemake's tells of; nothing where it states none."""
    event = getattr(record, "event", None)
    return "" if event is None else str(event.value)


def terminals(logger: logging.Logger) -> list[logging.StreamHandler[Any]]:
    """Return the handlers by which a logger speaks on the terminal, its log files aside."""
    return [
        handler
        for handler in logger.handlers
        if isinstance(handler, logging.StreamHandler)
        and not isinstance(handler, logging.FileHandler)
    ]


def outlive_reader(logger: logging.Logger) -> None:
    """Have a logger of Snakemake's go on in silence where nobody reads the terminal's lines.

    Its handler raises BrokenPipeError, also in the thread that a job has ended in: Snakemake would
    never learn of that end, and wait for ever.
    """
    for handler in terminals(logger):
        handler.setStream(OutlivingStream(handler.stream))


def shorten_messages(logger: logging.Logger) -> None:
    """Have what Snakemake's logger says on the terminal be short from now on, its log file whole.

    After Ctrl-C it also ends the jobs, which ``DEAF_TO_INTERRUPTS`` keeps from answering it each.
    """
    shown = ShortMessages()
    if not logger.isEnabledFor(logging.DEBUG):  # as --verbose has it
        for handler in terminals(logger):
            if handler.formatter:
                handler.addFilter(shown)
                handler.setFormatter(ShortFormat(handler.formatter, shown))

    def end_jobs(number: int, frame: FrameType | None) -> None:
        shown.is_interrupted = True  # before the jobs that end tell of it
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.terminate()  # a training saves first, others leave no traceback
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_jobs)
