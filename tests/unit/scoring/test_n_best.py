"""N-best lists: their format and its faults, choices by averages and oracles, the report."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.scoring.bleu import SentenceBleu, tokenized_bleu
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
from convs2s.scoring.reranking import first_and_oracle, rescore_n_best
from tests.support import tiny
from tests.unit.conftest import Terminal

SENTENCES, HYPOTHESES = 20, 10


def write_list(path: Path, hypotheses: Sequence[ListedHypothesis]) -> Path:
    write_lines(path, (one.line() for one in hypotheses))
    return path


# ---- lists ----


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 ||| a b ||| LM= -1", "3 of the 4 fields"),
        ("just text", "1 of the 4 fields"),
        ("", "1 of the 4 fields"),
        ("x ||| a ||| LM= -1 ||| -1", "the sentence is not a number: 'x'"),
        ("-1 ||| a ||| LM= -1 ||| -1", "the sentence is not a number: '-1'"),
        ("0 ||| a ||| LM= -1 ||| high", "the score is not a number: 'high'"),
        ("0 ||| a ||| LM= -1 ||| nan", "the score is not a number: 'nan'"),
        ("0 ||| a ||| LM= -1 ||| ", "the score is not a number: ''"),
    ],
)
def test_a_malformed_line_is_named(
    run: Terminal, model: Path, tmp_path: Path, line: str, message: str
) -> None:
    write_lines(tmp_path / "source", ["w1"])
    write_lines(tmp_path / "list", ["0 ||| w1x ||| LM= -1 ||| -1", line])
    form = r"list:2: expected 'sentence \|\|\| text \|\|\| features \|\|\| score', as Moses"
    files = ("--source", tmp_path / "source", "--n-best", tmp_path / "list")
    for command in (
        ("score-pairs", model, *files),
        ("rerank", tmp_path / "list", "--feature", "LM"),
        ("score", "oracle", tmp_path / "list", "--reference", tmp_path / "source"),
    ):
        with pytest.raises(SystemExit, match=f"{form}.*{message}"):
            run(*command)


@pytest.mark.parametrize(
    ("numbers", "command", "message"),
    [
        ([0, 1, 0], "rerank", "list:3: expected sentence 1 or a later one, found 0"),
        (
            [0, 2],
            "rerank",
            "list:2: expected a hypothesis of sentence 1, found one of sentence 2",
        ),
        ([0, 1, 2], "score-pairs", "list:3: sentence 2, but the source has 2 lines"),
    ],
)
def test_sentences_that_do_not_fit(
    run: Terminal,
    model: Path,
    tmp_path: Path,
    numbers: list[int],
    command: str,
    message: str,
) -> None:
    write_lines(tmp_path / "source", ["w1", "w2"])
    path = write_list(
        tmp_path / "list",
        [ListedHypothesis(n, "w1x", "Model= 1", 0.0) for n in numbers],
    )
    options = {
        "rerank": (path,),
        "score-pairs": (
            model,
            "--source",
            tmp_path / "source",
            "--n-best",
            path,
            "--feature",
            "A",
        ),
    }
    with pytest.raises(SystemExit, match=message):
        run(command, *options[command])


def test_an_empty_list_is_refused(run: Terminal, model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "source", ["w1"])
    path = write_list(tmp_path / "list", [])
    for command in (
        ("score-pairs", model, "--source", tmp_path / "source", "--n-best", path),
        ("rerank", path),
        ("score", "oracle", path, "--reference", tmp_path / "source"),
    ):
        with pytest.raises(
            SystemExit, match="list: is empty; give an n-best list with a hypothes"
        ):
            run(*command)


def test_a_feature_is_found_by_its_name_and_not_added_twice() -> None:
    one = ListedHypothesis(0, "a", "LM= -3 TM= -1 -2", 0.0, location="list:7")
    assert one.with_feature("Model", -1.5).feature("Model") == -1.5
    with pytest.raises(
        UserError, match=r"list:7: expected a feature 'Model= NUMBER', found 'LM= "
    ):
        one.feature("Model")
    with pytest.raises(UserError, match="list:7: has a feature 'LM=' already"):
        one.with_feature("LM", 1.0)


def test_a_bar_is_written_so_that_it_separates_nothing() -> None:
    text = "a ||| b | c"
    assert "|" not in escaped(text)
    assert unescaped(escaped(text)) == text
    one = ListedHypothesis(0, escaped(text), "F= 1", -1.0)
    ((found,),) = read_n_best([one.line()], "list")
    assert (unescaped(found.text), found.score) == (text, -1.0)


def test_words_of_a_list_are_read_as_they_were() -> None:
    """Also a bar, and what Moses writes for one, each of which may be a word of a task."""
    for words, listed in {
        "a | b &#124;": "a | b &#124;",
        "a ||||": "a &#124;&#124;&#124;|",
    }.items():
        ((found,),) = read_n_best([n_best_line(1, words, -1.0, 3, 1.0)], "list")
        assert found.text == listed


def test_a_list_is_read_sentence_by_sentence() -> None:
    """A list of any length: no more is read than the sentence at hand and one line after it."""
    read: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(10**9):
            read.append(number)
            yield f"{number // 3} ||| a ||| Model= 1 ||| 0 ||| 0-0"

    groups = read_n_best(lines(), "list")
    assert [len(next(groups)) for _ in range(4)] == [3, 3, 3, 3]
    assert len(read) <= 13
    assert next(groups)[0].line().endswith(" ||| Model= 1 ||| 0 ||| 0-0")


# ---- choices ----

LIST = [
    ListedHypothesis(0, "a &#124;", "Model= -8", -1.0),
    ListedHypothesis(0, "b", "Model= -4", -2.0),
    ListedHypothesis(0, "c", "Model= -1", -9.0),
    ListedHypothesis(1, "d", "Model= -4", -1.0),
    ListedHypothesis(1, "e", "Model= -1", -4.0),
]


def test_the_even_average_chooses(run: Terminal, tmp_path: Path) -> None:
    path = write_list(tmp_path / "list", LIST)
    # -3 of -4.5, -3, -5; of equal ones the first.
    assert run("rerank", path) == "b\nd\n"
    (first, *_) = list(
        read_n_best(run("rerank", path, "--n-best").splitlines(), "printed")
    )
    assert [(one.text, one.score) for one in first] == [
        ("b", -3),
        ("a &#124;", -4.5),
        ("c", -5),
    ]
    write_list(tmp_path / "list", [replace(LIST[0], features="Model= 9")])
    assert run("rerank", path) == "a |\n"
    assert run("rerank", path, "--tokenized") == "a &#124;\n"


def test_equal_hypotheses_stay_in_the_lists_order() -> None:
    equal = [ListedHypothesis(0, text, "Model= 1", -2.0) for text in "abcd"]
    better = ListedHypothesis(0, "e", "Model= 1", -1.0)
    ranked = reranked([*equal[:2], better, *equal[2:]], lambda listed: listed.score)
    assert "".join(hypothesis.text for hypothesis in ranked) == "eabcd"


def random_lists(seed: int) -> tuple[list[list[ListedHypothesis]], list[str]]:
    """References, and for each some hypotheses with a part of its words replaced."""
    generator = random.Random(seed)
    references, groups = [], []
    for number in range(SENTENCES):
        words = generator.choices(tiny.WORDS, k=generator.randint(1, 12))
        references.append(" ".join(words))
        groups.append(
            [
                ListedHypothesis(
                    number,
                    " ".join(w if generator.random() < 0.7 else "wrong" for w in words),
                    f"Model= {generator.gauss(0, 1):.4f}",
                    generator.gauss(0, 1),
                )
                for _ in range(HYPOTHESES)
            ]
        )
    return groups, references


@pytest.mark.parametrize("seed", range(3))
def test_no_choice_beats_the_oracle(seed: int) -> None:
    groups, references = random_lists(seed)
    first, oracle = first_and_oracle(groups, [references], "tokenized")
    bleu = tokenized_bleu(oracle, references).score
    for criterion in (lambda listed: listed.score, average_with("Model")):
        chosen = [max(group, key=criterion).text for group in groups]
        assert bleu > tokenized_bleu(chosen, references).score
    assert first == [
        max(group, key=lambda listed: listed.score).text for group in groups
    ]


def test_the_oracle_of_few_sentences_is_no_worse_than_the_first() -> None:
    """The sentence's own BLEU prefers the short one, the set's is 0 without four words in a row."""
    reference = "a b c d e f g h i j k l"
    texts = "a b c d x x x x x x x x", "a b c x e f g x i j k x"
    group = [ListedHypothesis(0, text, "", -place) for place, text in enumerate(texts)]
    sentence_bleu = SentenceBleu("tokenized")
    assert sentence_bleu(texts[1], reference) > sentence_bleu(texts[0], reference)
    first, oracle = first_and_oracle([group], [[reference]], "tokenized")
    assert first == oracle == [texts[0]]
    assert tokenized_bleu([texts[0]], [reference]).score > 0
    assert tokenized_bleu([texts[1]], [reference]).score == 0


def test_references_of_another_set_are_refused() -> None:
    groups, references = random_lists(0)
    with pytest.raises(UserError, match="20 lines, but the reference has 19"):
        first_and_oracle(groups, [references[:-1]], "tokenized")
    with pytest.raises(UserError, match=r"^my_list: 20 lines, but lines has 19"):
        first_and_oracle(
            groups, [references[:-1]], "tokenized", str, "my_list", ["lines"]
        )


def test_oracle_by_hand(run: Terminal, tmp_path: Path) -> None:
    groups, references = random_lists(0)
    path = write_list(tmp_path / "list", [one for group in groups for one in group])
    write_lines(tmp_path / "reference", references)
    for options in ((), ("--tokenized",)):
        rows = run(
            "score", "oracle", path, "--reference", tmp_path / "reference", *options
        )
        first, oracle = (float(row.split()[2]) for row in rows.splitlines())
        assert oracle > first
        assert "20 lines" in rows


def test_the_report_of_four_choices(tmp_path: Path) -> None:
    groups, references = random_lists(0)
    scored = write_list(tmp_path / "list", [one for group in groups for one in group])
    write_lines(tmp_path / "reference", references)
    outputs = {name: tmp_path / name for name in ("translations", "text", "json")}
    rescore_n_best(
        n_best=scored,
        raw=tmp_path / "reference",
        tokenized=tmp_path / "reference",
        translations=outputs["translations"],
        report=Report(
            outputs["text"], outputs["json"], "random words", {"task": "tiny"}
        ),
        restore=str.upper,
        test_set="test",
        manifest={"revision": "abc"},
    )
    report = json.loads(outputs["json"].read_text("utf-8"))
    chosen = [max(group, key=average_with("Model")).text for group in groups]
    assert list(read_lines(outputs["translations"])) == [
        text.upper() for text in chosen
    ]
    assert list(report["bleu"]) == ["first", "model", "average", "oracle"]
    average = report["bleu"]["average"]["tokenized"]
    assert average["score"] == tokenized_bleu(chosen, references).score
    scores = {name: one["tokenized"]["score"] for name, one in report["bleu"].items()}
    assert max(scores, key=scores.__getitem__) == "oracle"
    text = outputs["text"].read_text("utf-8")
    assert text.startswith("STAND-IN DATA: random words\n\ntask      tiny\n")
    row = next(
        line
        for line in text.splitlines()
        if line.startswith("the even average of both")
    )
    assert f" {average['score']:.2f} " in row
    assert (report["lines"], report["manifest"]) == (SENTENCES, {"revision": "abc"})
