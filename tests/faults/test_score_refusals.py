"""Wrong translations, references, lists and metrics: what scoring says of them."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from zlib import compress

import numpy as np
import pytest
import yaml

from convs2s.cli.main import main
from convs2s.config.extensions import export_extensions
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
from convs2s.scoring.evaluation import BleuEvaluation, RougeEvaluation, further_score
from convs2s.scoring.n_best import ListedHypothesis
from convs2s.scoring.reranking import curve
from convs2s.scoring.rouge import RougeOptions, rouge
from tests.contract.score_files import decoded, report, scored_bleu, scored_rouge
from tests.support.refusals import refusal, refuses, rows, says

TWO = ["a b", "c"]
ONE = ["a b"]
LISTED = ListedHypothesis(0, "a", "LM= 1", 0, (), "list:7")


def test_texts_of_unequal_number() -> None:
    scoring: tuple[Callable[..., object], ...] = (
        corpus_bleu,
        chrf,
        length_ratio,
        partial(rouge, options=RougeOptions()),
    )
    for metric in scoring:
        refuses("hypotheses: 2 lines ... the reference has 1", metric, TWO, ONE)
        refuses("2 lines, but reference 2 has 3", metric, TWO, TWO, [*TWO, "x"])
        refuses("hypotheses: no lines to score", metric, [], [])


def test_systems_and_features() -> None:
    refuses("system: 1 lines ... reference has 2", compare, TWO, ONE, TWO)
    names = ("old", "new")
    outputs = partial(compare_outputs, form="tokenized", names=names, most=1)
    refuses("old: 1 lines", outputs, ONE, TWO, TWO, source=None)
    refuses("new: 2 ... the source has 1", outputs, TWO, TWO, TWO, source=ONE)
    says(refusal(curve, [[LISTED]], ONE, ONE, str), "list:7: ", "'LogLikelihood= ")
    says(refusal(LISTED.with_feature, "LM", 1), "list:7: ", "choose another name")


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


def test_n_best_lists(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "list"
    text = tmp_path / "text"
    write_lines(text, TWO)
    for content, words in rows(LISTS):
        path.write_text(content.replace("LINE", LINE))
        says(command_fails("score", "oracle", path, "--reference", text), words)
        says(command_fails("rerank", path), words)
    # Of more sentences than the text.
    write_lines(path, [f"{number} {LINE}" for number in range(3)])
    said = command_fails("score", "oracle", path, "--reference", text)
    says(said, "list: 3 lines", "text has 2")
    files = ("--source", text, "--n-best", path)
    said = command_fails("score-pairs", model, *files, "--feature", "A")
    says(said, "list:3: sentence 2, but the source has 2 lines")


def test_translations_and_references(tmp_path: Path) -> None:
    for second, words in (
        (decoded(3, "a"), "lines:2: ... line 2, found that of line 3"),
        ({"line": 2}, "lines:2: not a translation ... source ... decode"),
        (7, "lines:2: not a translation"),
    ):
        lines = [decoded(1, "a"), second]
        refuses(words, scored_bleu, tmp_path, "bleu", lines)
        assert not (tmp_path / "bleu").exists()
    message = refusal(scored_rouge, tmp_path, "rouge", references=[["a"] * 3, TWO])
    says(message, "lines: 3 lines ... reference1 has 2")


STATED = """
{bytes: 75} => b: ROUGE: ... bytes:75 ... score again
{lead_words: 4} => b: words of the lead baseline: 4, but 3 ... score again
{measure: recall} => b: measure: recall, but f1 ... score again
"""


def test_runs_that_were_scored_differently(tmp_path: Path) -> None:
    for stated, words in rows(STATED):
        runs = {
            ("test", "seed1"): scored_rouge(tmp_path, "a"),
            ("test", "seed2"): scored_rouge(tmp_path, "b", **yaml.safe_load(stated)),
        }
        refuses(words, report, tmp_path, RougeEvaluation, runs)
        assert not (tmp_path / "bleu.txt").exists()


CHANGES = """
version:2. => version:1. => b: tokenized BLEU: ... version:1.
"before_replacement" => "x" => b: not an evaluation ... before_replacement
{ => [ => b: not an evaluation ... score again
"""


def test_evaluations(tmp_path: Path) -> None:
    lines = [decoded(1, "a")]
    runs = {("test", name): scored_bleu(tmp_path, name, lines) for name in ("a", "b")}
    content = (tmp_path / "b").read_text("utf-8")
    for old, new, words in rows(CHANGES):
        (tmp_path / "b").write_text(content.replace(old, new), "utf-8")
        refuses(words, report, tmp_path, BleuEvaluation, runs)


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


def test_metrics_of_the_users_own(tmp_path: Path) -> None:
    imports = "import math\nfrom convs2s.scoring.bleu import Score\n"
    for metric, words in rows(METRICS):
        (tmp_path / "own.py").write_text(f"{imports}METRICS = {{'own': {metric}}}\n")
        export_extensions(["own.py"], tmp_path)
        refuses(words, further_score, "own", ["a"], ["a"], source=None)
