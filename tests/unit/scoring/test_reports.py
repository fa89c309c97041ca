"""From the decoder's JSON lines to the evaluation, the summary and the examples."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.text import write_lines
from convs2s.scoring.bleu import decode_statistics, detokenized_bleu, tokenized_bleu
from convs2s.scoring.evaluation import BleuEvaluation, evaluate_bleu
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.summary import mean_and_deviation, summarize_runs
from convs2s.scoring.translations import write_examples
from tests.support.statistics import bleu_of

NAMED = {"task": "demo_en_fr", "model": "demo", "decoding": "beam5", "scale": "demo"}


def translation(line: int, words: list[str], **given: Any) -> dict[str, Any]:
    text = " ".join(words).replace(" .", ".")
    return {
        "line": line,
        "source": f"Sentence {line}.",
        "source_words": ["Sentence", str(line), "."],
        "text": text,
        "words": words,
        "text_before": text,
        "words_before": words,
        "score": -0.5,
        "tokens": words,
        "replacements": [],
        **given,
    }


def sentence(line: int) -> list[str]:
    return f"le chien numéro {line} dort dans la maison rouge .".split()


def replaced(line: int, by: str = "copied") -> dict[str, Any]:
    """Return a translation of which the fourth word was unknown."""
    words = sentence(line)
    before = [*words[:3], "<unk>", *words[4:]]
    item = {
        "position": 3,
        "source_position": 1,
        "source_word": f"No{line}",
        "word": words[3],
    }
    return translation(
        line,
        words,
        words_before=before,
        text_before=" ".join(before).replace(" .", "."),
        replacements=[{**item, "by": by}],
    )


class TestSet:
    """A decoded test set in a folder, with its references."""

    __test__ = False

    def __init__(
        self, folder: Path, records: list[dict[str, Any]], lines: int | None = None
    ):
        self.translations = folder / "test.jsonl"
        self.raw = folder / "test.fr"
        self.tokenized = folder / "tok.fr"
        write_lines(self.translations, (json.dumps(record) for record in records))
        references = [sentence(i) for i in range(1, (lines or len(records)) + 1)]
        write_lines(self.tokenized, (" ".join(words) for words in references))
        write_lines(
            self.raw, (" ".join(words).replace(" .", ".") for words in references)
        )
        self.output = folder / "test.bleu.json"

    def evaluate(self) -> dict[str, Any]:
        evaluate_bleu(
            translations=self.translations,
            raw=self.raw,
            tokenized=self.tokenized,
            output=self.output,
            test_set="test",
            manifest={"seed": 1},
        )
        result: dict[str, Any] = json.loads(self.output.read_text("utf-8"))
        return result

    def examples(self) -> str:
        output = self.output.with_name("examples.txt")
        write_examples(self.translations, self.raw, output)
        return output.read_text("utf-8")


def test_evaluation_holds_both_states(tmp_path: Path) -> None:
    by_dictionary = [replaced(line, "dictionary") for line in (2, 3)]
    records = [replaced(1), *by_dictionary, translation(4, sentence(4))]
    result = TestSet(tmp_path, records).evaluate()
    assert result["test_set"] == "test"
    assert result["lines"] == 4
    assert result["manifest"] == {"seed": 1}
    assert result["length_ratio"] == 1
    assert result["bleu"]["tokenized"]["score"] == pytest.approx(100)
    assert "tok:none" in result["bleu"]["tokenized"]["signature"]
    assert "tok:13a" in result["bleu"]["detokenized"]["signature"]
    assert result["before_replacement"]["bleu"]["tokenized"]["score"] < 95
    assert result["before_replacement"]["bleu"]["detokenized"]["score"] < 95
    assert result["unknown_words"] == {"total": 3, "dictionary": 2, "copied": 1}
    made_of = {
        name: bleu_of(decode_statistics(text, name))
        for name, text in result["sentences"].items()
    }
    before = result["before_replacement"]
    assert made_of == {
        "bleu_tokenized": result["bleu"]["tokenized"]["score"],
        "bleu_tokenized_before_replacement": before["bleu"]["tokenized"]["score"],
    }


def test_each_score_has_its_own_reference(tmp_path: Path) -> None:
    """Words and text differ by more than blanks, and so do they before replacement."""
    words, text = (
        ["l&apos;", "avion", "low", "@-@", "cost", "est", "là", "."],
        "l'avion low-cost est là.",
    )
    before, text_before = [*words[:-2], "<unk>", "."], "l'avion low-cost est <unk>."
    record = translation(
        1, words, text=text, words_before=before, text_before=text_before
    )
    test_set = TestSet(tmp_path, [record])
    write_lines(test_set.tokenized, [" ".join(words)])
    write_lines(test_set.raw, [text])
    result = test_set.evaluate()
    for kind, wrong, right in (
        ("tokenized", " ".join(before), " ".join(words)),
        ("detokenized", text_before, text),
    ):
        assert result["bleu"][kind]["score"] == pytest.approx(100)
        metric = tokenized_bleu if kind == "tokenized" else detokenized_bleu
        expected = metric([wrong], [right]).score
        assert 0 < expected < 95
        assert result["before_replacement"]["bleu"][kind]["score"] == pytest.approx(
            expected
        )


def test_unknown_words_that_stay_are_counted(tmp_path: Path) -> None:
    record = translation(1, ["le", "chien", "<unk>", "."])
    result = TestSet(tmp_path, [record]).evaluate()
    assert result["unknown_words"] == {"total": 1, "dictionary": 0, "copied": 0}


def test_line_counts_must_agree(tmp_path: Path) -> None:
    test_set = TestSet(tmp_path, [translation(1, sentence(1))], lines=3)
    with pytest.raises(
        UserError, match=r"test\.jsonl: 1 lines, but .*test\.fr has 3"
    ) as error:
        test_set.evaluate()
    assert "\n" not in str(error.value)
    assert not test_set.output.exists()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            translation(3, sentence(3)),
            r"expected the translation of line 2, found that of line 3",
        ),
        (
            {"line": 2},
            r"test\.jsonl:2: not a translation by this program's decoder.*source",
        ),
        (7, r"test\.jsonl:2: not a translation"),
    ],
)
def test_translations_must_be_whole(tmp_path: Path, second: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        TestSet(tmp_path, [translation(1, sentence(1)), second]).evaluate()


@pytest.fixture
def evaluations(tmp_path: Path) -> dict[tuple[str, str], Path]:
    """Two runs, of which the second translates a sentence worse."""
    paths = {}
    for run, last in (("seed1", sentence(3)), ("seed2", ["le", "chat", "."])):
        (tmp_path / run).mkdir()
        records = [replaced(1), translation(2, sentence(2)), translation(3, last)]
        test_set = TestSet(tmp_path / run, records)
        test_set.evaluate()
        paths["test", run] = test_set.output
    return paths


def report(
    results: dict[tuple[str, str], Path], folder: Path, stand_in: str | None = None
) -> tuple[str, dict[str, Any]]:
    text, data = folder / "bleu.txt", folder / "bleu.json"
    summarize_runs(BleuEvaluation, results, Report(text, data, stand_in, NAMED))
    return text.read_text("utf-8"), json.loads(data.read_text("utf-8"))


def test_summary_has_mean_and_sample_deviation(
    evaluations: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    text, data = report(evaluations, tmp_path)
    runs = data["tests"]["test"]["runs"]
    scores = [runs[run]["bleu"]["tokenized"]["score"] for run in ("seed1", "seed2")]
    summary = data["tests"]["test"]["bleu"]["tokenized"]
    assert summary["mean"] == pytest.approx(statistics.mean(scores))
    assert summary["deviation"] == pytest.approx(statistics.stdev(scores))
    mean = f"{summary['mean']:.2f} ± {summary['deviation']:.2f}"
    (line,) = (
        line for line in text.split("\n") if line.startswith("test tokenized BLEU ")
    )
    assert mean in line
    assert line.endswith(summary["signature"])


def test_a_mean_is_no_median_and_its_deviation_the_samples() -> None:
    found = mean_and_deviation([1.0, 2.0, 6.0])
    assert found.mean == pytest.approx(3.0)
    assert found.deviation == pytest.approx(7.0**0.5)
    assert mean_and_deviation([4.0]).deviation is None


def test_summary_says_what_every_number_is(
    evaluations: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    text, data = report(evaluations, tmp_path)
    assert text.startswith(
        "task      demo_en_fr\nmodel     demo\ndecoding  beam5\nscale     demo\n"
    )
    assert "test: 3 lines; mean ± sample deviation of 2 runs (seed1, seed2)" in text
    for name in ("tokenized BLEU", "detokenized BLEU", "chrF", "length ratio"):
        assert f"test {name:<16} = " in text
    assert re.search(
        r"^test length ratio +=\s\d\.\d{3} ± \d\.\d{3} +words of the output", text, re.M
    )
    for run, evaluation in data["tests"]["test"]["runs"].items():
        before = evaluation["before_replacement"]["bleu"]["tokenized"]["score"]
        after = evaluation["bleu"]["tokenized"]["score"]
        assert f"{before:.2f} -> {after:.2f} ({after - before:+.2f})" in text
        assert evaluation["manifest"] == {"seed": 1}
        assert f"\n{run} " in text


def test_summary_of_stand_in_data_says_so_first(
    evaluations: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    text, data = report(evaluations, tmp_path, stand_in="sentences of a grammar")
    assert text.startswith("STAND-IN DATA: sentences of a grammar\n\n")
    assert data["stand_in"] == "sentences of a grammar"
    assert "STAND-IN" not in report(evaluations, tmp_path)[0]


def test_summary_of_one_run_claims_no_deviation(
    evaluations: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    text, data = report({("test", "seed1"): evaluations["test", "seed1"]}, tmp_path)
    assert "±" not in text
    assert "one run (seed1)" in text
    assert data["tests"]["test"]["chrf"]["deviation"] is None


def test_summary_refuses_to_average_different_measures(
    evaluations: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    path = evaluations["test", "seed2"]
    path.write_text(
        path.read_text("utf-8").replace("version:2.", "version:1."), "utf-8"
    )
    with pytest.raises(
        UserError, match=r"seed2/test\.bleu\.json: tokenized BLEU: .*version:1\."
    ):
        report(evaluations, tmp_path)
    assert not (tmp_path / "bleu.txt").exists()


def test_examples_are_spread_and_mark_replaced_words(tmp_path: Path) -> None:
    records = [translation(i, sentence(i)) for i in range(1, 101)]
    records[76] = replaced(77, "dictionary")
    text = TestSet(tmp_path, records).examples()
    shown = [line for line in text.split("\n") if line.startswith("line ")]
    assert shown == ["line 11", "line 31", "line 51", "line 71", "line 91", "line 77"]
    assert "source       Sentence 31." in text
    assert "reference    le chien numéro 31 dort dans la maison rouge." in text
    assert "le chien numéro [77] dort" in text
    assert "[77] is the dictionary's word for No77" in text


def test_an_unknown_word_may_be_copied_as_such(tmp_path: Path) -> None:
    before, after = ["a", "<unk>", "b", "<unk>"], ["a", "<unk>", "b", "foo"]
    items = [
        {"position": p, "source_position": 0, "source_word": after[p], "word": after[p]}
        | {"by": "copied"}
        for p in (1, 3)
    ]
    line = translation(1, after, words_before=before, replacements=items)
    assert "in words     a [<unk>] b [foo]\n" in TestSet(tmp_path, [line]).examples()


def test_examples_of_a_short_test_set(tmp_path: Path) -> None:
    text = TestSet(tmp_path, [replaced(1), translation(2, sentence(2))]).examples()
    assert text.count("\n  source ") == 2
    assert "[1] is copied from the source" in text


def test_examples_need_their_own_reference(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"test\.jsonl: 1 lines, but .*test\.fr has 2"):
        TestSet(tmp_path, [replaced(1)], lines=2).examples()


def test_what_the_page_of_formats_reads_is_there(
    root: Path,
    evaluations: dict[tuple[str, str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "results/demo_en_fr"
    folder.mkdir(parents=True)
    report(evaluations, folder)
    monkeypatch.chdir(tmp_path)
    page = (root / "docs/file_formats.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(block, {})
    assert "tok:13a" in capsys.readouterr().out
