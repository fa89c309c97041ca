"""``convs2s new-task``: the same task of the same pairs, whatever the format of their files."""

import gzip
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from convs2s.config.corpus import Languages
from convs2s.config.load import load
from convs2s.data.new_task import SIZES, NewTask, new_task
from convs2s.data.pair_files import Reading, read_files
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_lines
from convs2s.training.schedule import Schedule, TrainerState
from tests.conftest import Terminal
from tests.support.archives import make_archive
from tests.support.own_pair import PAGE, blocks

LANGUAGES = Languages(source="en", target="ro")
PAIRS = [
    ('He said "yes", twice.', "El a spus „da”, de două ori."),
    ("Tom & Ann; <b> they came", "Tom și Ana au venit"),
    ("", "fără sursă"),
]
ENGLISH, ROMANIAN = zip(*PAIRS, strict=True)


def tsv(pairs: list[tuple[str, str]], top: str = "", end: str = "\n") -> str:
    return top + "".join(f"{source}\t{target}{end}" for source, target in pairs)


def csv(separator: str, top: str, end: str = "\n") -> str:
    rows = [
        separator.join('"' + text.replace('"', '""') + '"' for text in pair)
        for pair in PAIRS
    ]
    return top + "".join(row + end for row in rows)


def records(wrapped: bool) -> str:
    rows = [{"en": source or None, "fr": "x", "ro": ro} for source, ro in PAIRS]
    return "".join(
        json.dumps({"id": 1, "translation": row} if wrapped else row) + "\n"
        for row in rows
    )


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


TMX = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx><body>' + "".join(
    f'<tu><tuv xml:lang="de"><seg>x</seg></tuv><tuv xml:lang="EN-us"><seg>{escaped(source)}'
    f'<ph x="1">{{\\b}}</ph></seg></tuv><tuv lang="ro_RO"><seg>\n {escaped(target)}</seg></tuv>'
    '<tuv xml:lang="en-GB"><seg>colour</seg></tuv></tu>'
    for source, target in PAIRS[:2]
)
TMX += "<tu><tuv xml:lang='ro'><seg>fără sursă</seg></tuv></tu></body></tmx>"
WMT = '<dataset id="newstest"><doc id="a"><src lang="en"><p>' + "".join(
    f'<seg id="{number}">{escaped(source)}</seg>'
    for number, source in enumerate(ENGLISH)
)
for translator, lines in (("A", ROMANIAN), ("B", ["b"] * 3)):
    WMT += f'</p></src><ref lang="ro" translator="{translator}"><p>'.replace(
        "</p></src>" if translator == "B" else "", ""
    )
    for number, line in enumerate(lines):
        WMT += f'<seg id="{number}">{escaped(line)}</seg>'
    WMT += "</p></ref>"
WMT += '<hyp system="x" lang="ro"><seg id="0">h</seg></hyp></doc></dataset>'

TEXTS = {
    "a.tsv": tsv(PAIRS),
    "bom_and_crlf.tsv": "\ufeff" + tsv(PAIRS, end="\r\n"),
    "named.tsv": tsv([("k", f"{ro}\t{en}") for en, ro in PAIRS], "id\tro\tEN-us\n"),
    "sides.tsv": tsv(PAIRS, "source\ttarget\n"),
    "languages.tsv": tsv(PAIRS, "English\tRomanian\n"),
    "own_names.tsv": tsv(PAIRS, "ENGLISH\t Română\n"),
    "no_accents.csv": csv(",", "english,romana\n"),
    "swapped.tsv": tsv([(ro, en) for en, ro in PAIRS], "Romanian\tEnglish\n"),
    "codes.tsv": tsv(PAIRS, "en\tro\n"),
    "quoted.tsv": csv("\t", ""),
    "spreadsheet.tsv": '"He said ""yes"", twice."\t' + tsv(PAIRS).partition("\t")[2],
    "ron.txt": tsv(PAIRS),
    "a.csv": csv(",", ""),
    "semicolons.csv": csv(";", "en;ro\r\n", "\r\n"),
    "a.jsonl": records(wrapped=True),
    "plain.json": records(wrapped=False),
    "a.tmx": TMX,
}


def read(*files: object, **reading: object) -> list[tuple[str, str]]:
    return [*read_files([str(file) for file in files], Reading(LANGUAGES, **reading))]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", ["", ".gz", ".zip"])
def test_every_format_has_the_same_pairs(
    tmp_path: Path, name: str, packed: str
) -> None:
    path = tmp_path / (name + packed)
    content = TEXTS[name].encode()
    if packed == ".zip":
        odd = {"README": b"r", "__MACOSX/._" + name: b"m"}
        make_archive(path, {f"folder/{name}": content} | odd)
    else:
        path.write_bytes(gzip.compress(content) if packed else content)
    if name == "ron.txt" and packed == ".zip":
        # Nothing in its name says that it is a table.
        path = Path(f"{path}#folder/{name}")
    assert read(path) == PAIRS


def test_utf_16_is_read_where_the_file_states_it(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_bytes(TMX.encode("utf-16"))
    assert read(tmp_path / "a.tmx") == PAIRS


@pytest.mark.parametrize("wrapped", [True, False])
def test_parquet(tmp_path: Path, wrapped: bool) -> None:
    rows = [json.loads(line) for line in records(wrapped).splitlines()]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == PAIRS


def test_two_files_of_lines_are_told_apart_by_their_names(tmp_path: Path) -> None:
    write_lines(tmp_path / "c.ro.gz", ROMANIAN)
    write_lines(tmp_path / "c.en", ENGLISH)
    assert read(tmp_path / "c.ro.gz", tmp_path / "c.en") == PAIRS
    write_lines(tmp_path / "ours", ENGLISH)
    write_lines(tmp_path / "theirs", ROMANIAN)
    assert read(tmp_path / "ours", tmp_path / "theirs") == PAIRS
    # As OPUS packs them.
    with zipfile.ZipFile(tmp_path / "en-ro.txt.zip", "w") as archive:
        for name, lines in (("S.en-ro.en", ENGLISH), ("S.en-ro.ro", ROMANIAN)):
            archive.writestr(name, "".join(f"{line}\n" for line in lines))
        archive.writestr("LICENSE", "free")
        archive.writestr("S.en-ro.xml", "<x/>")
    assert read(tmp_path / "en-ro.txt.zip") == PAIRS


def test_columns_and_references_are_chosen_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("English\tby\tRomanian\na\tb\tc\n")
    named = read(tmp_path / "a.tsv", columns=("English", "Romanian"))
    assert named == [("a", "c")]
    numbered = read(tmp_path / "a.tsv", columns=("3", "1"))
    assert numbered == [("c", "a")]
    (tmp_path / "a.tsv").write_text("one\tby\tunu\na\tb\tc\n")
    numbered = read(tmp_path / "a.tsv", columns=("3", "1"))
    assert numbered == [("unu", "one"), ("c", "a")]
    (tmp_path / "newstest.xml").write_text(WMT, "utf-8")
    assert read(tmp_path / "newstest.xml", reference="A") == PAIRS
    assert read(tmp_path / "newstest.xml", reference="B")[0] == (ENGLISH[0], "b")
    (tmp_path / "a.jsonl").write_text('{"src_text": "a", "x": 1, "mt": "b"}')
    assert read(tmp_path / "a.jsonl", columns=("src_text", "mt")) == [("a", "b")]


@pytest.fixture
def make(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make the task NAME of pairs, and return the folder of its text."""
    monkeypatch.chdir(copy)

    def task(name: str, pairs: list[tuple[str, str]], **files: list[str]) -> Path:
        Path(f"{name}.tsv").write_text(tsv(pairs), "utf-8")
        wanted = NewTask(name, [f"{name}.tsv"], Reading(LANGUAGES), **files)
        new_task(wanted)
        return wanted.folder

    return task


def pairs_in(folder: Path, split: str) -> list[tuple[str, str]]:
    sides = (read_lines(folder / f"{split}.{language}") for language in ("en", "ro"))
    return [*zip(*sides, strict=True)]


SPLITS = ("train", "valid", "test")


def test_no_side_of_a_held_pair_is_in_the_training_text(
    make: Callable[..., Path],
) -> None:
    # Each source has three translations, and each target is that of several sources.
    pairs = [(f"Source {n % 700}", f"Target {n % 1100}") for n in range(2100)]
    pairs += [(f"SOURCE  {n}", f"target {n}!") for n in range(700)]
    folder = make("many", [*pairs, *pairs[:50]])
    sides = {split: [*zip(*pairs_in(folder, split), strict=True)] for split in SPLITS}
    keys = {
        split: [{re.sub(r"\W", "", text).lower() for text in side} for side in both]
        for split, both in sides.items()
    }
    for first, second in (("train", "valid"), ("train", "test"), ("valid", "test")):
        for side in (0, 1):
            assert not keys[first][side] & keys[second][side]
    for split in ("valid", "test"):
        assert len(sides[split][0]) == len(keys[split][0]) == len(keys[split][1]) > 10
    trained = pairs_in(folder, "train")
    assert len(trained) == len(set(trained)) > 1500
    places = [pairs.index(pair) for pair in trained if pair[0].startswith("Source")]
    assert places == sorted(places)


def test_a_pair_stays_in_its_split_when_others_are_added(
    make: Callable[..., Path],
) -> None:
    pairs = [(f"One {n}", f"Unu {n}") for n in range(25_000)]
    small, large = make("small_one", pairs[:15_000]), make("large_one", pairs)
    found = {split: {*pairs_in(small, split)} for split in SPLITS}
    later = {split: {*pairs_in(large, split)} for split in SPLITS}
    assert found["train"] <= later["train"]
    # The shares are a twentieth, and a fortieth for more than 20,000 pairs.
    for split in ("valid", "test"):
        assert later[split] & {*pairs[:15_000]} <= found[split]
        assert 650 < len(found[split]) < 850
        assert 500 < len(later[split]) < 750


def test_text_of_its_own_for_validation_and_test(make: Callable[..., Path]) -> None:
    Path("mine.en").write_text("Held\nHeld twice\n")
    Path("mine.ro").write_text("Ținut\nDe două ori\n", "utf-8")
    Path("held.tsv").write_text(tsv([("Held", "Ținut"), ("", "x")]), "utf-8")
    pairs = [(f"One {n}", f"Unu {n}") for n in range(500)]
    pairs += [(" held!", "alt"), ("alt", "ținut "), ("other", "de două  ORI …")]
    folder = make("given", pairs, test=["mine.en", "mine.ro"], valid=["held.tsv"])
    assert pairs_in(folder, "test") == [
        ("Held", "Ținut"),
        ("Held twice", "De două ori"),
    ]
    assert pairs_in(folder, "valid") == [("Held", "Ținut")]
    assert pairs_in(folder, "train") == pairs[:500]


def test_what_a_kill_left_is_made_again(make: Callable[..., Path]) -> None:
    pairs = [(f"Source {n}", f"Target {n}") for n in range(300)]
    given_again = {"same": pairs, "more": pairs * 2 + [("x", "y")], "less": pairs[50:]}
    for name, now in given_again.items():
        folder = make(name, pairs)
        file = Path("config/tasks", f"{name}.yaml")
        # As between the two, where the folder keeps what becomes the YAML file.
        file.rename(folder / f"{file.name}.partial")
        make(name, now)
        made = [pair for split in SPLITS for pair in pairs_in(folder, split)]
        assert sorted(made) == sorted(set(now))
        assert len(list(folder.iterdir())) == 2 * len(SPLITS)
        assert (
            f"{len(pairs_in(folder, 'train'))} pairs of {name}.tsv" in file.read_text()
        )
    # Of a later kill, both are there.
    (folder / f"{file.name}.partial").touch()
    with pytest.raises(UserError, match="exists already"):
        make("less", pairs)


def test_the_command_as_typed(
    copy: Path, monkeypatch: pytest.MonkeyPatch, run: Terminal
) -> None:
    monkeypatch.chdir(copy)
    pairs = [(f"Word{n} one\u2028 two", f"Слово{n} \u00a0три") for n in range(300)]
    pairs += [("", "x"), ("\ufffd", "x"), pairs[0]]
    Path("My pairs.v2.tsv").write_text(tsv(pairs), "utf-8")
    said = run("new-task", "My pairs.v2.tsv", "--languages", "en", "ru")
    assert said.startswith("read 303 pairs of My pairs.v2.tsv\n")
    assert (
        "1 with an empty side, 1 with unreadable characters (U+FFFD), 1 repeat" in said
    )
    swap = "; wrong way round? add --columns 2 1\n"
    first = tuple(map(repr, pairs[0]))
    assert f"first pair: en {first[0]}, ru {first[1]}{swap}" in said
    assert "model small_plateau, 2,000 BPE merges of each language\n" in said
    assert said.endswith("\nnext: snakemake results/my_pairs_en_ru/bleu.txt\n")
    counts = [int(count) for count in re.findall(r"wrote (\d+) pairs", said)]
    assert len(counts) == 3
    assert sum(counts) == 300
    task = load(copy).tasks["my_pairs_en_ru"]
    assert task.language_pair == ("en", "ru")
    assert (task.vocabulary.merges, task.vocabulary.joint) == (2000, False)
    assert task.headline.model == "small_plateau"
    for split in SPLITS:
        ((source, target),) = task.file_pairs(split)
        for line in read_lines(source):
            assert re.fullmatch(r"Word\d+ one two", line)
        for line in read_lines(target):
            assert re.fullmatch("Слово\\d+ \u00a0три", line)
    written = {path: path.read_bytes() for path in copy.glob("data/*/*")}
    again = (
        "yaml exists already: choose another name, or delete config/tasks/my_pairs_en_ru.yaml and "
        "data/my_pairs_en_ru to make it again"
    )
    with pytest.raises(SystemExit, match=again):
        run("new-task", "My pairs.v2.tsv", "--languages", "en", "ru")
    (copy / "config/tasks/my_pairs_en_ru.yaml").unlink()
    with pytest.raises(
        SystemExit, match="data/my_pairs_en_ru: exists already: remove it"
    ):
        run("new-task", "My pairs.v2.tsv", "--languages", "en", "ru")
    assert written == {path: path.read_bytes() for path in copy.glob("data/*/*")}
    shutil.rmtree("data")
    run("new-task", "My pairs.v2.tsv", "--languages", "en", "ru")
    assert written == {path: path.read_bytes() for path in copy.glob("data/*/*")}


@pytest.mark.parametrize(
    ("top", "columns", "said_first"),
    [
        ("English\tRomanian\n", [], "en 'One 0', ro 'Unu 0'\n"),
        ("Romanian\tEnglish\n", [], "en 'Unu 0', ro 'One 0'\n"),
        (
            "",
            ["2", "1"],
            "en 'Unu 0', ro 'One 0'; wrong way round? add --columns 1 2\n",
        ),
        (
            "engl\trum\n",
            [],
            "en 'engl', ro 'rum'; wrong way round? add --columns 2 1\n",
        ),
    ],
)
def test_the_first_pair_and_a_row_that_is_none_are_shown(
    copy: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Terminal,
    top: str,
    columns: list[str],
    said_first: str,
) -> None:
    monkeypatch.chdir(copy)
    Path("a.tsv").write_text(tsv([(f"One {n}", f"Unu {n}") for n in range(300)], top))
    chosen = ["--columns", *columns] if columns else []
    said = run("new-task", "a.tsv", "--languages", "en", "ro", *chosen)
    assert f"\nfirst pair: {said_first}" in said
    titles = ", ".join(map(repr, top.split()))
    left_out = f"left out the first row of a.tsv, names of columns: {titles}\n"
    assert (left_out in said) == ("English" in top)
    assert said.startswith(f"read {300 + top.startswith('engl')} pairs of a.tsv\n")


def test_the_page_begins_with_the_command_and_has_its_sizes(root: Path) -> None:
    typed = blocks(root, "bash")
    assert (
        typed[0] == "convs2s new-task pairs.tsv --languages en nl --name mine_en_nl\n"
    )
    page = (root / PAGE).read_text("utf-8")
    rows = re.findall(r"^\| (?:up to|more than) .*", page, re.MULTILINE)
    assert len(rows) == len(SIZES)
    known = load(root).models
    for row, size in zip(rows, SIZES, strict=True):
        assert f"`{size.model}`" in row
        assert row.endswith(f"| {size.merges} |")
        assert size.model in known


@pytest.mark.parametrize("pairs", [1, 5_000, 12_000, 170_000, 200_000])
def test_validation_ends_the_recommended_training_whatever_the_number_of_pairs(
    root: Path, pairs: int
) -> None:
    size = next(size for size in SIZES if pairs <= size.most_pairs)
    assert size.model == "small_plateau"
    recipe = load(root).models[size.model].training
    assert recipe.maximum_epochs is None
    # 60 epochs that get better, and then as many as it takes that do not.
    state = TrainerState(Schedule(recipe.learning_rate), recipe.learning_rate, 1)
    losses = [8 - epoch / 10 for epoch in range(60)]
    while state.schedule.stop_reason is None:
        state.tokens = 1
        loss = losses[state.epoch - 1] if state.epoch <= 60 else 9.0
        state.finish_epoch(loss, None, recipe, bleu=0.0)
        better = state.epoch <= 63
        assert better == (state.schedule.learning_rate == recipe.learning_rate)
    # Three without progress, and then one at each of a half to a sixteenth of the rate.
    assert len(state.history) == 60 + 3 + 4
    assert state.schedule.best_epoch == 60
