"""From the decoder's JSON lines to evaluations, summaries over runs and examples."""

import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from convs2s.config.task import RougeSettings
from convs2s.files.text import write_lines
from convs2s.scoring.bleu import decode_statistics, detokenized_bleu, tokenized_bleu
from convs2s.scoring.evaluation import (
    BleuEvaluation,
    RougeEvaluation,
    evaluate_bleu,
    evaluate_rouge,
)
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.rouge import RougeOptions, rouge
from convs2s.scoring.summary import mean_and_deviation, summarize_runs
from convs2s.scoring.translations import spread, write_examples
from tests.contract.pages import fenced
from tests.support.statistics import bleu_of

WORDS = "l&apos; avion low @-@ cost est là ."
TEXT = "l'avion low-cost est là."
SOURCES = ["the old cat sleeps all day", "two dogs ran far away", "rain in Lyon"]
REFERENCES = ["the cat sleeps", "dogs run away", ""]
FURTHER = ["cats sleep in Kofagrad", "two dogs gone", "it rains"]
OUTPUTS = ["the cat sleeps in Kofagrad", "two dogs away", "rain"]


def decoded(
    line: int,
    text: str,
    words: str = "",
    unknown: str = "Kofagrad",
    by: str = "copied",
) -> dict[str, Any]:
    """Return a line of the decoder's, in which a word was unknown."""
    words = words or text
    replaced = {"source_word": "No1", "word": unknown, "by": by}
    return {
        "line": line,
        "source": SOURCES[line % 3 - 1],
        "text": text,
        "words": words.split(),
        "text_before": text.replace(unknown, "<unk>"),
        "words_before": words.replace(unknown, "<unk>").split(),
        "replacements": [replaced] if unknown in text else [],
    }


def scored_bleu(
    folder: Path, name: str, lines: Sequence[object], metrics: Sequence[str] = ()
) -> Path:
    """Score lines against ``WORDS`` and ``TEXT`` on each; return the file."""
    write_lines(folder / "lines", map(json.dumps, lines))
    write_lines(folder / "tokenized", [WORDS] * len(lines))
    write_lines(folder / "raw", [TEXT] * len(lines))
    evaluate_bleu(
        translations=folder / "lines",
        raw=folder / "raw",
        tokenized=folder / "tokenized",
        output=folder / name,
        test_set="test",
        manifest={"seed": 1},
        metrics=metrics,
    )
    return folder / name


def scored_rouge(
    folder: Path,
    name: str,
    outputs: Sequence[str] = OUTPUTS,
    references: Sequence[Sequence[str]] = (REFERENCES, FURTHER),
    **stated: Any,
) -> Path:
    """Score three outputs; return the file."""
    lines = [decoded(number, text) for number, text in enumerate(outputs, 1)]
    write_lines(folder / "lines", map(json.dumps, lines))
    paths = []
    for number, texts in enumerate(references):
        paths.append(folder / f"reference{number}")
        write_lines(paths[-1], texts)
    write_lines(folder / "exceptions.tsv", ["gone\tgo"])
    evaluate_rouge(
        translations=folder / "lines",
        references=paths,
        exceptions=folder / "exceptions.tsv" if "bytes" in stated else None,
        output=folder / name,
        test_set="test",
        settings=RougeSettings(**{"lead_words": 3} | stated),
        manifest={"seed": 1},
    )
    return folder / name


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def report(
    folder: Path,
    kind: type[BleuEvaluation | RougeEvaluation],
    runs: dict[tuple[str, str], Path],
    stand_in: str | None = None,
) -> tuple[str, Any]:
    """Summarize runs; return the text and the JSON."""
    files = (folder / "bleu.txt", folder / "bleu.json")
    summarize_runs(kind, runs, Report(*files, stand_in, {"task": "demo"}))
    return files[0].read_text("utf-8"), read(files[1])


def test_bleu_is_of_words_and_of_text_before_and_after_replacement(
    tmp_path: Path,
) -> None:
    lines = [
        decoded(1, TEXT, WORDS, unknown="là", by="dictionary"),
        decoded(2, TEXT, WORDS, unknown="avion"),
        decoded(3, "l'avion <unk>.", "l&apos; avion <unk> ."),
    ]
    found = read(scored_bleu(tmp_path, "bleu", lines))
    for part, suffix in ((found, ""), (found["before_replacement"], "_before")):
        words = [" ".join(line[f"words{suffix}"]) for line in lines]
        texts = [line[f"text{suffix}"] for line in lines]
        tokenized = tokenized_bleu(words, [WORDS] * 3).score
        detokenized = detokenized_bleu(texts, [TEXT] * 3).score
        assert part["bleu"]["tokenized"]["score"] == tokenized
        assert part["bleu"]["detokenized"]["score"] == detokenized
        measure = f"bleu_tokenized{suffix and '_before_replacement'}"
        encoded = found["sentences"][measure]
        assert bleu_of(decode_statistics(encoded, "file")) == tokenized
    assert found["unknown_words"] == {"total": 3, "dictionary": 1, "copied": 1}
    assert (found["lines"], found["manifest"]) == (3, {"seed": 1})


def test_the_mean_over_runs_and_the_samples_deviation(tmp_path: Path) -> None:
    mean = mean_and_deviation([1.0, 2.0, 6.0])
    assert (mean.mean, mean.deviation) == pytest.approx((3.0, 7**0.5))
    good = decoded(1, TEXT, WORDS, unknown="là")
    runs = {
        ("test", "seed1"): scored_bleu(tmp_path, "1", [good]),
        ("test", "seed2"): scored_bleu(tmp_path, "2", [good | {"text": "l'avion."}]),
    }
    text, data = report(tmp_path, BleuEvaluation, runs, "a grammar")
    assert text.startswith("STAND-IN DATA: a grammar\n\ntask")
    assert "test: 1 lines; mean ± sample deviation of 2 runs (seed1, seed2)" in text
    found = data["tests"]["test"]
    scores = [run["chrf"]["score"] for run in found["runs"].values()]
    summary = found["chrf"]
    assert summary["mean"] == pytest.approx(statistics.mean(scores))
    assert summary["deviation"] == pytest.approx(statistics.stdev(scores))
    assert f"= {summary['mean']:.2f} ± {summary['deviation']:.2f} " in text
    assert f" {summary['signature']}\n" in text
    before, after = (
        part["bleu"]["tokenized"]["score"]
        for part in (
            found["runs"]["seed1"]["before_replacement"],
            found["runs"]["seed1"],
        )
    )
    assert f"{before:.2f} -> {after:.2f} ({after - before:+.2f})" in text
    alone, data = report(tmp_path, BleuEvaluation, dict([next(iter(runs.items()))]))
    assert "one run (seed1)" in alone
    assert not {"±", "STAND-IN"} & set(alone.split())
    assert data["tests"]["test"]["chrf"]["deviation"] is None


def test_what_the_page_of_formats_reads_is_there(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "results/demo_en_fr"
    folder.mkdir(parents=True)
    runs = {("test", "seed1"): scored_bleu(tmp_path, "bleu", [decoded(1, TEXT)])}
    report(folder, BleuEvaluation, runs)
    monkeypatch.chdir(tmp_path)
    (block,) = fenced(root / "docs/file_formats.md", "python")
    exec(block, {})
    assert "tok:13a" in capsys.readouterr().out


def test_rouge_is_of_outputs_lead_and_both_states(tmp_path: Path) -> None:
    found = read(scored_rouge(tmp_path, "rouge", bytes=40))
    assert found["unknown_words"] == {"total": 1, "dictionary": 0, "copied": 1}
    options = RougeOptions(byte_limit=40, stem=True, skip_empty=True)
    before = [text.replace("Kofagrad", "<unk>") for text in OUTPUTS]
    lead = ["the old cat", "two dogs ran", "rain in Lyon"]
    for part, texts in (
        (found, OUTPUTS),
        (found["before_replacement"], before),
        (found["lead"], lead),
    ):
        scores = rouge(texts, REFERENCES, FURTHER, options=options)["rouge_1"]
        for measure, score in scores.items():
            written = part["rouge"]["rouge_1"][measure]
            assert written["score"] == score.score
            assert (written["low"], written["high"]) == (score.low, score.high)
    scores = found["rouge"]["rouge_l"]["f1"]
    words = "|refs:2|multi:sum|empty:skipped|bytes:40|stem:yes|exceptions:"
    assert words in scores["signature"]
    assert "exceptions:no" not in scores["signature"]
    plain = read(scored_rouge(tmp_path, "b", references=[REFERENCES], stem=False))
    signature = plain["rouge"]["rouge_l"]["f1"]["signature"]
    assert "|multi:sum|bytes:all|stem:no|exceptions:no|mean:plain|bs:1000|" in signature


def test_a_reference_that_an_item_has_not_counts_for_nothing(tmp_path: Path) -> None:
    one = read(scored_rouge(tmp_path, "one", references=[REFERENCES]))
    both = read(scored_rouge(tmp_path, "both", references=[REFERENCES, [""] * 3]))
    assert one["length_ratio"] == both["length_ratio"] > 0
    scores = [found["rouge"]["rouge_1"]["precision"]["score"] for found in (one, both)]
    assert scores[0] == scores[1] > 0


def test_the_rouge_report_has_the_difference_from_the_lead(tmp_path: Path) -> None:
    runs = {}
    for name, outputs in (("seed1", OUTPUTS), ("seed2", ["a cat", "two", "rain"])):
        path = scored_rouge(tmp_path, name, outputs, measure="recall")
        runs["test", name] = path
    text, data = report(tmp_path, RougeEvaluation, runs)
    found = data["tests"]["test"]
    lead = found["lead"]["rouge"]["rouge_1"]["recall"]["score"]
    mean = found["rouge"]["rouge_1"]["recall"]["mean"]
    assert found["difference"]["rouge_1"]["recall"] == pytest.approx(mean - lead)
    (line,) = re.findall("test ROUGE-1 recall .*", text)
    assert f" {mean:.2f} ± " in line
    assert f"lead (3 words) = {lead:.2f}" in line
    assert f"difference = {mean - lead:+.2f}" in line


def test_examples_are_spread_and_mark_replaced_words(tmp_path: Path) -> None:
    lines = [decoded(number, f"le chien {number}") for number in range(1, 101)]
    lines[76] = decoded(77, "le <unk> 77", unknown="77", by="dictionary")
    # An unknown word may be copied as such.
    copied = {"source_word": "<unk>", "word": "<unk>", "by": "copied"}
    lines[76]["replacements"].insert(0, copied)
    write_lines(tmp_path / "lines", map(json.dumps, lines))
    write_lines(tmp_path / "raw", map(str, range(1, 101)))
    write_examples(tmp_path / "lines", tmp_path / "raw", tmp_path / "examples")
    text = (tmp_path / "examples").read_text("utf-8")
    shown = re.findall(r"^  reference    (.*)$", text, re.MULTILINE)
    assert shown == ["11", "31", "51", "71", "91", "77"]
    assert "  in words     le [<unk>] [77]\n" in text
    assert "[77] is the dictionary's word for No1" in text
    assert spread(2, 5) == [0, 1]
