"""``convs2s.Translator``: what a notebook does with a model, beside what the command says."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import convs2s
from convs2s.api.translator import OF_A_MODEL, Translator
from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.translate import Translation
from convs2s.errors import UserError
from convs2s.model_file import load_model
from tests.unit.conftest import Terminal

TEXTS = ["w1 w2 w3", "", "w4 unheard w5 w6 w7", "w8"]


@pytest.fixture(scope="module")
def translator(sharp: Path) -> Translator:
    return Translator.load(sharp, device="cpu")


def test_it_translates_as_the_command_does(
    translator: Translator, sharp: Path, run: Terminal
) -> None:
    asked = (
        "--json",
        "--n-best",
        3,
        "--beam",
        4,
        "--minimum-length",
        2,
        "--device",
        "cpu",
    )
    told = run("translate", sharp, *asked, text="\n".join([*TEXTS, ""]).encode())
    expected = [json.loads(line) for line in told.splitlines()]
    found = translator.translate(TEXTS, beam=4, n_best=3, minimum_length=2)
    assert [one.as_json() for one in found] == expected
    assert [one.text for one in found][1] == ""
    assert all(len(one.n_best) == 3 for one in (found[0], found[2], found[3]))
    assert all(one.attention is None for one in found)


def test_each_call_has_its_own_search(translator: Translator) -> None:
    (five,), (one,) = (
        translator.translate(["w1 w2 w3 w4"], beam=beam) for beam in (5, 1)
    )
    assert one.score < five.score
    assert translator.translate(["w1 w2 w3 w4"]) == [five]
    (longest,) = translator.translate(
        ["w1"], maximum_length={"factor": 0.0, "offset": 2}
    )
    assert len(longest.tokens) <= 2
    assert five.n_best[0].text == five.text


def test_attention_is_that_of_the_search(translator: Translator) -> None:
    plain = translator.translate(TEXTS, n_best=2)
    for found, same in zip(
        translator.translate(TEXTS, n_best=2, attention=True), plain, strict=True
    ):
        assert [one.text for one in found.n_best] == [one.text for one in same.n_best]
        for one in (found, *found.n_best):
            shown = one.attention
            assert shown is not None
            assert shown.source == [*one.source_tokens, "</s>"]
            assert shown.target == [*one.tokens, "</s>"]
            assert shown.weights.shape == (2, len(shown.target), len(shown.source))
            assert shown.weights.sum(2) == pytest.approx(
                np.ones(shown.weights.shape[:2]), abs=1e-5
            )
            words = shown.weights.mean(0)[:-1, : len(one.source_tokens)]
            assert [int(row.argmax()) for row in words] == one.alignment
    assert "attention" not in found.as_json()
    # It is large, and an array: two translations are the same without it.
    assert isinstance(found, Translation)
    assert "attention" not in repr(found)
    assert replace(found, attention=None) == found


def test_attention_reads_a_model_once(
    sharp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def noted(path: Path) -> object:
        read.append(path)
        return load_model(path)

    monkeypatch.setattr("convs2s.decoding.translate.load_model", noted)
    own = Translator.load(sharp, device="cpu")
    for beam in (1, 2):
        own.translate(["w1"], attention=True, beam=beam)
    assert read == [sharp]


def test_a_model_that_was_replaced_is_not_taken_for_the_one_in_memory(
    model: Path, sharp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = Path(shutil.copy(sharp, "model.safetensors"))
    own, moved = (Translator.load(copy, device="cpu") for _ in range(2))
    monkeypatch.chdir("/")
    assert moved.score([("w1", "w1")]) == Translator.load(sharp).score([("w1", "w1")])
    shutil.copy(model, tmp_path / copy)
    for late in (
        lambda: own.score([("w1", "w1")]),
        lambda: own.translate(["w1"], attention=True),
    ):
        with pytest.raises(
            UserError, match=r"model\.safetensors: was changed since it was loaded"
        ):
            late()


def test_a_translations_score_is_that_of_its_pair(translator: Translator) -> None:
    found = [one for one in translator.translate(TEXTS) if one.tokens]
    assert len(found) == 3
    scores = translator.score([(one.source, " ".join(one.words)) for one in found])
    for one, score in zip(found, scores, strict=True):
        assert score.tokens == len(one.tokens) + 1
        assert score.normalized(1.0) == pytest.approx(one.score, abs=1e-5)
    assert translator.score([]) == []


def test_tokens_in_tokens_out(sharp: Path, translator: Translator) -> None:
    tokens = Translator.load(sharp, device="cpu", pretokenized=True)
    (found,) = tokens.translate(["w1 <unk> w2"], replace_unknown=False)
    assert found.text == " ".join(found.tokens)
    assert found.source_tokens == ["w1", "<unk>", "w2"]
    (score,) = tokens.score([(found.source, found.text)])
    assert score.normalized(1.0) == pytest.approx(found.score, abs=1e-5)


def test_several_files_are_an_ensemble(model: Path, sharp: Path) -> None:
    both = Translator.load(
        [model, str(sharp)], device="cpu", ensemble="log_probabilities"
    )
    assert repr(both) == "<Translator tiny en-fr, 2 x, cpu>"
    assert both.languages == {"source": "en", "target": "fr"}
    (found,) = both.translate(["w1 w2"], attention=True)
    assert found.attention is not None
    assert len(found.attention.weights) == 2 * 2
    alone = Translator.load(model, device="cpu").translate(["w1 w2"])
    assert found.score != alone[0].score
    (score,) = both.score([(found.source, " ".join(found.words))])
    assert score.normalized(1.0) == pytest.approx(found.score, abs=1e-5)


def test_a_model_without_attention(recurrent: Path) -> None:
    without_attention = Translator.load(str(recurrent), device="cpu")
    assert not without_attention.attends
    (found,) = without_attention.translate(["w1 w2"])
    assert found.alignment is None
    with pytest.raises(convs2s.UserError, match="attention: no model here has any"):
        without_attention.translate(["w1 w2"], attention=True)


BAD_CALLS: dict[str, tuple[Callable[[Translator], object], str]] = {
    "a text": (
        lambda it: it.translate("w1"),
        "^texts: expected a list of texts.* one text: put",
    ),
    "bytes": (lambda it: it.translate(b"w1"), "found the Python type bytes"),  # type: ignore[arg-type]
    "a number": (lambda it: it.translate(["w1", 2]), "^texts:2: .* Python type int$"),  # type: ignore[list-item]
    "nul": (
        lambda it: it.translate(["w\0"]),
        "^texts:1: holds the character NUL at character 2",
    ),
    "lines": (
        lambda it: it.translate(["w1\nw2"]),
        "^texts:1: holds a line feed at character 3",
    ),
    "too long": (
        lambda it: it.translate(["é" * 600_000]),
        "1,200,000 bytes, and 1,048,576 is",
    ),
    "surrogate": (
        lambda it: it.translate(["w\ud800"]),
        "half a surrogate pair at character 2",
    ),
    "a typo": (
        lambda it: it.translate(["w1"], baem=3),
        "^translate: unknown key 'baem'; did you mean 'beam'",
    ),
    "beam": (
        lambda it: it.translate(["w1"], beam=0),
        "^translate: beam: expected at least 1",
    ),
    "n_best": (
        lambda it: it.translate(["w1"], n_best=0),
        "^translate: n_best: .* at least 1",
    ),
    "more": (
        lambda it: it.translate(["w1"], beam=2, n_best=3),
        "a beam of 2 finds no more than 2",
    ),
    "tuned": (
        lambda it: it.translate(["w1"], length_penalty={"tuned_on": "valid"}),
        "length_penalty: expected a number",
    ),
    "pairs": (
        lambda it: it.score("w1"),  # type: ignore[arg-type]
        r"^pairs: expected a list of pairs \(source, target\)$",
    ),
    "no pair": (
        lambda it: it.score([("w1", "w2"), ("w1",)]),  # type: ignore[list-item]
        "^pairs:2: expected a pair",
    ),
    "target": (
        lambda it: it.score([("w1", "w\0")]),
        "^pairs:1: holds the character NUL",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input_is_one_line(translator: Translator, name: str) -> None:
    call, message = BAD_CALLS[name]
    with pytest.raises(convs2s.UserError, match=message):
        call(translator)


def test_what_is_no_model(model: Path, tmp_path: Path) -> None:
    with pytest.raises(
        convs2s.UserError, match="is a folder: name the model file in it"
    ):
        Translator.load(tmp_path)
    with pytest.raises(convs2s.UserError, match="no such file"):
        Translator.load(tmp_path / "none")
    with pytest.raises(
        convs2s.UserError, match="expected a model file, found an empty list"
    ):
        Translator.load([])
    with pytest.raises(
        convs2s.UserError, match="expected 'auto', 'cpu' or 'cuda', not 'gpu'"
    ):
        Translator.load(model, device="gpu")  # type: ignore[arg-type]
    with pytest.raises(
        convs2s.UserError, match="pretokenized: expected a valid boolean, not 'no'"
    ):
        Translator.load(model, pretokenized="no")  # type: ignore[arg-type]
    with pytest.raises(convs2s.UserError, match="threads: expected at least 1, not 0"):
        Translator.load(model, threads=0)


def test_every_setting_of_a_search_can_be_given(translator: Translator) -> None:
    stated = DecodingSettings().model_dump(exclude=OF_A_MODEL)
    assert translator.translate(TEXTS, **stated) == translator.translate(TEXTS)


@pytest.mark.parametrize("name", sorted(OF_A_MODEL))
def test_a_setting_of_the_model_is_no_setting_of_a_call(
    translator: Translator, name: str
) -> None:
    setting = {name: getattr(DecodingSettings(), name)}
    with pytest.raises(
        convs2s.UserError, match=f"^translate: {name}: .* give it to load"
    ):
        translator.translate(TEXTS, **setting)


def test_the_package_reads_nothing_before_it_is_asked_for() -> None:
    program = "import sys; old = set(sys.modules); import convs2s; print(*(set(sys.modules) - old))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "convs2s" in loaded, done.stderr
    assert loaded <= {"convs2s", "importlib", "warnings"}


def test_the_package_shows_what_its_types_say(root: Path) -> None:
    stub = ast.parse((root / "src/convs2s/__init__.pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    stated = {alias.name: node.module for node in imports for alias in node.names}
    assert len(stated) > 3
    for name, module in stated.items():
        assert getattr(convs2s, name) is getattr(sys.modules[str(module)], name)
    assert set(stated) <= set(dir(convs2s))
    with pytest.raises(AttributeError, match="no attribute 'translator'"):
        convs2s.translator  # type: ignore[attr-defined]  # noqa: B018


def test_a_pairs_score_is_plain_data(translator: Translator) -> None:
    (score,) = translator.score([("w1", "w1x")])
    assert asdict(score) == {"log_probability": score.log_probability, "tokens": 2}


def test_what_the_page_says_runs(
    root: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.safetensors").write_bytes(model.read_bytes())
    monkeypatch.chdir(tmp_path)
    page = (root / "docs/python.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert isinstance(names["right"], convs2s.PairScore)
