"""Files and models with which nothing is translated or scored, and lines that are cut."""

import fcntl
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.rescoring import PairScorer, score_pairs
from convs2s.decoding.streams import ArrivingBytes, ChunkTranslator, arriving
from convs2s.decoding.translate import LineTranslator
from convs2s.decoding.words import cut_overlong, most_tokens
from convs2s.files.text import text_lines, write_lines
from convs2s.model_file import load_model, save_model
from convs2s.models.ensemble import Ensemble
from tests.conftest import Terminal
from tests.faults.limits import without_locks
from tests.support.networks import lstm
from tests.support.refusals import refusal, refuses, rows, says

# ---- files ----

Refuse = Callable[..., str]


@pytest.fixture
def refused(run: Terminal, model: Path, in_folder: None) -> Refuse:
    """What the command says that does not translate ``in`` to ``out``."""
    write_lines(Path("in"), ["w1"] * 50)

    def refuse(*options: object) -> str:
        files = ("--input", "in", "--output", "out")
        with pytest.raises(SystemExit) as ended:
            run("translate", model, *files, "--threads", 1, *options)
        return str(ended.value)

    return refuse


def test_an_output_that_another_process_writes_or_that_cannot_be_locked(
    refused: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("out.part").open("ab") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        says(refused(), "out.part: another process is writing it")
    monkeypatch.setattr(fcntl, "flock", without_locks)
    says(refused(), "out.part: cannot be locked (No locks available)")


def test_an_input_that_changes_meanwhile_is_no_whole_one(
    refused: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(*_: object) -> str:
        with Path("in").open("a") as stream:
            stream.write("w1\n")
        return ""

    monkeypatch.setattr(ChunkTranslator, "__call__", edit)
    says(refused(), "in: was changed while it was translated")
    assert not Path("out").exists()


def test_a_killed_worker_is_an_error_with_advice(
    refused: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(ChunkTranslator, "__call__", die)
    says(refused("--workers", 2), "a worker was killed", "fewer --workers")


# ---- streams ----


def test_of_a_line_without_end_no_more_is_read_than_refuses_it() -> None:
    given = io.BytesIO(b"one\n" + bytes(4 << 20))
    stream = ArrivingBytes(io.BufferedReader(given))
    found = arriving(text_lines(stream.readline, "pipe"), stream.must_wait, 3)
    refuses("pipe:2: a line of more than 1048576 bytes", list, found)
    assert given.tell() < 2 << 20


# ---- models ----


MODELS = """
{languages: {source: en, target: de}} => ensemble ... languages
{target_types: [a]} => its vocabularies ... do not match its weights
{truecasers: {en: [w1]}} => their truecasers differ
{dictionary: {w1: w}} => their dictionary differ
"""


def test_models_that_do_not_fit(model: Path, tmp_path: Path) -> None:
    network, description = load_model(model)
    other = tmp_path / "other"
    for changes, words in rows(MODELS):
        changed = description.model_copy(update=yaml.safe_load(changes))
        save_model(other, network.state_dict(), changed)
        message = refusal(LineTranslator, [model, other], DecodingSettings(), "cpu")
        says(message, "other: ", words)


def test_an_lstm_replaces_no_word_alone_and_leaves_int8_out_anywhere_in_an_ensemble(
    model: Path, recurrent: Path
) -> None:
    replacing = DecodingSettings(replace_unknown=True)
    message = refusal(LineTranslator, [recurrent], replacing, "cpu")
    says(message, str(recurrent), "no attention", "replace_unknown: false")
    LineTranslator([recurrent, model], replacing, "cpu")
    auto = DecodingSettings(precision="auto", replace_unknown=False)
    int8 = DecodingSettings(precision="int8", replace_unknown=False)
    for models in ([recurrent, model], [model, recurrent]):
        assert LineTranslator(models, auto, "cpu").ensemble.precision == "fp32"
        refuses("int8 ... convs2s ... bf16", LineTranslator, models, int8, "cpu")


# ---- long lines ----


def test_an_overlong_line_is_cut_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cut_overlong(["w"] * 15, most_tokens(16), 2, "") == ["w"] * 15
    assert capsys.readouterr().err == ""
    for positions, read in ((16, 15), (None, 4095)):
        text = "w1 " * 5000
        cut = cut_overlong(["w"] * 5000, most_tokens(positions), 2, text)
        assert cut == ["w"] * read
        said = capsys.readouterr().err
        says(said, "line 2 ", "5,000 tokens", f"first {read:,};", text[:60] + "...\n")


def test_an_overlong_line_is_not_scored(model: Path) -> None:
    scorer = PairScorer.load([model], "cpu", "tokens")
    longest = ("w1 " * 15, "w1x " * 15)
    assert len(list(score_pairs(scorer, [longest]))) == 1
    for side, pair in (
        ("source", ("w1 " * 16, "w1x")),
        ("target", ("w1", "w1x " * 16)),
    ):
        scored = score_pairs(scorer, [longest, pair], "source.txt", "target.txt")
        message = refusal(list, scored)
        says(message, f"{side}.txt:2: the {side} has 16 tokens", "most 15")


# ---- scores ----


def test_targets_that_are_split_in_a_way_of_their_own_are_refused(model: Path) -> None:
    _, description = load_model(model)
    ensemble = Ensemble([lstm()])
    for changes, words in (
        ({"splittable": ["w1"]}, "frequency threshold (vocabulary.threshold)"),
        ({"target_types": ["other", "types"]}, "2 of its target's"),
    ):
        stated = {"bpe_codes": "#version: 0.2\nw 1\n", **changes}
        known = description.model_copy(update=stated)
        for form in ("raw", "words"):
            message = refusal(PairScorer, ensemble, known, "cpu", form)
            says(message, "tiny: ", "--pretokenized", words)
        assert PairScorer(ensemble, known, "cpu", "tokens").form == "tokens"
