"""From the decoder's JSON lines to evaluations, summaries, examples and comparisons."""

import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from convs2s.files.text import write_lines
from convs2s.scoring.bleu import compare, corpus_bleu, decode_statistics, statistics_of
from convs2s.scoring.comparison import compare_models, compare_outputs
from convs2s.scoring.evaluation import BleuEvaluation, RougeEvaluation
from convs2s.scoring.reports.layout import Report, render_text
from convs2s.scoring.rouge import RougeOptions, rouge
from convs2s.scoring.translations import spread, write_examples
from tests.contract.pages import fenced
from tests.contract.score_files import (
    FURTHER,
    OUTPUTS,
    REFERENCES,
    TEXT,
    WORDS,
    decoded,
    read,
    report,
    scored_bleu,
    scored_rouge,
)
from tests.support.refusals import rows, says


def test_bleu_is_of_words_and_of_text_before_and_after_replacement(
    tmp_path: Path,
) -> None:
    lines = [
        decoded(1, TEXT, WORDS, unknown="là", by="dictionary"),
        decoded(2, TEXT, WORDS, unknown="avion"),
        decoded(3, "l'avion <unk>.", "l&apos; avion <unk> ."),
    ]
    found = read(scored_bleu(tmp_path, "bleu", lines))
    for suffix, part in (("", found), ("_before", found["before_replacement"])):
        words = [" ".join(line[f"words{suffix}"]) for line in lines]
        texts = [line[f"text{suffix}"] for line in lines]
        tokenized = corpus_bleu(words, [WORDS] * 3).score
        detokenized = corpus_bleu(texts, [TEXT] * 3, form="13a").score
        assert part["bleu"]["tokenized"]["score"] == tokenized
        assert part["bleu"]["detokenized"]["score"] == detokenized
        measure = "bleu_tokenized" + suffix.replace("before", "before_replacement")
        kept = decode_statistics(found["sentences"][measure], "file")
        assert np.array_equal(kept, statistics_of(words, [WORDS] * 3))
    assert found["unknown_words"] == {"total": 3, "dictionary": 1, "copied": 1}
    assert (found["lines"], found["manifest"]) == (3, {"seed": 1})


def test_text_of_other_scripts_is_split_as_the_task_says_or_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "她每天早上六点去河边跑步。"
    lines = [decoded(1, text.replace("六", "七"))]
    for tokenize in ("13a", "zh"):
        path = scored_bleu(tmp_path, "bleu", lines, text, tokenize=tokenize)
        assert f"|tok:{tokenize}|" in read(path)["bleu"]["detokenized"]["signature"]
        warned = capsys.readouterr().err
        assert ("warning: BLEU sees 1 words" in warned) == (tokenize == "13a")
    scored_rouge(tmp_path, "rouge", references=[[text] * 3])
    assert capsys.readouterr().err.startswith("warning: ROUGE counts words of a to z")


def test_the_mean_over_runs_and_the_samples_deviation(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = decoded(1, TEXT, WORDS, unknown="là")
    runs = {
        ("test", "seed1"): scored_bleu(tmp_path, "1", [good]),
        ("test", "seed2"): scored_bleu(tmp_path, "2", [good | {"text": "l'avion."}]),
    }
    text, data = report(tmp_path, BleuEvaluation, runs, "a grammar")
    found = data["tests"]["test"]
    scores = [run["chrf"]["score"] for run in found["runs"].values()]
    chrf = found["chrf"]
    assert chrf["mean"] == pytest.approx(statistics.mean(scores))
    assert chrf["deviation"] == pytest.approx(statistics.stdev(scores))
    first = found["runs"]["seed1"]
    before = first["before_replacement"]["bleu"]["tokenized"]["score"]
    after = first["bleu"]["tokenized"]["score"]
    says(
        text,
        "STAND-IN DATA: a grammar\n\ntask",
        "test: 1 lines; mean ± sample deviation of 2 runs (seed1, seed2)",
        f"= {chrf['mean']:.2f} ± {chrf['deviation']:.2f} ",
        f" {chrf['signature']}\n",
        f"{before:.2f} -> {after:.2f} ({after - before:+.2f})",
    )
    (block,) = fenced(root / "docs/file_formats.md", "python")
    exec(block.replace("results/demo_en_fr", str(tmp_path)), {})
    assert "tok:13a" in capsys.readouterr().out
    del runs["test", "seed2"]
    alone, data = report(tmp_path, BleuEvaluation, runs)
    assert "one run (seed1)" in alone
    assert not {"±", "STAND-IN"} & set(alone.split())
    assert data["tests"]["test"]["chrf"]["deviation"] is None


def test_rouge_is_of_outputs_lead_both_states_and_the_difference(
    tmp_path: Path,
) -> None:
    one = scored_rouge(tmp_path, "1", bytes=40, measure="recall")
    worse = ["a cat", "two", "rain"]
    other = scored_rouge(tmp_path, "2", worse, bytes=40, measure="recall")
    runs = {("test", "seed1"): one, ("test", "seed2"): other}
    found = read(one)
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
            found_ones = (written["score"], written["low"], written["high"])
            assert found_ones == (score.score, score.low, score.high)
    signature = found["rouge"]["rouge_l"]["f1"]["signature"]
    assert "|refs:2|multi:sum|empty:skipped|bytes:40|stem:yes|exceptions:" in signature
    assert "exceptions:no" not in signature
    text, data = report(tmp_path, RougeEvaluation, runs)
    both = data["tests"]["test"]
    of_lead = both["lead"]["rouge"]["rouge_1"]["recall"]["score"]
    mean = both["rouge"]["rouge_1"]["recall"]["mean"]
    difference = mean - of_lead
    assert both["difference"]["rouge_1"]["recall"] == pytest.approx(difference)
    (line,) = re.findall("test ROUGE-1 recall .*", text)
    shown = f" {mean:.2f} ± ... lead (3 words) = {of_lead:.2f}"
    says(line, shown, f"difference = {difference:+.2f}")


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
    replaced = "[77] is the dictionary's word for No1"
    says(text, "  in words     le [<unk>] [77]\n", replaced)
    assert spread(2, 5) == [0, 1]


def test_a_reference_that_an_item_has_not_counts_for_nothing(tmp_path: Path) -> None:
    one = read(scored_rouge(tmp_path, "one", references=[REFERENCES]))
    both = read(scored_rouge(tmp_path, "both", references=[REFERENCES, [""] * 3]))
    assert one["length_ratio"] == both["length_ratio"] > 0
    scores = [found["rouge"]["rouge_1"]["precision"]["score"] for found in (one, both)]
    assert scores[0] == scores[1] > 0


# ---- two systems on one test set ----

LINES = """
the man sees a red car . => the man sees two red cars . => the man sees two red cars .
a  dog runs . => a dog runs . => a dog runs .
she is here . => she was there . => she is here .
no . => no ! => yes .
x => y => so
"""
"""What the baseline, the system and a translator make of a line."""

RIGHT = "le chien dort dans la maison rouge"
WRONG = "le chat mange dans la maison"


def test_pairs_of_runs_and_their_means(tmp_path: Path) -> None:
    """Of 30 lines, in 15 of which the baseline is wrong."""
    write_lines(tmp_path / "tok", [f"{RIGHT} ."] * 30)
    write_lines(tmp_path / "raw", [f"{RIGHT}."] * 30)
    header = {"baseline": "a", "system": "b"}
    report = Report(tmp_path / "text", tmp_path / "json", None, header)
    pairs = {}
    for wrong in (0, 15, 18):
        texts = [WRONG] * wrong + [RIGHT] * (30 - wrong)
        lines = [decoded(n, f"{text}.", f"{text} .") for n, text in enumerate(texts, 1)]
        system = tmp_path / f"{wrong}"
        write_lines(system, map(json.dumps, lines))
        pairs[f"{wrong} wrong"] = (tmp_path / "15", system)
    compare_models(
        pairs=pairs,
        raw=tmp_path / "raw",
        tokenized=tmp_path / "tok",
        report=report,
        test_set="t",
        manifest={},
        tokenize="intl",
    )
    text = report.text.read_text("utf-8")
    for kind, tokenization in (("tokenized", "none-ascii"), ("detokenized", "intl")):
        found = read(report.json)["bleu"][kind]
        assert f"|tok:{tokenization}|" in found["signature"]
        first, second, third = found["runs"].values()
        # Words with words, and text with text: 100 of 100.
        assert first["system"] == {"score": pytest.approx(100), "interval": 0}
        assert first["p_value"] < 0.05
        assert (second["difference"], second["p_value"]) == (0, 1)
        assert third["difference"] < 0
        differences = [run["difference"] for run in found["runs"].values()]
        mean = statistics.mean(differences)
        expected = {"mean": mean, "deviation": statistics.stdev(differences)}
        assert found["difference"] == pytest.approx(expected)
        side = first["baseline"]
        of_baseline = f"{side['score']:.2f} ± {side['interval']:.2f}"
        signature = f"{kind} BLEU  {found['signature']}\n"
        says(text, signature, of_baseline, f"{mean:+.2f}\n")


def test_lines_go_from_the_largest_gain_to_the_largest_loss() -> None:
    names = ("old", "new")
    texts = list(zip(*rows(LINES), strict=True))
    source = ["s1", "s2", "s3", "s4", "s5"]
    one, few = (
        compare_outputs(*texts, form="tokenized", names=names, most=most, source=source)
        for most in (10, 1)
    )
    assert one.whole == compare(*texts, names=names)
    assert (one.lines, one.same, one.better, one.worse) == (5, 1, 1, 2)
    assert [line.number for line in one.shown] == [1, 5, 4, 3]
    # Few lines are those that differ most, whichever way.
    assert [line.number for line in few.shown] == [3]
    says(
        render_text("outputs.txt.j2", comparison=one),
        f"p = {one.whole.p_value:.4f}",
        "1 lines better, 2 worse, 1 even, 1 the same",
        "baseline   the man sees [-a-] red [-car-] .",
        "system     the man sees {+two+} red {+cars+} .",
        "source     s1",
    )
