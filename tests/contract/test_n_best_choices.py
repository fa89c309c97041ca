"""N-best lists: their lines, choices by averages, oracles and length penalties, the reports."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from convs2s.config.decoding import DecodingSettings
from convs2s.files.text import read_lines, write_lines
from convs2s.scoring.bleu import corpus_bleu, sentence_bleu
from convs2s.scoring.n_best import (
    ListedHypothesis,
    average_with,
    escaped,
    n_best_line,
    read_n_best,
    reranked,
    unescaped,
)
from convs2s.scoring.reports.layout import Report
from convs2s.scoring.reranking import (
    best_point,
    curve,
    first_and_oracle,
    rescore_n_best,
    tune_length_penalty,
)
from convs2s.scoring.tuned_settings import tuned_decoding


def test_a_bar_separates_nothing() -> None:
    """It may be a word of a task, and so may be what Moses writes for one."""
    for words, listed in (
        ("a | b &#124;", "a | b &#124;"),
        ("a ||||", "a &#124;&#124;&#124;|"),
    ):
        ((found,),) = read_n_best([n_best_line(3, words, -1.5, 4, 1.0)], "list")
        assert (found.sentence, found.text, found.score) == (2, listed, -1.5)
        assert found.feature("LogLikelihood") == -6
    one = ListedHypothesis(0, escaped("a ||| b | c"), "F= 1", -1.0)
    ((found,),) = read_n_best([one.line()], "list")
    assert "|" not in found.text
    assert unescaped(found.text) == "a ||| b | c"


AVERAGED = """\
0 ||| a ||| Model= 2 ||| -8
0 ||| b ||| Model= -4 ||| -2
0 ||| c ||| Model= -2 ||| -4
0 ||| d ||| Model= 0 ||| -4
"""


def test_the_even_average_ranks_and_equals_stay_in_their_order() -> None:
    (group,) = read_n_best(AVERAGED.splitlines(), "list")
    ranked = reranked(group, average_with("Model"))
    assert [one.text for one in ranked] == ["d", "a", "b", "c"]
    assert [one.score for one in ranked] == [-2, -3, -3, -3]


LIST = """\
0 ||| x x c d e f ||| Model= -9 ||| 0
0 ||| x x x d e f ||| Model= 0 ||| -5
0 ||| x b c d e f ||| Model= -3 ||| -1
0 ||| a b c d e f ||| Model= -6 ||| -4
1 ||| x x d c b a ||| Model= -9 ||| 0
1 ||| x x x c b a ||| Model= 0 ||| -5
1 ||| x e d c b a ||| Model= -3 ||| -1
1 ||| f e d c b a ||| Model= -6 ||| -4
"""


def test_four_choices_and_their_report(tmp_path: Path) -> None:
    references = ["a b c d e f", "f e d c b a"]
    write_lines(tmp_path / "reference", references)
    (tmp_path / "list").write_text(LIST)
    report = Report(tmp_path / "text", tmp_path / "json", None, {})
    rescore_n_best(
        n_best=tmp_path / "list",
        raw=tmp_path / "reference",
        tokenized=tmp_path / "reference",
        translations=tmp_path / "translations",
        report=report,
        restore=str.upper,
        test_set="test",
        manifest={},
    )
    average = ["x b c d e f", "x e d c b a"]
    assert list(read_lines(tmp_path / "translations")) == ["X B C D E F", "X E D C B A"]
    content = json.loads(report.json.read_text("utf-8"))
    scores = [one["tokenized"]["score"] for one in content["bleu"].values()]
    assert list(content["bleu"]) == ["first", "model", "average", "oracle"]
    assert scores[1] < scores[0] < scores[2] < scores[3] == pytest.approx(100)
    assert scores[2] == corpus_bleu(average, references).score
    text = report.text.read_text("utf-8")
    assert re.search(rf"the even average of both +{scores[2]:.2f} ", text)
    assert content["lines"] == 2


def test_the_oracle_of_few_sentences_is_no_worse_than_the_first() -> None:
    """The sentence's own BLEU prefers the short one, the set's is 0 without four words in a row."""
    reference = "a b c d e f g h i j k l"
    texts = ["a b c d x x x x x x x x", "a b c x e f g x i j k x"]
    group = [ListedHypothesis(0, text, "", -place) for place, text in enumerate(texts)]
    bleu = sentence_bleu("tokenized")
    assert bleu(texts[1], reference) > bleu(texts[0], reference)
    first, oracle = first_and_oracle([group], [[reference]], "tokenized")
    assert first == oracle == [texts[0]]


# Longer hypotheses are better, and less probable: from 1.1 on they are chosen.
LENGTHS = """\
0 ||| a b c ||| LogLikelihood= -4 Length= 4 ||| -1.0
0 ||| a b c d e f g ||| LogLikelihood= -8.3 Length= 8 ||| -1.0375
1 ||| h i j ||| LogLikelihood= -4 Length= 4 ||| -1.0
1 ||| h i j k l m n ||| LogLikelihood= -8.3 Length= 8 ||| -1.0375
"""
SHORT, LONG = ["a b c", "h i j"], ["a b c d e f g", "h i j k l m n"]


def test_the_nearest_to_1_of_the_best_length_penalties_is_what_a_decoding_uses(
    tmp_path: Path,
) -> None:
    (tmp_path / "list").write_text(LENGTHS)
    write_lines(tmp_path / "words", LONG)
    # The published text is the shorter one: words decide.
    write_lines(tmp_path / "raw", SHORT)
    table = tmp_path / "curve.tsv"
    tuning = tmp_path / "tuned.json"
    tune_length_penalty(
        n_best=tmp_path / "list",
        raw=tmp_path / "raw",
        tokenized=tmp_path / "words",
        tsv=table,
        json=tuning,
        restore=str,
        header={},
        manifest={},
    )
    header, *lines = read_lines(table)
    assert header == "length_penalty\ttokenized_bleu\tdetokenized_bleu\tlength_ratio"
    penalties, words, _, ratios = np.loadtxt(lines, delimiter="\t", unpack=True)
    assert penalties == pytest.approx(np.arange(21) / 10)
    assert words[10] < 99 < words[11] == words[20]
    assert ratios[10] < 1 == ratios[11]
    result = json.loads(tuning.read_text("utf-8"))
    assert (result["length_penalty"], result["lines"]) == (1.1, 2)
    decoding = {"beam": 4, "length_penalty": {"tuned_on": "valid"}}
    found = tuned_decoding(decoding, [str(tuning)])
    assert found == DecodingSettings(beam=4, length_penalty=1.1)
    assert tuned_decoding(decoding, []).length_penalty == 1.0
    assert tuned_decoding({"length_penalty": 0.6}, []).length_penalty == 0.6
    groups = list(read_n_best(LENGTHS.splitlines(), "list"))
    assert best_point(curve(groups, SHORT, SHORT, str)).length_penalty == 1.0
