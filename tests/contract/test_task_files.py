"""What a task's file states: its text, files, references and what is recorded of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from convs2s.config.corpus import HoldOutPart
from convs2s.config.file_reference import Download, known_download
from convs2s.config.load import load
from convs2s.config.messages import validated
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from tests.contract.pages import fenced
from tests.support.refusals import refusal, rows, says
from tests.support.user_task import TASK

URL = "https://data.example/a.tgz"
RELEASED = """{released: {
  model: a#m, source_dictionary: a#s, target_dictionary: a#t, bpe_codes: a#c
}}"""


def task(**changes: object) -> Task:
    """Return the task of `TASK` with changes of its keys, or of its corpus by train and tests."""
    stated: dict[str, Any] = yaml.safe_load(TASK)
    for split in {"train", "valid", "tests"} & changes.keys():
        stated["corpus"][split] = changes.pop(split)
    return validated(Task, stated | changes, "mine").named("mine")


def pair(source: str, target: str, *references: str) -> dict[str, object]:
    stated: dict[str, object] = {"source": source, "target": target}
    return stated | ({"references": list(references)} if references else {})


KEYS = """
{} => text_name => mine
{text: other} => text_name => other
{} => model_text => clean
{preparation: {truecase: true}} => model_text => truecased
{} => splits => [train, valid, mine]
RELEASED => splits => [mine]
RELEASED => headline_runs => [released]
RELEASED => released_references => [a#m, a#s, a#t, a#c]
{headline: {seeds: [1, 3]}} => headline_runs => [seed1, seed3]
{} => headline_tests => [mine]
{headline: {tests: [a]}} => headline_tests => [a]
{} => development_sets => [valid, mine]
{} => bpe_codes_names => [codes]
{vocabulary: {joint: false}} => bpe_codes_names => [codes.en, codes.fr]
{vocabulary: {kind: word}} => bpe_codes_names => []
{vocabulary: {kind: word}} => has_dictionary => true
{vocabulary: {kind: bpe}} => has_dictionary => false
"""


@pytest.mark.parametrize(("stated", "ask", "expected"), rows(KEYS))
def test_what_follows_from_a_key(stated: str, ask: str, expected: str) -> None:
    mine = task(**yaml.safe_load(stated.replace("RELEASED", RELEASED)))
    found = getattr(mine, ask)
    if callable(found):
        found = found()
    found = list(found) if isinstance(found, tuple) else found
    assert found == yaml.safe_load(expected)


def test_what_belongs_to_a_language() -> None:
    mine = task(vocabulary={"kind": "word", "source_size": 3})
    assert mine.model_copy(update={"text": "other"}).name == "mine"
    assert mine.language_pair == ("en", "fr")
    assert (mine.vocabulary_size("en"), mine.vocabulary_size("fr")) == (3, None)
    assert (mine.side_of("en"), mine.side_of("fr")) == ("source", "target")
    assert task(vocabulary={"joint": False}).bpe_codes_names("en") == ["codes.en"]
    says(
        refusal(mine.side_of, "de"), "mine", "unknown language 'de'; expected one of en"
    )


def test_validation_is_held_out_or_of_files_of_its_own() -> None:
    held = task(valid=[], hold_out={"every": 100})
    train = [("train.en", "train.fr")]
    assert held.file_pairs("valid") == held.file_pairs("train") == train
    assert held.hold_out_of("valid") == HoldOutPart(every=100, held=True)
    assert held.hold_out_of("train") == HoldOutPart(every=100, held=False)
    assert held.hold_out_of("mine") is None
    own = task(valid=[pair("a", "b"), pair("a", "b")])
    assert own.hold_out_of("valid") is None
    assert own.file_pairs("valid") == [("a", "b")] * 2
    files = ["train.en", "train.fr", "a", "b", "test.en", "test.fr"]
    assert own.references() == files


def test_a_test_set_may_have_further_references() -> None:
    mine = task(
        tests={"one": [pair("o.en", "o.fr")], "three": [pair("t.en", "t.fr", "1", "2")]}
    )
    assert (mine.reference_count("one"), mine.reference_count("three")) == (1, 3)
    assert mine.reference_pairs("three", 2) == [("t.fr", "2")]
    assert mine.file_pairs("three") == [("t.en", "t.fr")]
    assert mine.references(mine.splits)[-2:] == ["1", "2"]
    says(
        refusal(mine.reference_pairs, "three", 3), "'three'", "3 references", "number 3"
    )
    says(refusal(mine.reference_count, "thre"), "the task mine", "did you mean 'three'")


def test_missing_files_are_named_with_how_to_come_by_them() -> None:
    mine = task()
    mine.require_files(lambda path: True)
    said = refusal(mine.require_files, lambda path: path.endswith(".en"))
    says(
        said,
        "mine: missing files: train.fr, valid.fr, test.fr; ",
        "config/tasks/mine.y",
    )
    corpus = mine.corpus.model_copy(update={"obtain": "ask for them"})
    asked = mine.model_copy(update={"corpus": corpus})
    says(refusal(asked.require_files, lambda path: False), "test.fr; ask for them")


def test_an_entry_of_opus_is_a_member_of_its_archive() -> None:
    own = pair("opus:SETIMES/v2/en-ro#en", "opus:SETIMES/v2/en-ro#ro")
    (train,) = task(train=[own]).corpus.train
    archive = "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip"
    assert train.source == f"{archive}#SETIMES.en-ro.en"
    assert train.target == f"{archive}#SETIMES.en-ro.ro"


def test_the_sources_of_a_text_are_named_with_what_is_known_of_them(
    settings: Settings,
) -> None:
    # Captions stand in for news, and are what they are.
    captions = settings.dataset_metadata("multi30k_en_de").sources
    names = [source.file.rpartition("/")[2] for source in captions]
    assert names == ["train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz"]
    assert all(source.sha256 and source.licence for source in captions)
    demo = settings.dataset_metadata("demo_en_fr").sources
    licence = "MIT: this project generates it"
    assert {source.licence for source in demo} == {licence}
    # What the mirror stands in for has no checksum of upstream.
    scale = settings.scale.model_copy(update={"generated_mirror": True})
    mirror = replace(settings, scale=scale).dataset_metadata("multi30k_en_de").sources
    assert {source.sha256 for source in mirror} == {None}
    titles = settings.tasks["arxiv_titles"]
    assert titles.titles
    assert set(titles.titles.files) <= set(titles.references(titles.splits))


@pytest.mark.usefixtures("in_folder")
def test_a_task_is_large_by_the_bytes_of_its_training_files(settings: Settings) -> None:
    """An archive counts once, whatever of it is read; files of one's own as they are there."""
    archive = [pair(f"{URL}#a.en", f"{URL}#a.fr"), pair(f"{URL}#b", f"{URL}#c")]

    def is_large(
        size: int | None, above: int, *train: object, mirror: bool = False
    ) -> bool:
        given = replace(
            settings,
            tasks={"mine": task(train=train or archive)},
            downloads={URL: Download(url=URL, bytes=size)},
            options=settings.options.model_copy(update={"scatter_above": above}),
            scale=settings.scale.model_copy(update={"generated_mirror": mirror}),
        )
        return given.is_large("mine")

    assert is_large(100_000_000, 100)
    assert not is_large(99_999_999, 100)
    assert is_large(99_999_999, 99)
    assert not is_large(10**12, 100, mirror=True)
    assert not is_large(None, 1)
    assert is_large(None, 0)
    own = pair("train.en", "train.fr")
    assert not is_large(None, 1, own)  # before they are there
    for size in (499_999, 500_000):
        Path("train.en").write_bytes(bytes(500_000))
        Path("train.fr").write_bytes(bytes(size))
        assert is_large(None, 1, own) == (size == 500_000)


def test_a_download_is_known_by_its_place(root: Path, settings: Settings) -> None:
    known = "www.statmt.org/wmt14/test-full.tgz"
    urls = [
        f"http://{known}#a",
        f"https://{known}#b",
        "http://host/a",
        "https://host/a",
    ]
    tests = {"test": [pair(url, "b") for url in urls]}
    given = replace(settings, tasks={"mine": task(tests=tests)}, models={})
    source = given.download_at(known)
    md5 = "a8cd784e006feb32ac6f3d9ec7eb389a"
    url = f"http://{known}"
    assert source == {"url": url, "size": None, "sha256": None, "md5": md5}
    assert given.download_at("host/a")["url"] == "https://host/a"
    downloads = load(root).downloads
    assert known_download(f"https://{known}", downloads) is downloads[url]
    said = refusal(given.download_at, known.replace("full", "fill"))
    says(said, "results/downloads/", "test-fill.tgz", f"did you mean '{known}'?")


def test_the_pages_summarizer_is_a_task(root: Path) -> None:
    (block,) = fenced(root / "docs/summarization.md", "yaml")
    summarizer = Task.model_validate(yaml.safe_load(block))
    assert summarizer.reference_count("test") == 3
    assert summarizer.metric == "rouge"
    assert summarizer.alignment.dictionary == "identity"
