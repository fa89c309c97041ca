"""Model files of other versions of this project."""

import re
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.model_file import FORMAT, load_model
from convs2s.tensor_file import load_tensors, save_tensors


@pytest.mark.parametrize("stated", [{"format": "convs2s model 1"}, {}])
def test_a_model_file_of_another_version_is_refused_in_one_line(
    model: Path, tmp_path: Path, stated: dict[str, str]
) -> None:
    weights, fields = load_tensors(model)
    assert fields.pop("format") == FORMAT == "convs2s model 2"
    path = tmp_path / "model.safetensors"
    # What the former version called otherwise is not read before its format is.
    fields["codes"] = fields.pop("bpe_codes")
    save_tensors(path, weights, {**fields, **stated})
    with pytest.raises(UserError) as refused:
        load_model(path)
    said = str(refused.value)
    assert said == (
        f"{path}: a model file of another version ({stated.get('format')}; this one reads "
        "convs2s model 2): train or import the model again"
    )
    assert not re.search(r"[\r\n]", said)
