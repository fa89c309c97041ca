"""Tuning the length penalty: what one list holds, the curve, and what a decoding makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.config.load import load
from convs2s.config.messages import validated
from convs2s.decoding.rescoring import list_n_best
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.paper.curves import plot_length_penalty
from convs2s.scoring.n_best import ListedHypothesis, read_n_best
from convs2s.scoring.reranking import (
    ALPHAS,
    best_point,
    by_length_penalty,
    curve,
    tune_length_penalty,
)
from convs2s.scoring.tuned_settings import tuned_decoding
from tests.unit.decoding.test_long_files import sentences

SETTINGS: dict[str, Any] = {
    "beam": 4,
    "maximum_length": {"factor": 1.0, "offset": 4},
    "finished": "replace",
}


@pytest.mark.parametrize("finished", ["replace", "leave"])
def test_one_list_holds_what_a_search_with_any_value_answers(
    sharp: Path, tmp_path: Path, finished: str
) -> None:
    stated = SETTINGS | {"finished": finished}
    lines = sentences(30, longest=12)
    write_lines(tmp_path / "source", lines)
    list_n_best(
        LineTranslator([sharp], DecodingSettings.model_validate(stated), "cpu"),
        source=tmp_path / "source",
        output=tmp_path / "list",
    )
    groups = list(read_n_best(read_lines(tmp_path / "list"), "list"))
    answers = set()
    for alpha in (0.0, 0.5, 1.0, 2.0):
        settings = DecodingSettings.model_validate(stated | {"length_penalty": alpha})
        translator = LineTranslator([sharp], settings, "cpu")
        expected = [" ".join(one.words) for one in translator.translate(lines)]
        assert [
            max(group, key=by_length_penalty(alpha)).text for group in groups
        ] == expected
        answers.add(tuple(expected))
    assert len(answers) > 1  # the value matters here
    assert all(max(group, key=lambda one: one.score) == group[0] for group in groups)


# Longer hypotheses are better the first two times, and less probable: from 1.1 on they are chosen.
GROUPS = [
    [
        ListedHypothesis(0, "a b c", "LogLikelihood= -4 Length= 4", -1.0),
        ListedHypothesis(0, "a b c d e f g", "LogLikelihood= -8.3 Length= 8", -1.0375),
    ],
    [
        ListedHypothesis(1, "h i j", "LogLikelihood= -4 Length= 4", -1.0),
        ListedHypothesis(1, "h i j k l m n", "LogLikelihood= -8.3 Length= 8", -1.0375),
    ],
]
REFERENCES = ["a b c d e f g", "h i j k l m n"]


def test_the_nearest_to_1_of_the_best_values_is_chosen() -> None:
    points = curve(GROUPS, REFERENCES, REFERENCES, str)
    assert [point.length_penalty for point in points] == list(ALPHAS)
    scores = [point.tokenized.score for point in points]
    assert scores[10] < 100 == pytest.approx(scores[11]) == pytest.approx(scores[20])
    assert points[10].length_ratio < 1 == points[11].length_ratio
    assert best_point(points).length_penalty == 1.1
    shorter = [" ".join(reference.split()[:3]) for reference in REFERENCES]
    assert best_point(curve(GROUPS, shorter, shorter, str)).length_penalty == 1.0


def test_the_tuned_value_is_what_a_decoding_uses(tmp_path: Path) -> None:
    write_lines(tmp_path / "list", (one.line() for group in GROUPS for one in group))
    write_lines(tmp_path / "reference", REFERENCES)
    table, tuning = tmp_path / "curve.tsv", tmp_path / "tuned.json"
    tune_length_penalty(
        n_best=tmp_path / "list",
        raw=tmp_path / "reference",
        tokenized=tmp_path / "reference",
        tsv=table,
        json=tuning,
        restore=str,
        header={"test_set": "valid"},
        manifest={"revision": "abc"},
    )
    rows = list(read_lines(table))
    assert rows[0] == "length_penalty\ttokenized_bleu\tdetokenized_bleu\tlength_ratio"
    assert [float(row.split("\t")[0]) for row in rows[1:]] == list(ALPHAS)
    result = json.loads(tuning.read_text("utf-8"))
    assert (result["length_penalty"], result["lines"]) == (1.1, 2)
    assert "nrefs:1" in result["tokenized_bleu"]["signature"]
    decoding = {"beam": 4, "length_penalty": {"tuned_on": "valid"}}
    assert tuned_decoding(decoding, [str(tuning)]) == DecodingSettings(
        beam=4, length_penalty=1.1
    )
    assert tuned_decoding(decoding, []).length_penalty == 1.0
    stated = {"beam": 4, "length_penalty": 0.6}
    assert tuned_decoding(stated, []) == DecodingSettings(beam=4, length_penalty=0.6)
    outputs = [tmp_path / "curve.svg", tmp_path / "curve.png"]
    plot_length_penalty(
        table=table, tuning=tuning, heading="tiny · test · beam5", outputs=outputs
    )
    assert "chosen: 100.00 at 1.1" in outputs[0].read_text("utf-8")
    assert "BLEU on valid, 2 lines" in outputs[0].read_text("utf-8")
    assert outputs[1].read_bytes().startswith(b"\x89PNG")


def test_a_list_of_another_system_is_refused() -> None:
    with pytest.raises(UserError, match="expected a feature 'LogLikelihood= NUMBER'"):
        curve([[ListedHypothesis(0, "a", "LM= -1", 0.0)]], ["a"], ["a"], str)


# ---- configuration ----


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("high", "length_penalty: .*, not 'high'"),
        (-1, "length_penalty: expected at least 0, not -1"),
        ({}, "length_penalty: key 'tuned_on' is missing"),
        ({"tuned_on": "valid", "step": 1}, "length_penalty: unknown key 'step'"),
    ],
)
def test_a_length_penalty_that_is_none(value: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"here: {message}"):
        validated(DecodingSettings, {"length_penalty": value}, "here")


def test_the_set_to_tune_on_is_one_of_the_task(copy: Path) -> None:
    decodings = copy / "config/decodings.yaml"
    text = decodings.read_text("utf-8").replace(
        "tuned_on: newstest2015", "tuned_on: newstest2051"
    )
    decodings.write_text(text, "utf-8")
    message = (
        r"wmt14_en_de.yaml: headline.decoding: length_penalty.tuned_on of 'beam5_en_de': unknown "
        r"set 'newstest2051'; did you mean 'newstest2015'\?"
    )
    with pytest.raises(UserError, match=message):
        load(copy)
