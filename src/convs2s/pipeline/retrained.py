"""What a plan says about finished trainings that run again because their settings have changed."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from convs2s.pipeline.living import RUN
from convs2s.training.identity import differing, is_longer

_MOST_SHOWN = 3  # number of changed keys that a line shows
_LONGEST_VALUE = 40  # number of characters of a value that a line shows

# The files of settings that this process has looked at.
_seen: set[str] = set()


def say_what_runs_again(
    model: str,
    file: str,
    settings: Mapping[str, object],
) -> None:
    """Print why a model's finished trainings run again, in one line on the standard error.

    A plan calls this for each training of the model, but the line is printed only once, and not by
    jobs, which plan, too.

    Args:
        model: the name in the line: ``TASK/MODEL``.
        file: the ``settings.json`` of the model, which exists if an earlier run wrote it.
        settings: what the configuration says now (``training_settings``).
    """
    if RUN in os.environ or file in _seen:
        return
    _seen.add(file)
    line = what_runs_again(file, settings)
    if line is not None:
        print(f"{model}: {line}", file=sys.stderr)


def what_runs_again(file: str, settings: Mapping[str, object]) -> str | None:
    """Return which settings changed since finished trainings, and what these trainings will do.

    An example is ``training.maximum_epochs 7 -> 9: 2 trainings go on ...``. Return None if nothing
    changed, or if no training beside the file has finished. For a damaged file, return None as well
    and leave the fault to the job that writes the file.
    """
    path = Path(file)
    try:
        before = json.loads(path.read_text("utf-8"))
        changed = differing(before, settings)
        goes_on = is_longer(before, settings)
    except (OSError, ValueError, AttributeError):
        return None
    finished = len(list(path.parent.glob("*/training.json")))
    if not changed or not finished:
        return None
    shown = []
    for key, (old, new) in list(changed.items())[:_MOST_SHOWN]:
        shown.append(f"{key} {_shown(old)} -> {_shown(new)}")
    if len(changed) > _MOST_SHOWN:
        shown.append("and others")
    return f"{', '.join(shown)}: {_effect(finished, goes_on)}"


def _effect(trainings: int, goes_on: bool) -> str:
    """Return what a number of trainings will do."""
    if goes_on and trainings == 1:
        return "1 training goes on from its last state, if it was kept"
    if goes_on:
        return f"{trainings} trainings go on from their last states, if these were kept"
    if trainings == 1:
        return "1 training starts again"
    return f"{trainings} trainings start again"


def _shown(value: object) -> str:
    """Return a value of the settings for the line: 7 for 7.0, and a long one shortened."""
    if isinstance(value, float):
        return f"{value:g}"
    text = json.dumps(value)
    if len(text) > _LONGEST_VALUE:
        text = f"{text[:_LONGEST_VALUE]}..."
    return text
