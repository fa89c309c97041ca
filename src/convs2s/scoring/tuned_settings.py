"""A decoding's settings with the length penalty that was tuned for the run.

Jobs that translate and jobs that score ask for them; neither needs what the other computes with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from convs2s.config.decoding import DecodingSettings, TunedLengthPenalty
from convs2s.errors import failures_of_file
from convs2s.files.limits import LARGEST_LENGTH_PENALTY
from convs2s.scoring.translations import read_precision

PLAIN = 1.0
"""The paper's length penalty where none is tuned."""


@dataclass(frozen=True)
class _Tuning:
    """What is read of a tuning's JSON file."""

    length_penalty: Annotated[float, Field(ge=0, le=LARGEST_LENGTH_PENALTY)]


def _read_tuning(path: Path) -> _Tuning:
    with failures_of_file(str(path), "no tuning of a length penalty; delete it and tune again"):
        return TypeAdapter(_Tuning).validate_json(path.read_bytes())


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
    values = [_read_tuning(Path(path)) for path in tuned]
    alpha = values[0].length_penalty if values else PLAIN
    return settings.model_copy(update={"length_penalty": alpha})


def decoding_as_run(
    stated: Mapping[str, object], tuned: Sequence[str], translations: Path
) -> dict[str, object]:
    """Return what a score's manifest says of its decoding: also what ``auto`` stood for.

    Args:
        stated: as of ``tuned_decoding``.
        tuned: likewise.
        translations: the decoder's JSON lines.

    Raises:
        UserError: they are none, or do not say their precision.
    """
    decoding = tuned_decoding(stated, tuned).model_dump(mode="json")
    if decoding["precision"] == "auto":
        decoding["precision"] = read_precision(translations)
    return decoding
