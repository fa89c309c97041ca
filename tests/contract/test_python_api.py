"""``convs2s.Translator``: what a notebook does with a model, beside what the command says."""

import copy
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import convs2s
from convs2s.api.translator import Translator
from tests.conftest import Terminal
from tests.contract.pages import fenced

TEXTS = ["w1 w2 w3", "", "w4 unheard w5 w6 w7", "w8"]


@pytest.fixture(scope="module")
def translator(sharp: Path) -> Translator:
    return Translator.load(sharp, device="cpu")


def test_it_translates_as_the_command_does(
    translator: Translator, sharp: Path, run: Terminal
) -> None:
    asked = "--json --n-best 3 --beam 4 --minimum-length 2 --device cpu"
    text = "\n".join([*TEXTS, ""]).encode()
    told = run("translate", sharp, *asked.split(), text=text).splitlines()
    found = translator.translate(TEXTS, beam=4, n_best=3, minimum_length=2)
    assert [one.as_json() for one in found] == list(map(json.loads, told))
    assert [len(one.n_best) for one in found] == [3, 1, 3, 3]
    assert found[1].text == ""
    # Each call has its own search.
    line = ["w1 w2 w3 w4"]
    (five,) = translator.translate(line, beam=5)
    assert translator.translate(line, beam=1)[0].score < five.score
    assert translator.translate(line) == [five]


def test_attention_is_that_of_the_search(translator: Translator) -> None:
    plain = translator.translate(TEXTS, n_best=2)
    found = translator.translate(TEXTS, n_best=2, attention=True)
    # It is large, and an array: two translations are the same without it.
    assert found == plain
    for best in found:
        for one in [best, *best.n_best]:
            assert "attention" not in one.as_json()
            shown = one.attention
            assert shown is not None
            assert shown.source == [*one.source_tokens, "</s>"]
            assert shown.target == [*one.tokens, "</s>"]
            assert shown.weights.shape[:2] == (2, len(shown.target))
            assert abs(shown.weights.sum(2) - 1).max() < 1e-5
            words = shown.weights.mean(0)[:-1, :-1]
            assert [int(row.argmax()) for row in words] == one.alignment


def test_a_translations_score_is_that_of_its_pair(
    translator: Translator, model: Path, sharp: Path
) -> None:
    several: list[str | Path] = [model, str(sharp)]
    both = Translator.load(several, device="cpu", ensemble="log_probabilities")
    assert repr(both) == "<Translator tiny en-fr, 2 x, cpu>"
    (other,) = Translator.load(several, device="cpu").translate(["w1"], attention=True)
    assert other.attention is not None
    assert len(other.attention.weights) == 2 * 2
    assert other.score != both.translate(["w1"])[0].score
    of_tokens = Translator.load(sharp, device="cpu", pretokenized=True)
    for used in (translator, of_tokens, both):
        (one,) = used.translate(["w1 w2 w3"])
        (score,) = used.score([("w1 w2 w3", " ".join(one.words))])
        assert score.normalized(1.0) == pytest.approx(one.score, abs=1e-5)
        assert score.tokens == len(one.tokens) + 1
    assert of_tokens.translate(["w1 <unk>"])[0].source_tokens == ["w1", "<unk>"]
    assert translator.score([]) == []


def test_a_pickle_is_opened_with_the_same_files_and_settings(
    model: Path, sharp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a copy is the translator itself."""
    monkeypatch.chdir(model.parent)
    both = [model.name, str(sharp)]
    pairs = [("w1", "w2 w3")]
    for first in (
        Translator.load(
            sharp, device="cpu", pretokenized=True, threads=1, precision="int8"
        ),
        Translator.load(both, device="cpu", ensemble="log_probabilities"),
    ):
        first.score(pairs)
        monkeypatch.chdir(tmp_path)
        pickled = pickle.dumps(first)
        assert len(pickled) < 2000
        again = pickle.loads(pickled)
        assert repr(again) == repr(first)
        assert again.translate(TEXTS) == first.translate(TEXTS)
        assert again.score(pairs) == first.score(pairs)
        assert pickle.dumps(again) == pickled
        assert copy.deepcopy([first])[0] is copy.copy(first) is first


def test_another_process_opens_the_model(translator: Translator) -> None:
    """And the package loads nothing before it is asked for something."""
    program = """
import sys
before = set(sys.modules)
import convs2s
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
assert loaded <= {"convs2s", "importlib", "warnings"}, loaded
import pickle
translate = pickle.load(sys.stdin.buffer)
print(translate(["w1 w2"])[0].text)
"""
    pickled = pickle.dumps(translator.translate)
    said = subprocess.check_output([sys.executable, "-c", program], input=pickled)
    (here,) = translator.translate(["w1 w2"])
    assert said.decode() == f"{here.text}\n"


def test_the_package_shows_what_its_types_say(root: Path) -> None:
    stub = (root / "src/convs2s/__init__.pyi").read_text("utf-8")
    stated = re.findall(r"^from (\S+) import (\w+) as \2$", stub, re.MULTILINE)
    assert len(stated) > 3
    for module, name in stated:
        assert getattr(convs2s, name) is getattr(sys.modules[module], name)
        assert name in dir(convs2s)
    with pytest.raises(AttributeError, match="no attribute 'translator'"):
        convs2s.translator  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.usefixtures("in_folder")
def test_what_the_page_says_runs(root: Path, model: Path) -> None:
    Path("model.safetensors").write_bytes(model.read_bytes())
    blocks = fenced(root / "docs/python.md", "python")
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert isinstance(names["right"], convs2s.PairScore)
