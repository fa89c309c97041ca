"""Model files of other versions of this project."""

from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.tensors import load_tensors, save_tensors
from convs2s.model_file import load_model


def test_a_model_file_of_the_former_format_is_refused_in_one_line(
    model: Path, tmp_path: Path
) -> None:
    weights, fields = load_tensors(model)
    former = tmp_path / "model.safetensors"
    fields["codes"] = fields.pop("bpe_codes")  # as that format called them
    save_tensors(former, weights, {**fields, "format": "convs2s model 1"})
    with pytest.raises(UserError) as refused:
        load_model(former)
    assert str(refused.value) == (
        f"{former}: a model file of another version (convs2s model 1; this one reads "
        "convs2s model 3): train or import the model again"
    )
