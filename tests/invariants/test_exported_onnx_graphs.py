"""A model as graphs: what ONNX Runtime alone makes of them is what the network says."""

import io
import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from onnxruntime import InferenceSession

from convs2s.api.translator import Translator
from convs2s.data.vocabulary import END, PADDING, SPECIAL_TOKENS
from convs2s.model_file import load_model
from tests.conftest import Terminal

SOURCE = np.array([[5, 6, 7, 8, END], [9, END, PADDING, PADDING, PADDING]])
PREVIOUS = np.array([[END, 6, 7], [END, 5, 5]])  # (B, n)


def log_probabilities(folder: Path) -> torch.Tensor:
    """Return those of all target types (B, n, S): docs/publishing.md says how."""
    encoder, decoder, output = (
        InferenceSession(folder / f"{name}.onnx")
        for name in ("encoder", "decoder", "output")
    )
    names = [one.name for one in encoder.get_outputs()]
    given = dict(zip(names, encoder.run(names, {"source": SOURCE}), strict=True))
    rows = np.arange(len(SOURCE))
    width = next(one.shape[1] for one in decoder.get_inputs() if one.name == "0.state")
    given |= {"0.state": np.zeros((len(rows), width), np.float32), "rows": rows}
    listed = (folder / "vocabulary.target.txt").read_text("utf-8").count("\n")
    types = np.array([len(SPECIAL_TOKENS) + listed])
    steps = []
    for position, previous in enumerate(PREVIOUS.T):
        step = {"previous": previous[:, None], "position": np.array(position)}
        features, state = decoder.run(["0.features", "0.state.next"], given | step)
        given["0.state"] = state
        best = {"0.features": features, "groups": -(-types // 32), "count": types}
        values, tokens = output.run(["values", "tokens"], best)
        steps.append(np.take_along_axis(values, tokens.argsort(axis=1), axis=1))
    return torch.from_numpy(np.stack(steps, axis=1))


@torch.inference_mode()
def test_the_graphs_predict_what_the_network_does(
    model: Path, tmp_path: Path, run: Terminal
) -> None:
    run("export", "onnx", str(model), str(tmp_path / "folder"))
    network, description = load_model(model)
    logits, _ = network.eval()(torch.from_numpy(SOURCE), torch.from_numpy(PREVIOUS))
    found = log_probabilities(tmp_path / "folder")
    torch.testing.assert_close(found, logits.log_softmax(2), atol=1e-4, rtol=1e-4)
    stated = json.loads((tmp_path / "folder/config.json").read_text("utf-8"))
    prepared = description.model_dump(mode="json")
    names = "languages preparation glossaries splittable truecasers dictionary"
    for name in (*names.split(), "architecture"):
        assert stated[name] == prepared[name]


def test_the_program_beside_them_translates_as_greedy_search(
    model: Path,
    tmp_path: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("export", "onnx", str(model), str(tmp_path / "folder"))
    lines = ["w1 w2 w3", "w9 never w4 w5", "w7"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    capsys.readouterr()
    runpy.run_path(str(tmp_path / "folder/translate.py"))
    translator = Translator.load(model, device="cpu", pretokenized=True)
    found = translator.translate(lines, beam=1, replace_unknown=False)
    assert capsys.readouterr().out.splitlines() == [one.text for one in found]
