"""``learned_metric`` of config.yaml: a metric that a network computes, where a user has one."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from convs2s.config.fields import PositiveInt, Text
from convs2s.config.section import Section

LearnedMetricName = Literal["comet", "bleurt"]


def with_home(place: str) -> str:
    """Write ``~`` at the start of a path as the user's home folder."""
    is_at_home = place == "~" or place.startswith("~/")
    return f"{Path.home()}{place.removeprefix('~')}" if is_at_home else place


class LearnedMetric(Section):
    """A learned metric whose package and model are on this machine (docs/scores.md)."""

    name: LearnedMetricName
    """comet (package unbabel-comet) or bleurt (package BLEURT)."""
    model: Annotated[Text, AfterValidator(with_home)]
    """The model: COMET's checkpoint file, or BLEURT's folder. Nothing is downloaded."""
    batch: PositiveInt = 32
    """Sentences that it scores at a time."""
