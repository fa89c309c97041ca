"""TensorBoard's event files of a training, beside its states.

The package ``tensorboard`` is an extra: it is imported where a training asks for it, and nowhere
else.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from convs2s.errors import UserError

EVENTS = "tensorboard"
"""Name of their folder, in that of a training's states."""


class EventFile:
    """The events of one training: scalars by the number of updates made."""

    def __init__(self, folder: Path) -> None:
        """Name the folder of the event files; nothing is written before ``begin``.

        Raises:
            UserError: the package is not installed.
        """
        try:
            import tensorboard.compat.proto.event_pb2
            import tensorboard.summary.writer.event_file_writer  # noqa: F401
        except ImportError as error:
            raise UserError(
                f"training.tensorboard: the package tensorboard is not installed ({error}): "
                "pip install 'convs2s[tensorboard]', or set it to false"
            ) from None
        self.folder = folder
        self._writer: Any = None

    def begin(self, updates: int) -> set[str]:
        """Go on after so many updates: later events of a try that was killed are left out.

        Returns:
            What is there: ``TAG STEP`` of each scalar.
        """
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        before = sorted(self.folder.glob("events.out.tfevents.*"))
        kept = [event for path in before for event in _events(path) if event.step <= updates]
        self._writer = EventFileWriter(str(self.folder))
        for event in kept:
            self._writer.add_event(event)
        self._writer.flush()
        for path in before:
            path.unlink()
        return {f"{value.tag} {event.step}" for event in kept for value in event.summary.value}

    def add(self, updates: int, scalars: Mapping[str, object]) -> None:
        """Add scalars, those that are not None, after so many updates."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        stated = {tag: value for tag, value in scalars.items() if value is not None}
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in stated.items()]
        self._writer.add_event(
            Event(wall_time=time.time(), step=updates, summary=Summary(value=values))
        )
        self._writer.flush()


def _events(path: Path) -> Iterator[Any]:
    """Yield the events of a file that have scalars; one that a kill cut short ends it."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    for event in LegacyEventFileLoader(str(path)).Load():
        if event.HasField("summary"):
            yield event
