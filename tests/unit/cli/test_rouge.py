"""``convs2s score rouge``, as a user types it."""

import re
from pathlib import Path

import pytest

from convs2s.files.text import read_lines, write_lines
from tests.support.golden import DATA
from tests.unit.conftest import Terminal

GOLDEN = DATA / "rouge"
REFERENCES = [
    argument
    for n in range(1, 5)
    for argument in ("--reference", GOLDEN / f"duc.ref{n}.txt.gz")
]
HYPOTHESES = GOLDEN / "duc.hypA.txt.gz"


def test_scores_items_and_signature(run: Terminal, tmp_path: Path) -> None:
    items = tmp_path / "items.tsv"
    options = ("--bytes", 75, "--items", items, "--samples", 100)
    first, *_, last = run(
        "score", "rouge", *REFERENCES, *options, HYPOTHESES
    ).splitlines()
    printed = list(read_lines(GOLDEN / "ducA.ref4.b75.nostem.tsv.gz"))
    assert list(read_lines(items)) == printed
    recalls = [float(line.split("\t")[1]) for line in printed[1:]]
    mean = f"{100 * sum(recalls) / len(recalls):.2f}"
    number = r"\d+\.\d\d"
    assert re.match(
        rf"ROUGE-1  recall = {mean} \({number} to {number}\)  precision = ", first
    )
    assert last.startswith(
        "ROUGE-1.5.5-equal|refs:4|multi:sum|bytes:75|stem:no|exceptions:no|"
    )
    assert last.endswith("duc.ref4.txt.gz, 230 lines)")


def test_stemming_exceptions_and_the_best_reference(
    run: Terminal, tmp_path: Path
) -> None:
    texts = {"out.txt": ["mice and cats"], "a.txt": ["cat"], "b.txt": ["a mouse"]}
    for name, lines in texts.items():
        write_lines(tmp_path / name, lines)
    write_lines(tmp_path / "exceptions.tsv", ["mice\tmous"])
    out, *references = (tmp_path / name for name in texts)
    given = (
        "score",
        "rouge",
        "--reference",
        references[0],
        "--reference",
        references[1],
    )
    assert run(*given, out).startswith("ROUGE-1  recall = 0.00 ")
    assert run(*given, "--stem", out).startswith("ROUGE-1  recall = 33.33 ")
    assert run(*given, "--stem", "--best", out).startswith("ROUGE-1  recall = 100.00 ")
    write_lines(references[1], [""])
    assert run(*given, "--stem", "--skip-empty", out).startswith(
        "ROUGE-1  recall = 100.00 "
    )
    write_lines(references[1], ["a mouse"])
    exceptions = ("--stem", "--exceptions", tmp_path / "exceptions.tsv")
    assert run(*given, *exceptions, out).startswith("ROUGE-1  recall = 66.67 ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (),
            r"convs2s: error: \S+out\.txt: 2 lines, but \S+b\.txt has 1; line N of one",
        ),
        (("--bytes", 0), r"options: bytes: expected at least 1, not 0"),
        (("--samples", -1), r"options: samples: expected at least 1, not -1"),
        (("--exceptions", "forms.tsv"), r"--exceptions forms\.tsv: .* add --stem"),
        (("--stem", "--exceptions", "nowhere.tsv"), r"nowhere\.tsv: no such file"),
        (("--reference", "nowhere.txt"), r"nowhere\.txt: no such file"),
    ],
)
def test_faults_are_said_in_one_line(
    run: Terminal, tmp_path: Path, options: tuple[object, ...], message: str
) -> None:
    for name, lines in {
        "out.txt": ["a", "b"],
        "a.txt": ["a", "b"],
        "b.txt": ["a"],
    }.items():
        write_lines(tmp_path / name, lines)
    out, first, second = (tmp_path / name for name in ("out.txt", "a.txt", "b.txt"))
    references = ("--reference", first, "--reference", second)
    with pytest.raises(SystemExit, match=message) as stop:
        run("score", "rouge", *references, *options, out)
    assert "\n" not in str(stop.value)


def test_items_replace_nothing_that_is_scored(run: Terminal, tmp_path: Path) -> None:
    texts = [tmp_path / "out.txt", tmp_path / "a.txt"]
    for path in texts:
        write_lines(path, ["a cat"])
    for path in texts:
        with pytest.raises(
            SystemExit, match=f"{path.name}: is an input as well: name another out"
        ):
            run("score", "rouge", "--reference", texts[1], "--items", path, texts[0])
        assert path.read_text("utf-8") == "a cat\n"


def test_no_lines_at_all(run: Terminal, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(SystemExit, match=r"empty\.txt: no lines to score"):
        run("score", "rouge", "--reference", empty, empty)
