"""A model as graphs: what ONNX Runtime alone makes of them is what the network says."""

import io
import random
import runpy
from pathlib import Path
from typing import Any

import pytest

from convs2s.api.translator import Translator
from convs2s.files.text import read_json
from convs2s.model_file import describe_model
from tests.conftest import Terminal
from tests.support import tiny


def test_the_program_beside_them_translates_as_greedy_search(
    sharp: Path,
    tmp_path: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draw = random.Random(1)
    words = [*tiny.WORDS, "never"]
    lines = [" ".join(draw.choices(words, k=length)) for length in range(1, 21)]
    run("export", "onnx", sharp, tmp_path / "folder")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    runpy.run_path(str(tmp_path / "folder/translate.py"))
    written = capsys.readouterr().out.splitlines()
    translator = Translator.load(sharp, device="cpu", pretokenized=True)
    found = translator.translate(lines, beam=1, replace_unknown=False)
    assert written == [one.text for one in found]
    assert len(set(written)) == len(lines)
    stated: Any = read_json(tmp_path / "folder/config.json")
    prepared = describe_model(sharp).model_dump(mode="json")
    names = "languages preparation glossaries splittable truecasers dictionary"
    for name in (*names.split(), "architecture"):
        assert stated[name] == prepared[name]
