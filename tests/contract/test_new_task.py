"""``convs2s new-task``: the same task of the same pairs, whatever the format of their files."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from convs2s.config.corpus import Languages
from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.data.new_task import SIZES, NewTask, new_task
from convs2s.data.pair_files import Reading, read_files
from convs2s.files.text import read_line_pairs, write_lines
from convs2s.training.schedule import Schedule
from tests.conftest import Terminal
from tests.support.archives import make_archive
from tests.support.refusals import refuses, says

pytestmark = pytest.mark.usefixtures("copy", "in_folder")

LANGUAGES = Languages(source="en", target="ro")
PAIRS = [
    ('He said "yes", twice.', "El a spus „da”, de două ori."),
    ("Tom & Ann; <b> they came", "Tom și Ana au venit"),
    ("", "fără sursă"),
]

TSV = """\
He said "yes", twice.\tEl a spus „da”, de două ori.
Tom & Ann; <b> they came\tTom și Ana au venit
\tfără sursă
"""

SWAPPED = """\
id\tro\tEN-us
k\tEl a spus „da”, de două ori.\tHe said "yes", twice.
k\tTom și Ana au venit\tTom & Ann; <b> they came
k\tfără sursă\t
"""

CSV = """\
"He said ""yes"", twice.","El a spus „da”, de două ori."
"Tom & Ann; <b> they came","Tom și Ana au venit"
"","fără sursă"
"""

RECORDS = """\
{"en": "He said \\"yes\\", twice.", "fr": "x", "ro": "El a spus „da”, de două ori."}
{"en": "Tom & Ann; <b> they came", "fr": "x", "ro": "Tom și Ana au venit"}
{"en": null, "fr": "x", "ro": "fără sursă"}
"""

TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx><body>
<tu>
<tuv xml:lang="de"><seg>x</seg></tuv>
<tuv xml:lang="EN-us"><seg>He said "yes", twice.<ph x="1">{\\b}</ph></seg></tuv>
<tuv lang="ro_RO"><seg>
 El a spus „da”, de două ori.</seg></tuv>
<tuv xml:lang="en-GB"><seg>colour</seg></tuv>
</tu>
<tu>
<tuv xml:lang="en"><seg>Tom &amp; Ann; &lt;b> they came</seg></tuv>
<tuv xml:lang="ro"><seg>Tom și Ana au venit</seg></tuv>
</tu>
<tu><tuv xml:lang='ro'><seg>fără sursă</seg></tuv></tu>
</body></tmx>"""

WMT = """<dataset id="newstest"><doc id="a">
<src lang="en"><p>
<seg id="0">He said "yes", twice.</seg>
<seg id="1">Tom &amp; Ann; &lt;b> they came</seg>
<seg id="2"></seg>
</p></src>
<ref lang="ro" translator="A"><p>
<seg id="0">El a spus „da”, de două ori.</seg>
<seg id="1">Tom și Ana au venit</seg>
<seg id="2">fără sursă</seg>
</p></ref>
<ref lang="ro" translator="B"><p>
<seg id="0">b</seg><seg id="1">b</seg><seg id="2">b</seg>
</p></ref>
<hyp system="x" lang="ro"><seg id="0">h</seg></hyp>
</doc></dataset>"""

TEXTS = {
    "a.tsv": TSV,
    "bom_and_crlf.tsv": "\ufeff" + TSV.replace("\n", "\r\n"),
    "codes_in_another_order.tsv": SWAPPED,
    "sides.tsv": "source\ttarget\n" + TSV,
    "own_names.tsv": "ENGLISH\t Română\n" + TSV,
    "no_accents.csv": "english,romana\n" + CSV,
    "quoted.tsv": CSV.replace('","', '"\t"'),
    "spreadsheet.tsv": TSV.replace(
        'He said "yes", twice.', '"He said ""yes"", twice."'
    ),
    "ron.txt": TSV,  # nothing in its name says that it is a table
    "a.csv": CSV,
    "semicolons.csv": "en;ro\r\n" + CSV.replace('","', '";"').replace("\n", "\r\n"),
    "plain.json": RECORDS,
    "a.jsonl": re.sub("(.*)\n", r'{"id": 1, "translation": \1}\n', RECORDS),
    "a.tmx": TMX,
}


def tsv(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def read(*files: str, **reading: Any) -> list[tuple[str, str]]:
    return [*read_files(files, Reading(LANGUAGES, **reading))]


def test_every_format_has_the_same_pairs() -> None:
    for name, text in TEXTS.items():
        Path(name).write_bytes(text.encode())
        assert read(name) == PAIRS, name
    # Packed, and in another encoding.
    Path("a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    assert read("a.csv.gz") == PAIRS
    odd = {"README": b"r", "__MACOSX/._a.tsv": b"m"}
    make_archive(Path("a.zip"), {"b/a.tsv": TSV.encode()} | odd)
    assert read("a.zip") == PAIRS
    Path("a.tmx").write_bytes(TMX.encode("utf-16"))
    assert read("a.tmx") == PAIRS
    for name in ("plain.json", "a.jsonl"):
        rows = pa.Table.from_pylist(list(map(json.loads, TEXTS[name].splitlines())))
        parquet.write_table(rows, "a.parquet")
        assert read("a.parquet") == PAIRS


def test_two_files_of_lines_are_told_apart_by_their_names() -> None:
    english, romanian = zip(*PAIRS, strict=True)
    for first, second in (("c.en", "c.ro.gz"), ("ours", "theirs")):
        write_lines(first, english)
        write_lines(second, romanian)
        assert read(first, second) == PAIRS
    assert read("c.ro.gz", "c.en") == PAIRS
    # As OPUS packs them.
    opus = {
        "S.en-ro.en": Path("ours").read_bytes(),
        "S.en-ro.ro": Path("theirs").read_bytes(),
        "LICENSE": b"free",
        "S.en-ro.xml": b"<x/>",
    }
    make_archive(Path("en-ro.txt.zip"), opus)
    assert read("en-ro.txt.zip") == PAIRS


def test_columns_and_references_are_chosen_by_name() -> None:
    Path("a.tsv").write_text("English\tby\tRomanian\na\tb\tc\n")
    assert read("a.tsv", columns=("English", "Romanian")) == [("a", "c")]
    assert read("a.tsv", columns=("3", "1")) == [("c", "a")]
    Path("a.tsv").write_text('one "1"\tby ""\t"unu"\n')
    assert read("a.tsv", columns=("3", "1")) == [('"unu"', 'one "1"')]
    Path("newstest.xml").write_text(WMT, "utf-8")
    assert read("newstest.xml", reference="A") == PAIRS
    assert read("newstest.xml", reference="B")[0] == (PAIRS[0][0], "b")
    Path("a.jsonl").write_text('{"src_text": "a", "x": 1, "mt": "b"}')
    assert read("a.jsonl", columns=("src_text", "mt")) == [("a", "b")]


def make(name: str, pairs: list[tuple[str, str]], **files: list[str]) -> Path:
    """Make the task NAME of pairs, and return the folder of its text."""
    Path(f"{name}.tsv").write_text(tsv(pairs), "utf-8")
    wanted = NewTask(name, [f"{name}.tsv"], Reading(LANGUAGES), **files)
    new_task(wanted)
    return wanted.folder


def pairs_in(folder: Path, split: str, target: str = "ro") -> list[tuple[str, str]]:
    return [*read_line_pairs(folder / f"{split}.en", folder / f"{split}.{target}")]


SPLITS = ("train", "valid", "test")


def test_no_side_of_a_held_pair_is_in_the_training_text() -> None:
    # Each source has three translations, and each target is that of several sources.
    pairs = [(f"Source {n % 700}", f"Target {n % 1100}") for n in range(2100)]
    pairs += [(f"SOURCE  {n}", f"target {n}!") for n in range(700)]
    folder = make("many", [*pairs, *pairs[:50]])
    trained = pairs_in(folder, "train")
    assert len(trained) == len(set(trained)) > 1500
    places = [pairs.index(pair) for pair in trained if pair[0].startswith("Source")]
    assert places == sorted(places)
    for side in (0, 1):
        seen: set[str] = set()
        for split in SPLITS:
            texts = [pair[side] for pair in pairs_in(folder, split)]
            keys = {re.sub(r"\W", "", text).lower() for text in texts}
            assert not keys & seen
            seen |= keys
            if split != "train":
                assert len(texts) == len(keys) > 10


def test_a_pair_stays_in_its_split_when_others_are_added() -> None:
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


def test_text_of_its_own_for_validation_and_test() -> None:
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


def test_what_a_kill_left_is_made_again() -> None:
    pairs = [(f"Source {n}", f"Target {n}") for n in range(300)]
    folder = make("mine", pairs)
    file = Path("config/tasks/mine.yaml")
    # As between the two, where the folder keeps what becomes the YAML file.
    unfinished = file.rename(folder / "mine.yaml.partial")
    others = [*pairs[50:], ("x", "y")]
    make("mine", others)
    made = [pair for split in SPLITS for pair in pairs_in(folder, split)]
    assert sorted(made) == sorted(others)
    assert len(list(folder.iterdir())) == 2 * len(SPLITS)
    trained = len(pairs_in(folder, "train"))
    assert f"{trained} pairs of mine.tsv" in file.read_text()
    # Of a later kill, both are there.
    unfinished.touch()
    refuses("exists already", make, "mine", pairs)


MADE = """\
languages: {source: "en", target: "ru"}
corpus:
  train: [{source: "data/my_pairs_en_ru/train.en", target: "data/my_pairs_en_ru/train.ru"}]
  valid: [{source: "data/my_pairs_en_ru/valid.en", target: "data/my_pairs_en_ru/valid.ru"}]
  tests:
    test: [{source: "data/my_pairs_en_ru/test.en", target: "data/my_pairs_en_ru/test.ru"}]
vocabulary: {kind: bpe, merges: 2000, joint: false}
headline: {model: small_plateau, seeds: [1], tests: [test], decoding: beam5}
"""


def test_the_command_as_typed(run: Terminal) -> None:
    typed = ("new-task", "My pairs.v2.tsv", "--languages", "en", "ru")
    pairs = [(f"Word{n} one\u2028 two", f"Слово{n} \u00a0три") for n in range(300)]
    given = [*pairs, ("", "x"), ("\ufffd", "x"), pairs[0]]
    Path("My pairs.v2.tsv").write_text(tsv(given), "utf-8")
    source, target = map(repr, pairs[0])
    says(
        run(*typed),
        "read 303 pairs of My pairs.v2.tsv\n",
        "1 with an empty side, 1 with unreadable characters (U+FFFD), 1 repeat",
        f"first pair: en {source}, ru {target}; wrong way round? add --columns 2 1\n",
        "model small_plateau, 2,000 BPE merges of each language\n",
        "\nnext: snakemake results/my_pairs_en_ru/bleu.txt\n",
    )
    file = Path("config/tasks/my_pairs_en_ru.yaml")
    assert file.read_text().endswith(MADE)
    assert load(Path()).tasks["my_pairs_en_ru"].language_pair == ("en", "ru")
    folder = Path("data/my_pairs_en_ru")
    made = [pair for split in SPLITS for pair in pairs_in(folder, split, "ru")]
    assert sorted(made) == sorted((en.replace("\u2028", ""), ru) for en, ru in pairs)
    written = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(SystemExit, match="delete config/tasks/my_pairs_en_ru"):
        run(*typed)
    file.unlink()
    with pytest.raises(SystemExit, match="data/my_pairs_en_ru: exists already: remove"):
        run(*typed)
    assert written == {path: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree("data")
    run(*typed)
    assert written == {path: path.read_bytes() for path in folder.iterdir()}


def test_the_first_pair_and_a_row_that_is_none_are_shown(run: Terminal) -> None:
    typed = ("new-task", "a.tsv", "--languages", "en", "ro", "--name")
    text = tsv([(f"One {n}", f"Unu {n}") for n in range(300)])
    Path("a.tsv").write_text("Romanian\tEnglish\n" + text)
    says(
        run(*typed, "swapped"),
        "read 300 pairs of a.tsv\n",
        "left out the first row of a.tsv, names of columns: 'Romanian', 'English'\n",
        "\nfirst pair: en 'Unu 0', ro 'One 0'\n",
    )
    Path("a.tsv").write_text("engl\trum\n" + text)
    said = run(*typed, "unnamed")
    says(said, "read 301 pairs of a.tsv\n", "\nfirst pair: en 'engl', ro 'rum'; wrong")
    assert "left out the first row" not in said
    said = run(*typed, "chosen", "--columns", "2", "1")
    says(said, "en 'rum', ro 'engl'; wrong way round? add --columns 1 2\n")


def test_the_page_begins_with_the_command_and_has_its_sizes(root: Path) -> None:
    page = (root / "docs/own_language_pair.md").read_text("utf-8")
    typed = "convs2s new-task pairs.tsv --languages en nl --name mine_en_nl"
    assert page.partition("```")[2].startswith(f"bash\n{typed}\n```\n")
    row = r"^\| (?:up to|more than) [^`]*`(\w+)`.*\| (\d+) \|$"
    stated = re.findall(row, page, re.MULTILINE)
    assert stated == [(size.model, str(size.merges)) for size in SIZES]


def test_validation_ends_the_recommended_training_of_however_few_pairs(
    settings: Settings,
) -> None:
    small = {size.most_pairs: size.model for size in SIZES[:3]}
    assert small == dict.fromkeys([5_000, 20_000, 200_000], "small_plateau")
    recipe = settings.models["small_plateau"].training
    assert recipe.maximum_epochs is None
    # 60 epochs that get better, and then as many as it takes that do not.
    schedule, epoch = Schedule(recipe.learning_rate), 0
    while schedule.stop_reason is None:
        epoch += 1
        loss = 8 - epoch / 10 if epoch <= 60 else 9.0
        schedule = schedule.after_epoch(epoch, loss, recipe, bleu=0.0)
    # Three without progress, and then one at each of a half to a sixteenth of the rate.
    assert (epoch, schedule.best_epoch) == (60 + 3 + 4, 60)
