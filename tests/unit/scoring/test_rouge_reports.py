"""From the decoder's JSON lines to ROUGE, its report, and the baseline beside it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.task import RougeSettings
from convs2s.errors import UserError
from convs2s.files.text import read_json, write_lines
from convs2s.scoring.evaluation import RougeEvaluation, evaluate_rouge
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.rouge import RougeOptions, rouge
from convs2s.scoring.summary import summarize_runs

HEADER = {"task": "titles", "model": "demo", "decoding": "beam5", "scale": "demo"}
SOURCES = [
    "the old cat sleeps all day in the sun",
    "two dogs ran far away",
    "rain in Lyon",
]
REFERENCES = ["the cat sleeps", "dogs run away", ""]
FURTHER = ["cats sleep in Kofagrad", "two dogs gone", "it rains"]
OUTPUTS = ["the cat sleeps in Kofagrad", "two dogs away", "rain"]


def decoded(line: int, text: str, source: str) -> dict[str, Any]:
    """Return a line of the decoder's, in which Kofagrad was copied and Lyon never written."""
    before = text.replace("Kofagrad", "<unk>")
    item = {
        "position": 0,
        "source_position": 0,
        "source_word": "Kofagrad",
        "word": "Kofagrad",
    }
    return {
        "line": line,
        "source": source,
        "text": text,
        "words": text.split(),
        "text_before": before,
        "words_before": before.split(),
        "replacements": [{**item, "by": "copied"}] if before != text else [],
    }


def evaluate(
    folder: Path,
    name: str,
    outputs: Sequence[str] = OUTPUTS,
    settings: RougeSettings | None = None,
    references: Sequence[Sequence[str]] = (REFERENCES, FURTHER),
    exceptions: Path | None = None,
) -> Path:
    """Score outputs for ``SOURCES``; return the file of their scores."""
    translations, scores = folder / f"{name}.jsonl", folder / f"{name}.rouge.json"
    lines = (
        decoded(i, *pair)
        for i, pair in enumerate(zip(outputs, SOURCES, strict=True), 1)
    )
    write_lines(translations, map(json.dumps, lines))
    paths = [folder / f"{name}.reference{number}" for number in range(len(references))]
    for path, texts in zip(paths, references, strict=True):
        write_lines(path, texts)
    evaluate_rouge(
        translations=translations,
        references=paths,
        exceptions=exceptions,
        output=scores,
        test_set="test",
        settings=settings or RougeSettings(lead_words=3),
        manifest={"seed": 1},
    )
    return scores


def read(path: Path) -> dict[str, Any]:
    found = read_json(path)
    assert isinstance(found, dict)
    return found


def test_an_evaluation_holds_scores_baseline_and_both_states(tmp_path: Path) -> None:
    found = read(evaluate(tmp_path, "seed1"))
    assert (found["test_set"], found["lines"], found["references"]) == ("test", 3, 2)
    assert (found["measure"], found["manifest"]) == ("f1", {"seed": 1})
    assert found["unknown_words"] == {"total": 1, "dictionary": 0, "copied": 1}
    options = RougeOptions(stem=True, skip_empty=True)
    before = [text.replace("Kofagrad", "<unk>") for text in OUTPUTS]
    lead = ["the old cat", "two dogs ran", "rain in Lyon"]
    for part, texts in (
        (found, OUTPUTS),
        (found["before_replacement"], before),
        (found["lead"], lead),
    ):
        expected = rouge(texts, REFERENCES, FURTHER, options=options)["rouge_1"]["f1"]
        assert part["rouge"]["rouge_1"]["f1"] == {
            "score": expected.score,
            "signature": expected.signature,
            "low": expected.low,
            "high": expected.high,
        }
    assert found["lead"]["words"] == 3
    assert set(found["rouge"]) == {"rouge_1", "rouge_2", "rouge_l"}
    assert set(found["rouge"]["rouge_l"]) == {"recall", "precision", "f1"}


def test_a_reference_that_an_item_has_not_counts_for_nothing(tmp_path: Path) -> None:
    one = read(evaluate(tmp_path, "one", references=[REFERENCES]))
    both = read(
        evaluate(tmp_path, "both", references=[REFERENCES, [""] * len(REFERENCES)])
    )
    for part in ("recall", "precision", "f1"):
        scores = [found["rouge"]["rouge_1"][part]["score"] for found in (one, both)]
        assert scores[0] == scores[1] > 0
        signatures = [
            found["rouge"]["rouge_1"][part]["signature"] for found in (one, both)
        ]
        assert ["|empty:skipped|" in signature for signature in signatures] == [
            False,
            True,
        ]
    assert one["length_ratio"] == both["length_ratio"] > 0


def test_settings_and_exceptions_reach_the_scores(tmp_path: Path) -> None:
    write_lines(tmp_path / "exceptions.tsv", ["gone\tgo"])
    settings = RougeSettings(bytes=10, stem=True, measure="recall")
    path = evaluate(
        tmp_path, "a", settings=settings, exceptions=tmp_path / "exceptions.tsv"
    )
    signature = read(path)["rouge"]["rouge_1"]["recall"]["signature"]
    assert "|refs:2|multi:sum|empty:skipped|bytes:10|stem:yes|exceptions:" in signature
    assert "exceptions:no" not in signature
    unstemmed = evaluate(
        tmp_path,
        "b",
        settings=RougeSettings(stem=False),
        exceptions=tmp_path / "exceptions.tsv",
    )
    assert (
        "stem:no|exceptions:no"
        in read(unstemmed)["rouge"]["rouge_1"]["f1"]["signature"]
    )


@pytest.mark.parametrize("outputs", [["", "", ""], ["é", "-", "日本"]])
def test_empty_outputs_score_nothing(tmp_path: Path, outputs: list[str]) -> None:
    found = read(evaluate(tmp_path, "seed1", outputs, references=[REFERENCES]))
    assert found["rouge"]["rouge_1"]["f1"]["score"] == 0
    empty = read(evaluate(tmp_path, "empty", outputs, references=[["", "", ""]]))
    assert empty["rouge"]["rouge_l"]["recall"]["high"] == 0


def test_line_counts_must_agree(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"seed1\.jsonl: 3 lines, but .*reference1 has 2"
    ):
        evaluate(tmp_path, "seed1", references=[REFERENCES, FURTHER[:2]])
    assert not (tmp_path / "seed1.rouge.json").exists()


def report(
    folder: Path, evaluations: dict[tuple[str, str], Path]
) -> tuple[str, dict[str, Any]]:
    text, data = folder / "rouge.txt", folder / "rouge.json"
    summarize_runs(
        RougeEvaluation, evaluations, Report(text, data, "made-up titles", HEADER)
    )
    return text.read_text("utf-8"), read(data)


def test_the_report_has_runs_and_baseline_side_by_side(tmp_path: Path) -> None:
    worse = ["a cat", "two dogs", "rain"]
    settings = RougeSettings(lead_words=3, measure="recall", bytes=75)
    paths = {
        ("test", "seed1"): evaluate(tmp_path, "seed1", settings=settings),
        ("test", "seed2"): evaluate(tmp_path, "seed2", worse, settings=settings),
        ("other", "seed1"): evaluate(tmp_path, "other"),
    }
    text, data = report(tmp_path, paths)
    lines = text.splitlines()
    assert lines[0] == "STAND-IN DATA: made-up titles"
    assert "scale     demo" in lines
    heading = "test: 3 lines, 2 references each; mean ± sample deviation of 2 runs (seed1, seed2)"
    assert heading in lines
    assert "other: 3 lines, 2 references each; one run (seed1)" in lines
    found = data["tests"]["test"]
    baseline = found["lead"]["rouge"]["rouge_1"]["recall"]["score"]
    score = found["rouge"]["rouge_1"]["recall"]
    (line,) = (one for one in lines if one.startswith("test ROUGE-1 recall"))
    shown = f"= {score['mean']:.2f} ± {score['deviation']:.2f}"
    assert shown in line
    assert f"lead (3 words) = {baseline:.2f}" in line
    assert f"difference = {score['mean'] - baseline:+.2f}" in line
    assert "ROUGE-1.5.5-equal|refs:2|multi:sum|empty:skipped|bytes:75|stem:yes|" in line
    assert found["difference"]["rouge_1"]["recall"] == pytest.approx(
        score["mean"] - baseline
    )
    assert [one for one in lines if one.startswith("other ROUGE-L F1")]
    seed1 = read(paths["test", "seed1"])["rouge"]["rouge_1"]["recall"]
    interval = f"{seed1['score']:.2f} ({seed1['low']:.2f} to {seed1['high']:.2f})"
    assert [one for one in lines if one.startswith("seed1") and interval in one]
    assert list(found["runs"]) == ["seed1", "seed2"]
    (gained,) = (one for one in lines if one.startswith("mean "))
    assert gained.split()[1:4] == ["0.5", "0.0", "0.5"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (RougeSettings(lead_words=3, bytes=75), r"b\.rouge\.json: ROUGE: .*bytes:75"),
        (
            RougeSettings(lead_words=4),
            r"b\.rouge\.json: words of the lead baseline: 4, but 3",
        ),
        (
            RougeSettings(lead_words=3, measure="recall"),
            r"b\.rouge\.json: measure: recall, but f1",
        ),
    ],
)
def test_runs_that_were_scored_differently_have_no_mean(
    tmp_path: Path, settings: RougeSettings, message: str
) -> None:
    paths = {
        ("test", "seed1"): evaluate(tmp_path, "a"),
        ("test", "seed2"): evaluate(tmp_path, "b", settings=settings),
    }
    with pytest.raises(UserError, match=message):
        report(tmp_path, paths)
    assert not (tmp_path / "rouge.txt").exists()


def test_what_is_no_evaluation_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "seed1.rouge.json"
    complete = json.loads(evaluate(tmp_path, "a").read_text())
    wanting = json.dumps({**complete, "before_replacement": {}})
    cases = {
        '{"test_set": 1}': "test_set",
        "[]": "an object",
        wanting: "before_replacement",
    }
    for content, place in cases.items():
        path.write_text(content)
        message = (
            rf"seed1\.rouge\.json: not an evaluation of this version; .*: .*{place}"
        )
        with pytest.raises(UserError, match=message):
            report(tmp_path, {("test", "seed1"): path})
