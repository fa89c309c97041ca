"""A decoding's settings with the length penalty that was tuned for the run.

Jobs that translate and jobs that score ask for them; neither needs what the other computes with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty

PLAIN = 1.0
"""The paper's length penalty where none is tuned."""


@dataclass(frozen=True)
class _Tuning:
    """What is read of a tuning's JSON file."""

    length_penalty: float


def tuned_decoding(stated: Mapping[str, object], tuned: Sequence[str]) -> DecodingSettings:
    """Return a decoding's settings with a number for the length penalty.

    Args:
        stated: the decoding, as config/decodings.yaml has it.
        tuned: the JSON file of the tuning; none where the number is stated, and for the list that
            the tuning goes by, whose order does not matter.
    """
    settings = DecodingSettings.model_validate(stated)
    if not isinstance(settings.length_penalty, TunedLengthPenalty):
        return settings
    values = [TypeAdapter(_Tuning).validate_json(Path(path).read_bytes()) for path in tuned]
    alpha = values[0].length_penalty if values else PLAIN
    return settings.model_copy(update={"length_penalty": alpha})
