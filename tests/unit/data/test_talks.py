"""Transcripts of TED talks in IWSLT's layout: from an archive to the words that a task keeps."""

from pathlib import Path

import pytest

from convs2s.config.corpus import HoldOutPart
from convs2s.config.load import load
from convs2s.data.corpus import RawText, extract_corpus
from convs2s.data.formats import spoken_lines
from convs2s.files.text import read_line_pairs, read_lines
from convs2s.text.corpus_filter import tokenize_and_filter
from convs2s.text.preparation import Preparation
from tests.conftest import ROOT
from tests.support.local_files import FilesBelow, write_tar

TASK = load(ROOT).tasks["iwslt14_de_en"]
SENTENCES = 46

ABOUT = {
    "de": """<url>http://www.ted.com/talks/lang/de/of_a_test.html</url>
<keywords>talks, tests</keywords>
<speaker>Emma Beispiel</speaker>
<talkid>1</talkid>
<title>Emma Beispiel: Wie man prüft</title>
<description>TED Talk Untertitel: Ein Vortrag über Prüfungen.</description>
""",
    "en": """<url>http://www.ted.com/talks/of_a_test.html</url>
<keywords>talks, tests</keywords>
<speaker>Emma Example</speaker>
<talkid>1</talkid>
<title>Emma Example: How to test</title>
<description>TED Talk Subtitles: A talk about tests.</description>
""",
}


def spoken(language: str) -> list[str]:
    word, end = (
        ("Satz", "ist gut.") if language == "de" else ("Sentence", "is well-made.")
    )
    return [f" {word} Nummer {number} {end} " for number in range(1, SENTENCES + 1)]


def segments(language: str, documents: int) -> str:
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<mteval>",
        '<refset setid="test">',
    ]
    for document in range(documents):
        lines += [
            f'<doc docid="{document}" genre="lectures">',
            "<title>Ein Titel</title>",
        ]
        lines += [
            "<talkid>7</talkid>",
            f'<seg id="1"> It’s {language} &amp; Nr. {document} </seg>',
        ]
        lines += ["</doc>"]
    return "\n".join([*lines, "</refset>", "</mteval>"]) + "\n"


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the archive where the task's addresses put it."""
    folder = tmp_path_factory.mktemp("downloads")
    names = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
    files = {}
    for language in ("de", "en"):
        text = ABOUT[language] + "\n".join(spoken(language)) + "\n"
        files[f"train.tags.de-en.{language}"] = text
        for count, name in enumerate(names, start=1):
            files[f"IWSLT14.{name}.de-en.{language}.xml"] = segments(language, count)
    members = {f"de-en/{name}": text.encode() for name, text in files.items()}
    write_tar(folder / "dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz", members)
    return folder


def extracted(downloads: Path, folder: Path, split: str) -> tuple[Path, Path]:
    output = folder / f"{split}.de", folder / f"{split}.en"
    extract_corpus(
        RawText(TASK.file_pairs(split), FilesBelow(downloads), TASK.hold_out_of(split)),
        output=output,
    )
    return output


def test_titles_and_descriptions_are_text_and_the_rest_about_a_talk_is_not() -> None:
    lines = [
        *ABOUT["en"].splitlines(),
        " Thank you. ",
        "<reviewer></reviewer>",
        "a < b",
        "",
    ]
    assert list(spoken_lines(lines)) == [
        "Emma Example: How to test",
        "TED Talk Subtitles: A talk about tests.",
        "Thank you.",
        "a < b",
        "",
    ]


def test_the_archive_becomes_the_tasks_text(downloads: Path, tmp_path: Path) -> None:
    train, valid = (
        extracted(downloads, tmp_path, split) for split in ("train", "valid")
    )
    assert TASK.hold_out_of("valid") == HoldOutPart(23, held=True)
    lines = [list(read_lines(side)) for side in train]
    # Title and description come first, so that the pairs 23 and 46 are sentences 21 and 44.
    assert len(lines[0]) == len(lines[1]) == SENTENCES + 2 - 2
    assert lines[0][:2] == [
        "Emma Beispiel: Wie man prüft",
        "TED Talk Untertitel: Ein Vortrag über Prüfungen.",
    ]
    held = [[int(line.split()[2]) for line in read_lines(side)] for side in valid]
    assert held == [[21, 44], [21, 44]]
    kept = tmp_path / "kept.de", tmp_path / "kept.en"
    german, english = (
        Preparation(TASK.preparation.train, language).prepare
        for language in TASK.language_pair
    )
    tokenize_and_filter(
        read_line_pairs(*train),
        sides=kept,
        report=tmp_path / "report.json",
        prepare=(german, english),
        **TASK.clean.model_dump(exclude={"tokens"}),
    )
    # Letters are lowered, and hyphens within words are left.
    assert "satz nummer 1 ist gut ." in read_lines(kept[0])
    assert "sentence nummer 1 is well-made ." in read_lines(kept[1])


def test_the_five_test_sets_are_joined(downloads: Path, tmp_path: Path) -> None:
    source, target = extracted(downloads, tmp_path, "dev2010_to_tst2012")
    lines = list(read_lines(target))
    assert len(lines) == len(list(read_lines(source))) == 1 + 2 + 3 + 4 + 5
    assert lines[0] == "It’s en & Nr. 0"
    prepared = Preparation(TASK.preparation.test, "en").prepare(lines[0])
    assert prepared == "it &apos;s en &amp; nr. 0"


def test_pairs_are_cleaned_as_the_script_does() -> None:
    clean = TASK.clean
    assert (clean.minimum, clean.maximum, clean.ratio) == (1, 175, 1.5)
    assert (TASK.vocabulary.merges, TASK.vocabulary.joint) == (10_000, True)
