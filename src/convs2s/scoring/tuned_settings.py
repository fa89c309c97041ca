"""A decoding's settings with the length penalty that was tuned for the run.

Jobs that translate and jobs that score ask for them; neither needs what the other computes with.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from convs2s.config.decoding import DecodingSettings, LengthPenalty, TunedLengthPenalty
from convs2s.errors import failures_of_file
from convs2s.files.text import read_lines

PLAIN = 1.0  # the paper's length penalty where none is tuned
_ALPHA = TypeAdapter(LengthPenalty)
_PRECISION = TypeAdapter(Literal["fp32", "bf16", "int8"])


def tuned_decoding(stated: Mapping[str, object], tuned: Sequence[str]) -> DecodingSettings:
    """Return a decoding, as config/decodings.yaml states it, with a number for the length penalty.

    ``tuned`` is the JSON file of the tuning: none where the number is stated, and for the list that
    the tuning goes by, whose order does not matter. A file that is no tuning is a UserError.
    """
    settings = DecodingSettings.model_validate(stated)
    if not isinstance(settings.length_penalty, TunedLengthPenalty):
        return settings
    alpha = PLAIN
    for path in tuned:  # at most one
        with failures_of_file(path, "no tuning of a length penalty; delete it and tune again"):
            alpha = _ALPHA.validate_python(json.loads(Path(path).read_bytes())["length_penalty"])
    return settings.model_copy(update={"length_penalty": alpha})


def decoding_as_run(
    stated: Mapping[str, object],
    tuned: Sequence[str],
    translations: Path,
) -> dict[str, object]:
    """Return a decoding for a score's manifest; the translations say what ``auto`` stood for."""
    decoding = tuned_decoding(stated, tuned).model_dump(mode="json")
    if decoding["precision"] == "auto":
        expected = "no translation of this program's decoder; decode the test set again"
        with failures_of_file(f"{translations}:1", expected):
            first = next(read_lines(translations), "")
            decoding["precision"] = _PRECISION.validate_python(json.loads(first)["precision"])
    return decoding
