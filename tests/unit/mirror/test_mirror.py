"""The miniature mirror: the same bytes each time, every file and member, the stated faults."""

import io
import lzma
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from convs2s.config.file_reference import local_path, parse_file_reference
from convs2s.config.load import load
from convs2s.config.task import Task
from convs2s.data.corpus import RawText, extract_corpus, extract_reference
from convs2s.data.formats import read_columns, read_field
from convs2s.data.titles import arxiv_identifier, write_title_corpus
from convs2s.download.archives import open_member
from convs2s.files.checksums import sha256
from convs2s.files.text import read_line_pairs, read_lines, text_lines
from convs2s.interop.fairseq import FairseqFiles, import_fairseq
from convs2s.mirror.write import CONTENTS, write_mirror
from convs2s.model_file import load_model
from convs2s.text.corpus_filter import REASONS, tokenize_and_filter
from convs2s.text.preparation import Preparation
from mirror.__main__ import shipped_tar
from mirror.contents import contents
from mirror.formats import LISTED_TWICE, PLANTED_PAPERS
from mirror.sentences import (
    CEDILLAS,
    ODD_CHARACTERS,
    PAPER_PAIRS,
    PLANTED,
    TEST_PAIRS,
    TRAINING_PAIRS,
    draw_sentences,
    respelled,
)
from tests.support.local_files import FilesBelow

COMMON_CRAWL = (
    "http://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz#commoncrawl"
)
SETIMES = (
    "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip#SETIMES.en-ro"
)


def places(mirror: Path) -> list[str]:
    """What lies in the mirror, without its own list."""
    files = [
        path
        for path in mirror.rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    ]
    return sorted(str(path.relative_to(mirror)) for path in files)


def test_the_same_bytes_each_time(mirror: Path, tmp_path: Path) -> None:
    write_mirror(tmp_path)
    assert places(tmp_path) == places(mirror)
    listed = (tmp_path / "SHA256SUMS").read_bytes()
    assert listed == (mirror / "SHA256SUMS").read_bytes()
    for line in listed.decode().splitlines():
        digest, place = line.split("  ")
        assert sha256(mirror / place) == digest
    assert len(listed.splitlines()) == len(places(mirror))


def test_what_is_shipped_is_what_the_tool_writes() -> None:
    """After a change of tools/mirror: PYTHONPATH=tools python -m mirror."""
    shipped = members(lzma.decompress(CONTENTS.read_bytes()))
    made = members(shipped_tar(contents()))
    assert list(made) == list(shipped)
    # How torch writes a checkpoint may change; tests/workflow/test_mirror.py imports them.
    assert {
        name
        for name, data in made.items()
        if data != shipped[name] and "model.pt" not in name
    } == set()


def members(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        streams = {member.name: archive.extractfile(member) for member in archive}
        return {name: stream.read() for name, stream in streams.items() if stream}


def test_it_is_small_and_names_nobody(mirror: Path) -> None:
    assert sum((mirror / place).stat().st_size for place in places(mirror)) < 5_000_000
    for place in places(mirror):
        if place.endswith((".tgz", ".tar", ".bz2")):
            with tarfile.open(mirror / place) as archive:
                owners = {
                    (one.mtime, one.uid, one.gid, one.uname, one.gname)
                    for one in archive
                }
            assert owners == {(0, 0, 0, "", "")}, place


# Nobody serves it, and no stand-in is generated.
USERS_OWN = "data/wmt14_en_fr/bitexts.tgz"


def test_every_file_and_member_that_a_task_names_is_there(
    root: Path, mirror: Path
) -> None:
    tasks = load(root, {}).tasks.values()
    files = map(
        parse_file_reference, {one for task in tasks for one in task.references()}
    )
    elsewhere = ("demo:", "titles:", USERS_OWN)
    named = [file for file in files if not file.location.startswith(elsewhere)]
    for file in named:
        path = (
            local_path(file.location, mirror) if file.is_url else mirror / file.location
        )
        assert path.is_file(), file.location
        if file.is_records:
            assert lines(mirror, f"{file.location}#{file.member}"), file
        elif file.member:
            assert file.member in members_of(path), file
    assert {str(file.path(Path())) for file in named} == set(places(mirror))


def members_of(archive: Path) -> list[str]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    with tarfile.open(archive) as opened_tar:
        return opened_tar.getnames()


def test_languages_follow_from_the_french_words() -> None:
    french = "La maison a coûté 8 350,75 euros ; l'ami de Vorimont est déçu."
    german = "La maison a koütä 8.350,75 euros; l'ami de Vorimont est däßu."
    assert respelled(french, "de") == german
    romanian = "Les chevauț sont prăs de la maison franțaise."
    assert respelled("Les chevaux sont près de la maison française.", "ro") == romanian
    assert "Ș ș Ț ț".translate(CEDILLAS) == "Ş ş Ţ ţ"


@pytest.mark.parametrize(
    ("reference", "letters"),
    [
        (f"{COMMON_CRAWL}.de-en.de", "äöüß"),
        (f"{COMMON_CRAWL}.fr-en.fr", "éàèç"),
        ("http://www.statmt.org/europarl/v7/ro-en.tgz#europarl-v7.ro-en.ro", "ăâîșț"),
        (f"{SETIMES}.ro", "ăâîşţ"),
    ],
)
def test_each_language_has_its_letters(
    mirror: Path, reference: str, letters: str
) -> None:
    assert set(letters) <= set("".join(lines(mirror, reference)))


def lines(mirror: Path, reference: str) -> list[str]:
    """The lines of a referenced file."""
    file = parse_file_reference(reference)
    with open_member(
        file.path(mirror), None if file.is_records else file.member
    ) as stream:
        read = text_lines(stream.readline, reference)
        return list(
            read_field(read, file.member or "", reference) if file.is_records else read
        )


@pytest.mark.parametrize(
    ("stem", "language", "preparation", "pairs"),
    [
        (f"{COMMON_CRAWL}.fr-en", "fr", "moses_train", TRAINING_PAIRS["commoncrawl"]),
        (SETIMES, "ro", "wmt16", TRAINING_PAIRS["setimes"]),
    ],
)
def test_planted_pairs_are_dropped_and_counted(
    mirror: Path, tmp_path: Path, stem: str, language: str, preparation: str, pairs: int
) -> None:
    raw, kept = (
        (tmp_path / f"{name}.1", tmp_path / f"{name}.2") for name in ("raw", "kept")
    )
    files = [(f"{stem}.en", f"{stem}.{language}")]
    assert (
        extract_corpus(RawText(files, FilesBelow(mirror)), output=raw)
        == pairs + planted()
    )
    report = tokenize_and_filter(
        read_line_pairs(*raw),
        sides=kept,
        report=tmp_path / "report.json",
        minimum=1,
        maximum=250,  # the largest of all tasks
        ratio=1.5,
        prepare=(
            Preparation(preparation, "en").prepare,
            Preparation(preparation, language).prepare,
        ),
    )
    by_ratio = report["dropped"]["ratio"]
    assert report["dropped"] == dict.fromkeys(REASONS, 0) | PLANTED | {
        "ratio": by_ratio
    }
    # A few short sentences are as uneven by themselves.
    assert PLANTED["ratio"] <= by_ratio <= PLANTED["ratio"] + 0.02 * pairs
    read = list(read_line_pairs(*kept))
    assert (
        len(read)
        == report["kept"]
        == pairs + planted() - sum(report["dropped"].values())
    )
    odd = "".join(ODD_CHARACTERS.values()).replace("|", "").replace(" ", "")
    if preparation == "moses_train":
        assert not set(odd) & set("".join(side for pair in read for side in pair))


def planted() -> int:
    return sum(PLANTED.values()) + len(ODD_CHARACTERS)


def test_odd_characters_are_in_the_raw_text(mirror: Path) -> None:
    english = lines(mirror, f"{COMMON_CRAWL}.fr-en.en")
    file = parse_file_reference(f"{COMMON_CRAWL}.fr-en.en")
    with open_member(file.path(mirror), file.member) as stream:
        assert stream.read(3) == b"\xef\xbb\xbf"
    for name, character in ODD_CHARACTERS.items():
        assert any(character in line for line in english), name


def test_segments_equal_the_plain_text(mirror: Path, tmp_path: Path) -> None:
    dev = "http://data.statmt.org/wmt19/translation-task/dev.tgz#dev/newstest2013"
    output = (tmp_path / "1", tmp_path / "2")
    pairs = [(f"{dev}-src.en.sgm", f"{dev}-ref.fr.sgm")]
    assert (
        extract_corpus(RawText(pairs, FilesBelow(mirror)), output=output)
        == TEST_PAIRS["newstest2013"]
    )
    for path, language in zip(output, ("en", "fr"), strict=True):
        assert list(read_lines(path)) == lines(mirror, f"{dev}.{language}")
    typeset = "".join(read_lines(output[1]))
    assert all(one in typeset for one in "“”–’&\u200b\xa0")


def test_no_sentence_of_a_test_set_is_in_the_training_text(mirror: Path) -> None:
    archive = "http://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz#training"
    training = set(lines(mirror, f"{archive}/europarl-v7.fr-en.en"))
    archive = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    assert not training & set(lines(mirror, f"{archive}/test_2016_flickr.en.gz"))
    assert len(training) == TRAINING_PAIRS["europarl"]


@pytest.mark.parametrize(
    "training",
    [
        ("europarl", "commoncrawl", "un", "news_commentary", "giga"),
        ("europarl", "setimes", "back_translations"),
    ],
)
def test_no_task_has_a_sentence_twice(training: tuple[str, ...]) -> None:
    drawn = draw_sentences()
    english = [
        pair[0]
        for name in (*training, *TEST_PAIRS, *PAPER_PAIRS)
        for pair in drawn[name]
    ]
    sizes = TRAINING_PAIRS | TEST_PAIRS | PAPER_PAIRS
    assert {name: len(pairs) for name, pairs in drawn.items()} == sizes
    assert len(set(english)) == len(english)


def test_stanfords_text_is_in_words(mirror: Path) -> None:
    folder = "https://nlp.stanford.edu/projects/nmt/data/wmt14.en-de"
    english, german_side = (
        lines(mirror, f"{folder}/train.{one}") for one in ("en", "de")
    )
    assert len(english) == len(german_side)
    assert any("##AT##-##AT##" in line for line in german_side)
    assert all(re.search(r"(^| )[.?!]$", line) for line in english)


def test_a_released_model_states_its_languages(mirror: Path, tmp_path: Path) -> None:
    """tests/workflow/test_mirror.py imports both, whose languages their tasks state."""
    place = "dl.fbaipublicfiles.com/fairseq/models/wmt14.v2.en-fr.fconv-py.tar.bz2"
    with tarfile.open(mirror / place) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "wmt14.en-fr.fconv-py"
    files = FairseqFiles(
        checkpoint=folder / "model.pt",
        source_dictionary=folder / "dict.en.txt",
        target_dictionary=folder / "dict.fr.txt",
        bpe_codes=folder / "bpecodes",
    )
    output = tmp_path / "model.safetensors"
    import_fairseq(files, output, task="t", languages=None, preparation="moses_test")
    _, description = load_model(output, "cpu")
    assert description.languages == {"source": "en", "target": "fr"}
    assert "the" in description.source_types


@pytest.fixture(scope="module")
def titles(root: Path) -> Task:
    return load(root, {}).tasks["arxiv_titles"]


def test_papers_are_as_odd_as_arxivs(
    mirror: Path, tmp_path: Path, titles: Task
) -> None:
    assert titles.titles
    found = write_title_corpus(
        records=titles.titles.files,
        files=FilesBelow(mirror),
        one_in=titles.titles.one_in,
        outputs=tmp_path,
        counts=tmp_path / "counts.json",
    )
    papers = PAPER_PAIRS["arxiv"] // 2 + sum(PLANTED_PAPERS.values())
    assert (found["papers"], found["records"]) == (papers, papers + LISTED_TWICE)
    assert found["dropped"] == {"empty": 0, **PLANTED_PAPERS}
    assert found["formulas"] == PAPER_PAIRS["arxiv"] // 2 // 25
    assert sum(found["parts"].values()) == papers - sum(PLANTED_PAPERS.values())
    assert all(10 < found["parts"][part] < 40 for part in ("valid", "test"))
    written = [
        one
        for file in titles.titles.files
        for (one,) in read_columns(lines(mirror, file), ("arxiv_id",), file)
    ]
    assert len(written) == found["records"]
    assert sum(arxiv_identifier(one) != one for one in written) == LISTED_TWICE // 3


def test_each_paper_has_two_to_four_summaries(
    mirror: Path, tmp_path: Path, titles: Task
) -> None:
    count = PAPER_PAIRS["scitldr"]
    sides = (tmp_path / "source", tmp_path / "target")
    pairs = titles.file_pairs("scitldr")
    assert extract_corpus(RawText(pairs, FilesBelow(mirror)), output=sides) == count
    given = []
    for number in range(1, titles.reference_count("scitldr")):
        output = tmp_path / f"{number}"
        further = titles.reference_pairs("scitldr", number)
        assert (
            extract_reference(RawText(further, FilesBelow(mirror)), output=output)
            == count
        )
        given.append(sum(map(bool, read_lines(output))))
    assert given == [count, count * 2 // 3, count // 3]
