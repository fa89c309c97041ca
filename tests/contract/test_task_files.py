"""What a task's file states: its text, files, references and what is recorded of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from convs2s.config.file_reference import Download, known_download
from convs2s.config.load import merged
from convs2s.config.messages import validated
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from tests.support.own_pair import TASK
from tests.support.refusals import refusal, refuses, rows, says


def task(changes: str = "{}") -> Task:
    """Return the task of `TASK` with changes, as they stand in a file."""
    stated = merged(yaml.safe_load(TASK), yaml.safe_load(changes))
    return validated(Task, stated, "mine").named("mine")


THREE = """corpus: {tests: {three: [
  {source: t.en, target: t.fr, references: [t1.fr, t2.fr]}
]}}"""
NAMED = {
    "RELEASED": """released: {
      model: a#m, source_dictionary: a#s, target_dictionary: a#t, bpe_codes: a#c
    }""",
    "HELD_OUT": "{corpus: {valid: []}, hold_out: {every: 100}}",
    "THREE": THREE,
    "OPUS": "corpus: {train: [{source: opus:S/v2/en-ro#en, target: opus:S/v2/en-ro#ro}]}",
    "ZIP": "https://object.pouta.csc.fi/OPUS-S/v2/moses/en-ro.txt.zip",
}
ASKED = """
{} => text_name => mine
text: other => text_name => other
text: other => name => mine
{} => model_text => clean
preparation: {truecase: true} => model_text => truecased
{} => splits => [train, valid, mine]
RELEASED => splits => [mine]
RELEASED => headline_runs => [released]
RELEASED => released_references => [a#m, a#s, a#t, a#c]
headline: {seeds: [1, 3]} => headline_runs => [seed1, seed3]
{} => headline_tests => [mine]
headline: {tests: [a]} => headline_tests => [a]
{} => development_sets => [valid, mine]
{} => bpe_codes_names => [codes]
vocabulary: {joint: false} => bpe_codes_names => [codes.en, codes.fr]
vocabulary: {joint: false} => bpe_codes_names en => [codes.en]
vocabulary: {kind: word} => bpe_codes_names => []
vocabulary: {kind: word} => has_dictionary => true
vocabulary: {kind: bpe} => has_dictionary => false
vocabulary: {source_size: 3} => vocabulary_size en => 3
vocabulary: {source_size: 3} => vocabulary_size fr => null
{} => language_pair => [en, fr]
{} => side_of en => source
{} => side_of fr => target
HELD_OUT => file_pairs valid => [[train.en, train.fr]]
HELD_OUT => file_pairs train => [[train.en, train.fr]]
HELD_OUT => hold_out_of valid => [100, true]
HELD_OUT => hold_out_of train => [100, false]
HELD_OUT => hold_out_of mine => null
{} => hold_out_of valid => null
{} => file_pairs valid => [[valid.en, valid.fr]]
{} => references => [train.en, train.fr, valid.en, valid.fr, test.en, test.fr]
{} => reference_count mine => 1
THREE => reference_count three => 3
THREE => reference_pairs three 2 => [[t.fr, t2.fr]]
THREE => file_pairs three => [[t.en, t.fr]]
THREE => references [three] => [t.en, t.fr, t1.fr, t2.fr]
OPUS => references [train] => ['ZIP#S.en-ro.en', 'ZIP#S.en-ro.ro']
"""


def test_what_follows_from_a_key() -> None:
    for stated, asked, expected in rows(ASKED):
        for name, text in NAMED.items():
            stated = stated.replace(name, text)
            expected = expected.replace(name, text)
        name, *arguments = asked.split()
        found = getattr(task(stated), name)
        if callable(found):
            found = found(*map(yaml.safe_load, arguments))
        # A tuple is as good as a list.
        assert json.loads(json.dumps(found)) == yaml.safe_load(expected), asked


def test_what_a_task_does_not_have_is_refused() -> None:
    mine = task(THREE)
    said = refusal(mine.side_of, "de")
    says(said, "mine", "unknown language 'de'; expected one of en")
    said = refusal(mine.reference_pairs, "three", 3)
    says(said, "'three'", "3 references", "number 3")
    refuses("the task mine ... did you mean 'three'", mine.reference_count, "thre")
    said = refusal(task().require_files, lambda path: path.endswith(".en"))
    missing = "mine: missing files: train.fr, valid.fr, test.fr; "
    says(said, missing, "config/tasks/mine.y")


def test_the_sources_of_a_text_are_named_with_what_is_known_of_them(
    settings: Settings,
) -> None:
    # Captions stand in for news, and are what they are.
    captions = settings.dataset_metadata("multi30k_en_de").sources
    names = [source.file.rpartition("/")[2] for source in captions]
    assert names == ["train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz"]
    assert all(source.sha256 and source.licence for source in captions)
    demo = settings.dataset_metadata("demo_en_fr").sources
    assert {source.licence for source in demo} == {"MIT: this project generates it"}
    # What the mirror stands in for has no checksum of upstream.
    scale = settings.scale.model_copy(update={"generated_mirror": True})
    mirror = replace(settings, scale=scale).dataset_metadata("multi30k_en_de").sources
    assert {source.sha256 for source in mirror} == {None}


URL = "https://data.example/a.tgz"
ARCHIVE = f"corpus: {{train: [{{source: '{URL}#a.en', target: '{URL}#a.fr'}}]}}"


@pytest.mark.usefixtures("in_folder")
def test_a_task_is_large_by_the_bytes_of_its_training_files(settings: Settings) -> None:
    """An archive counts once, whatever of it is read; files of one's own as they are there."""
    archive = task(ARCHIVE)

    def is_large(mine: Task, size: int | None = None, mirror: bool = False) -> bool:
        given = replace(
            settings,
            tasks={"mine": mine},
            downloads={URL: Download(url=URL, bytes=size)},
            options=settings.options.model_copy(update={"scatter_above": 1}),
            scale=settings.scale.model_copy(update={"generated_mirror": mirror}),
        )
        return given.is_large("mine")

    assert is_large(archive, 1_000_000)
    assert not is_large(archive, 999_999)
    assert not is_large(archive, 10**12, mirror=True)
    assert not is_large(archive)
    assert not is_large(task())  # before they are there
    for size in (499_999, 500_000):
        Path("train.en").write_bytes(bytes(500_000))
        Path("train.fr").write_bytes(bytes(size))
        assert is_large(task()) == (size == 500_000)


BY_TWO_ADDRESSES = """corpus: {tests: {mine: [
  {source: 'http://www.statmt.org/wmt14/test-full.tgz#a', target: b},
  {source: 'https://www.statmt.org/wmt14/test-full.tgz#b', target: b},
  {source: 'http://host/a', target: b},
  {source: 'https://host/a', target: b}
]}}"""


def test_a_download_is_known_by_its_place(settings: Settings) -> None:
    known = "www.statmt.org/wmt14/test-full.tgz"
    given = replace(settings, tasks={"mine": task(BY_TWO_ADDRESSES)}, models={})
    md5 = "a8cd784e006feb32ac6f3d9ec7eb389a"
    url = f"http://{known}"
    source = {"url": url, "size": None, "sha256": None, "md5": md5}
    assert given.download_at(known) == source
    assert given.download_at("host/a")["url"] == "https://host/a"
    downloads = settings.downloads
    assert known_download(f"https://{known}", downloads) is downloads[url]
