"""Insert the length penalty that was tuned for a run into the settings of a decoding.

Both jobs that translate and jobs that score use this module. So it imports neither torch nor
sacrebleu.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from convs2s.config.decoding import DecodingSettings, LengthPenalty, TunedLengthPenalty
from convs2s.errors import failures_of_file
from convs2s.files.text import read_checked, read_lines

PLAIN = 1.0  # the paper's length penalty if none is tuned
_PRECISION = TypeAdapter(Literal["fp32", "bf16", "int8"])


@dataclass
class _Tuning:
    """The part of the JSON file of a tuning that a decoding needs."""

    length_penalty: LengthPenalty


def tuned_decoding(
    stated: Mapping[str, object], tuned: Sequence[str]
) -> DecodingSettings:
    """Return the settings of a decoding, with a number for the length penalty.

    ``stated`` are the settings in config/decodings.yaml. If the length penalty is tuned, ``tuned``
    contains the tuning's JSON file. ``tuned`` is empty in two cases: the length penalty is stated
    as a number, or the decoding makes the n-best list on which it is tuned. The tuning does not
    depend on the order of that list, so any number serves there, and `PLAIN` is used.

    Raises:
        UserError: the file is not a tuning of a length penalty.
    """
    settings = DecodingSettings.model_validate(stated)
    if not isinstance(settings.length_penalty, TunedLengthPenalty):
        return settings
    alpha = PLAIN
    if tuned:
        (path,) = tuned
        problem = "not a tuning of a length penalty; delete it and tune again"
        alpha = read_checked(path, _Tuning, problem).length_penalty
    return settings.model_copy(update={"length_penalty": alpha})


def decoding_as_run(
    stated: Mapping[str, object],
    tuned: Sequence[str],
    translations: Path,
) -> dict[str, object]:
    """Return the settings of a decoding, as JSON, for the manifest of a score.

    If the stated precision is ``auto``, it is replaced by the precision that was used, which the
    first line of ``translations`` states.
    """
    decoding = tuned_decoding(stated, tuned).model_dump(mode="json")
    if decoding["precision"] == "auto":
        problem = (
            "not a translation by this program's decoder; decode the test set again"
        )
        with failures_of_file(f"{translations}:1", problem):
            first = json.loads(next(read_lines(translations), ""))
            decoding["precision"] = _PRECISION.validate_python(first["precision"])
    return decoding
