"""Wrong translations, references, lists and metrics: what scoring says of them."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import compress

import numpy as np
import pytest
import yaml

from convs2s.cli.main import main
from convs2s.config.extensions import export_extensions
from convs2s.config.load import load
from convs2s.config.task import RougeSettings
from convs2s.files.text import write_lines
from convs2s.scoring import bleu
from convs2s.scoring.bleu import (
    chrf,
    compare,
    corpus_bleu,
    decode_statistics,
    encode_statistics,
    length_ratio,
)
from convs2s.scoring.comparison import compare_outputs
from convs2s.scoring.evaluation import (
    BleuEvaluation,
    RougeEvaluation,
    evaluate_bleu,
    evaluate_rouge,
    further_score,
)
from convs2s.scoring.n_best import ListedHypothesis
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.reranking import curve
from convs2s.scoring.rouge import RougeOptions, rouge
from convs2s.scoring.summary import summarize_runs
from tests.support.refusals import refusal, rows, says

RUN = "models/small/seed1"
TWO = ["a b", "c"]
ONE = ["a b"]
LISTED = ListedHypothesis(0, "a", "LM= 1", 0, (), "list:7")


def rouge_of(*texts: list[str]) -> object:
    return rouge(*texts, options=RougeOptions())


def outputs(*texts: list[str], source: list[str] | None = None) -> object:
    names = ("old", "new")
    return compare_outputs(*texts, form="tokenized", names=names, most=1, source=source)


@pytest.mark.parametrize("metric", [corpus_bleu, chrf, length_ratio, rouge_of])
def test_texts_of_unequal_number(metric: Callable[..., object]) -> None:
    says(refusal(metric, TWO, ONE), "hypotheses: 2 lines", "the reference has 1")
    says(refusal(metric, TWO, TWO, [*TWO, "x"]), "2 lines, but reference 2 has 3")
    says(refusal(metric, [], []), "hypotheses: no lines to score")


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: compare(TWO, ONE, TWO), ["system: 1 lines", "reference has 2"]),
        (lambda: outputs(ONE, TWO, TWO), ["old: 1 lines"]),
        (lambda: outputs(TWO, TWO, TWO, source=ONE), ["new: 2", "the source has 1"]),
        (lambda: curve([[LISTED]], ONE, ONE, str), ["list:7: ", "'LogLikelihood= "]),
        (lambda: LISTED.with_feature("LM", 1), ["list:7: ", "choose another name"]),
    ],
)
def test_systems_and_features(refused: Callable[[], object], words: list[str]) -> None:
    says(refusal(refused), *words)


def test_a_tokenizer_whose_package_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bleu, "find_spec", lambda name: None)
    message = refusal(corpus_bleu, TWO, TWO, form="ja-mecab")
    says(message, "--tokenize ja-mecab: ", "'sacrebleu[ja]'", "--tokenize char")


# A line ends as LINE says below.
LISTS = r"""
=> list: is empty ... an n-best list
0 LINE\n0 ||| a ||| LM= 1 => list:2: ... Moses ... 3 of the 4
x LINE => list:1: ... the sentence is not a number: 'x'
-1 LINE => the sentence is not a number: '-1'
0 ||| a ||| LM= -1 ||| high => the score is not a number: 'high'
0 ||| a ||| LM= -1 ||| nan => the score is not a number: 'nan'
0 LINE\n2 LINE => list:2: ... sentence 1 ... sentence 2
0 LINE\n1 LINE\n0 LINE => list:3: ... 1 or a later one
"""
LINE = "||| a ||| Model= -1 ||| -1"


def command_fails(*words: object) -> str:
    """Return what the command says."""
    with pytest.raises(SystemExit) as error:
        main([str(word) for word in words])
    return str(error.value)


@pytest.mark.parametrize(("content", "words"), rows(LISTS))
def test_n_best_lists(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "list"
    reference = tmp_path / "reference"
    path.write_text(content.replace("LINE", LINE))
    write_lines(reference, TWO)
    for command in (
        ("score", "oracle", path, "--reference", reference),
        ("rerank", path),
    ):
        says(command_fails(*command), *words.split(" ... "))


def test_a_list_of_more_sentences_than_the_text(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "list"
    text = tmp_path / "text"
    write_lines(path, [f"{number} {LINE}" for number in range(3)])
    write_lines(text, TWO)
    said = command_fails("score", "oracle", path, "--reference", text)
    says(said, "list: 3 lines", "text has 2")
    files = ("--source", text, "--n-best", path)
    said = command_fails("score-pairs", model, *files, "--feature", "A")
    says(said, "list:3: sentence 2, but the source has 2 lines")


def test_translations(results: Path) -> None:
    lines = results / f"{RUN}/test.beam5.jsonl"
    first, _, third = lines.read_text("utf-8").splitlines()
    for second, words in (
        (third, ["line 2, found that of line 3"]),
        ('{"line": 2}', ["not a translation", "source", "decode"]),
        ("7", ["not a translation"]),
    ):
        write_lines(lines, [first, second])
        message = refusal(
            evaluate_bleu,
            translations=lines,
            raw=lines,
            tokenized=lines,
            output=results / "bleu",
            test_set="test",
            manifest={},
        )
        says(message, f"{lines}:2: ", *words)
    assert not (results / "bleu").exists()


def rouge_scores(
    results: Path, name: str, *references: list[str], **stated: Any
) -> Path:
    """Score the three translations of a finished run; return the file."""
    paths = []
    for number, texts in enumerate(references):
        paths.append(results / f"reference{number}")
        write_lines(paths[-1], texts)
    evaluate_rouge(
        translations=results / f"{RUN}/test.beam5.jsonl",
        references=paths,
        exceptions=None,
        output=results / name,
        test_set="test",
        settings=RougeSettings(**{"lead_words": 3} | stated),
        manifest={},
    )
    return results / name


def test_a_reference_of_another_test_set(results: Path) -> None:
    message = refusal(rouge_scores, results, "rouge", ["a"] * 3, TWO)
    says(message, "test.beam5.jsonl: 3 lines", "reference1 has 2")


def report_refused(folder: Path, kind: type[Any], *scores: Path) -> str:
    """Return why the scores are not summarized."""
    runs = {("test", path.name): path for path in scores}
    written = Report(folder / "report.txt", folder / "report.json", None, {})
    message = refusal(summarize_runs, kind, runs, written)
    assert not written.text.exists()
    return message


STATED = """
{bytes: 75} => b: ROUGE: ... bytes:75 ... score again
{lead_words: 4} => b: words of the lead baseline: 4, but 3 ... score again
{measure: recall} => b: measure: recall, but f1 ... score again
"""


@pytest.mark.parametrize(("stated", "words"), rows(STATED))
def test_runs_that_were_scored_differently(
    results: Path, stated: str, words: str
) -> None:
    first = rouge_scores(results, "a", ["a"] * 3)
    second = rouge_scores(results, "b", ["a"] * 3, **yaml.safe_load(stated))
    message = report_refused(results, RougeEvaluation, first, second)
    says(message, *words.split(" ... "))


CHANGES = """
version:2. => version:1. => b: tokenized BLEU: ... version:1.
"before_replacement" => "x" => b: not an evaluation ... before_replacement
{ => [ => b: not an evaluation ... score again
"""


@pytest.mark.parametrize(("old", "new", "words"), rows(CHANGES))
def test_evaluations(results: Path, old: str, new: str, words: str) -> None:
    scores = results / f"{RUN}/test.beam5.bleu.json"
    other = results / "b"
    other.write_text(scores.read_text("utf-8").replace(old, new), "utf-8")
    message = report_refused(results, BleuEvaluation, scores, other)
    says(message, *words.split(" ... "))


def test_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu, "MOST_LINES", 10)
    for packed in (
        b"no base64!",
        b64encode(b"not compressed"),
        b64encode(compress(bytes(23))),
        b64encode(compress(bytes(24)))[:-8],
        b64encode(compress(bytes(24 * 11))),  # more lines than are read
    ):
        message = refusal(decode_statistics, packed.decode(), "ledger:3")
        says(message, "ledger:3: ", "not encoded statistics")
    matches = encode_statistics(np.array([[2, 2, 2, 1, 0, 0], [2, 2, 2, 2, 0, 0]]))
    message = refusal(decode_statistics, matches, "ledger:3")
    says(message, "ledger:3: ", "sentence 2 has more matching n-grams than")


METRICS = """
lambda a, b: float('nan') => metric own: ... a finite number ... nan
lambda a, b: '3' => metric own: ... a finite number
lambda a, b: True => metric own: ... a finite number ... True
lambda a, b: Score(float('inf'), 'x') => a finite number ... inf
lambda a, b: 1 / 0 => own.py:3: ... ZeroDivisionError
math.exp => metric own: TypeError:
max => metric own: ValueError: no signature found
lambda a, b, source: 1 => metric own: needs the source ... --source
"""


@pytest.mark.parametrize(("metric", "words"), rows(METRICS))
def test_metrics_of_the_users_own(tmp_path: Path, metric: str, words: str) -> None:
    (tmp_path / "own.py").write_text(
        "import math\nfrom convs2s.scoring.bleu import Score\n"
        f"METRICS = {{'own': {metric}}}\n"
    )
    export_extensions(["own.py"], tmp_path)
    message = refusal(further_score, "own", ["a"], ["a"], source=None)
    says(message, *words.split(" ... "))


def test_a_set_to_tune_on_that_the_task_has_not(copy: Path) -> None:
    path = copy / "config/decodings.yaml"
    text = path.read_text("utf-8")
    path.write_text(text.replace("tuned_on: newstest2015", "tuned_on: newstest2051"))
    settings = load(copy)
    message = refusal(settings.check_whole, settings.broken)
    says(message, "wmt14_en_de.yaml", "'beam5_en_de'", "newstest2051", "newstest2015")
