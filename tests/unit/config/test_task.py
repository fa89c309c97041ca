"""What a task knows of itself."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from convs2s.config.corpus import HoldOutPart, VocabularySettings
from convs2s.config.messages import validated
from convs2s.config.settings import Settings
from convs2s.config.task import (
    CorpusMetadata,
    DatasetMetadata,
    ModelMetadata,
    Task,
)
from convs2s.errors import UserError


def task(**changes: object) -> Task:
    pair = {"source": "train.en", "target": "train.fr"}
    stated = {
        "description": "",
        "languages": {"source": "en", "target": "fr"},
        "corpus": {
            "train": [pair],
            "tests": {"test": [{"source": "t.en", "target": "t.fr"}]},
        },
        "hold_out": {"every": 100},
    }
    return validated(Task, stated | changes, "mine").named("mine")


TEST_PAIR = {"source": "t.en", "target": "t.fr"}
RELEASED = {"model": "a#m", "source_dictionary": "a#s", "target_dictionary": "a#t"}


def test_a_name_is_no_key_and_stays_with_a_copy() -> None:
    mine = task()
    assert mine.name == "mine"
    assert mine.model_copy(update={"text": "other"}).name == "mine"
    assert "name" not in mine.model_dump()
    with pytest.raises(UserError, match="mine: unknown key 'name'"):
        task(name="mine")


def test_the_text_is_the_tasks_own_or_anothers() -> None:
    assert task().text_name == "mine"
    assert task(text="other").text_name == "other"


def test_none_is_the_name_of_a_preparation_in_yaml_too() -> None:
    stated = yaml.safe_load("{train: none, test: none}")
    assert task(preparation=stated).preparation.train == "none"
    with pytest.raises(
        UserError, match=r"preparation\.train: expected .* or 'none', not null"
    ):
        task(preparation=yaml.safe_load("{train: null}"))


def test_a_released_model_needs_test_sets_alone() -> None:
    assert task().splits == ("train", "valid", "test")
    assert task(released=RELEASED).splits == ("test",)


def test_held_out_validation_comes_from_the_training_files() -> None:
    mine = task()
    assert (
        mine.file_pairs("valid")
        == mine.file_pairs("train")
        == [("train.en", "train.fr")]
    )
    assert mine.hold_out_of("valid") == HoldOutPart(every=100, held=True)
    assert mine.hold_out_of("train") == HoldOutPart(every=100, held=False)
    assert mine.hold_out_of("test") is None


def test_validation_files_are_taken_as_they_are() -> None:
    pair = {"source": "a", "target": "b"}
    corpus = {"train": [pair], "valid": [pair, pair], "tests": {"test": [pair]}}
    mine = task(corpus=corpus, hold_out=None)
    assert mine.hold_out_of("valid") is None
    assert mine.file_pairs("valid") == [("a", "b")] * 2
    assert mine.references() == ["a", "b"]


def test_a_test_set_of_another_task_is_refused() -> None:
    with pytest.raises(
        UserError, match="the task mine: unknown test set 'newstest2014'; expected test"
    ):
        task().file_pairs("newstest2014")


def test_references_are_all_files_with_the_released_ones() -> None:
    files = ["train.en", "train.fr", "t.en", "t.fr"]
    assert task().references() == files
    released = task(released=RELEASED)
    assert released.released_references() == ["a#m", "a#s", "a#t"]
    assert released.references() == [*files, "a#m", "a#s", "a#t"]
    with_codes = task(released={**RELEASED, "bpe_codes": "a#c"})
    assert with_codes.released_references()[-1] == "a#c"


def test_headline_runs() -> None:
    assert task(headline={"seeds": [1, 3]}).headline_runs() == ["seed1", "seed3"]
    assert task(released=RELEASED).headline_runs() == ["released"]


def test_a_headline_is_about_all_test_sets_unless_told() -> None:
    assert task().headline_tests() == ["test"]
    assert task(headline={"tests": ["other"]}).headline_tests() == ["other"]
    assert task().development_sets() == ["valid", "test"]


def test_what_belongs_to_a_language() -> None:
    mine = task(vocabulary={"kind": "word", "source_size": 3})
    assert mine.language_pair == ("en", "fr")
    assert (mine.vocabulary_size("en"), mine.vocabulary_size("fr")) == (3, None)


def test_models_read_truecased_text_where_there_is_some() -> None:
    assert task().model_text == "clean"
    assert task(preparation={"truecase": True}).model_text == "truecased"


def test_names_of_bpe_codes() -> None:
    assert VocabularySettings().bpe_codes_names("en", "fr") == ["codes"]
    assert VocabularySettings(joint=False).bpe_codes_names("en") == ["codes.en"]
    assert VocabularySettings(kind="word").bpe_codes_names("en") == []


def test_metadata_are_plain_data_and_read_again() -> None:
    mine = task(paper_pairs=3, vocabulary={"glossaries": ["a"]})
    dataset, corpus = (
        mine.dataset_metadata({}, None),
        mine.corpus_metadata("other data"),
    )
    assert set(dataset.model_dump()) == {
        *("task", "languages", "preparation", "vocabulary", "sources", "stand_in")
    }
    assert dataset.preparation == "moses_test"
    assert set(corpus.model_dump()) == {"task", "clean", "paper_pairs", "stand_in"}
    assert (
        DatasetMetadata.model_validate(json.loads(dataset.model_dump_json())) == dataset
    )
    assert CorpusMetadata.model_validate(json.loads(corpus.model_dump_json())) == corpus
    assert mine.model_metadata() == ModelMetadata(
        task="mine", languages=mine.languages, preparation="moses_test"
    )


def test_the_sources_of_a_text_are_named_with_what_is_known_of_them(
    settings: Settings,
) -> None:
    # Captions stand in for news, and are what they are.
    task = settings.tasks["multi30k_en_de"]
    multi30k = task.dataset_metadata(settings.downloads, "captions").sources
    assert [source.file.rpartition("/")[2] for source in multi30k] == [
        *("train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz")
    ]
    assert all(source.sha256 and source.licence for source in multi30k)
    demo = settings.tasks["demo_en_fr"].dataset_metadata(settings.downloads, None)
    assert {source.licence for source in demo.sources} == {
        "MIT: this project generates it"
    }


def test_nothing_is_known_of_generated_files(settings: Settings) -> None:
    metadata = settings.tasks["wmt14_en_fr"].dataset_metadata({}, "a mirror")
    assert metadata.stand_in == "a mirror"
    assert len(metadata.sources) > 4
    assert not any(
        source.sha256 or source.md5 or source.licence for source in metadata.sources
    )


def test_a_task_never_changes() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        task().text = "other"


def test_every_file_of_the_configurations_tasks_is_listed(settings: Settings) -> None:
    released = settings.tasks["wmt14_en_fr_released"]
    assert len(released.released_references()) == 4
    assert set(released.references()) > set(settings.tasks["wmt14_en_fr"].references())


def with_tests(*pairs: Mapping[str, object]) -> Task:
    train = [{"source": "train.en", "target": "train.fr"}]
    return task(corpus={"train": train, "tests": {"test": list(pairs)}})


REFERENCED = {"source": "t.en", "target": "t.fr", "references": ["t1.fr", "t2.fr"]}


def test_a_test_set_may_have_further_references() -> None:
    mine = with_tests(REFERENCED)
    assert mine.reference_count("test") == 3
    assert mine.reference_pairs("test", 2) == [("t.fr", "t2.fr")]
    assert mine.file_pairs("test") == [("t.en", "t.fr")]
    assert (
        mine.references()[-2:]
        == mine.references(mine.splits)[-2:]
        == ["t1.fr", "t2.fr"]
    )
    with pytest.raises(
        UserError, match=r"'test' of the task mine has 3 references, .* number 3"
    ):
        mine.reference_pairs("test", 3)
    with pytest.raises(UserError, match="unknown test set 'tset'; did you mean 'test'"):
        mine.reference_count("tset")
    assert task().reference_count("test") == 1


def test_training_text_has_no_further_references() -> None:
    with pytest.raises(UserError, match="references"):
        task(corpus={"train": [REFERENCED], "tests": {"test": [REFERENCED]}})


def test_missing_files_are_named_with_how_to_come_by_them() -> None:
    mine = with_tests(REFERENCED)
    mine.require_files(lambda path: True)
    with pytest.raises(UserError) as error:
        mine.require_files(lambda path: path.endswith(".en"))
    assert str(error.value) == (
        "mine: missing files: train.fr, t.fr, t1.fr, t2.fr; put them there, or name others in "
        "config/tasks/mine.yaml"
    )
    corpus = mine.corpus.model_copy(update={"obtain": "ask for them"})
    with pytest.raises(UserError, match=r"t2\.fr; ask for them$"):
        mine.model_copy(update={"corpus": corpus}).require_files(lambda path: False)


def test_papers_are_files_of_the_task(settings: Settings) -> None:
    titles = settings.tasks["arxiv_titles"]
    assert titles.titles
    assert set(titles.titles.files) <= set(titles.references(titles.splits))
    sources = titles.dataset_metadata(settings.downloads, None).sources
    assert {source.licence for source in sources if source.sha256} == {"CC0-1.0"}


def test_the_pages_summarizer_is_a_task(root: Path) -> None:
    page = (root / "docs/summarization.md").read_text("utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    summarizer = Task.model_validate(yaml.safe_load(block)).named("mine_headlines")
    assert summarizer.reference_count("test") == 3
    assert summarizer.metric == "rouge"
    assert summarizer.alignment.dictionary == "identity"


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"minimum": 80, "maximum": 60}, 60),
        ({"minimum": 176}, 175),
        ({"minimum": 30, "maximum": None, "tokens": 20}, 20),
    ],
)
def test_bounds_that_keep_no_pair_are_refused(
    limits: dict[str, object], most: int
) -> None:
    said = f"^mine: clean: expected a minimum of at most {most}, or no pair is kept"
    with pytest.raises(UserError, match=said):
        task(clean=limits)
    assert task(clean={"minimum": 80, "maximum": 80}).clean.maximum == 80
    assert (
        task(clean={"minimum": 999, "maximum": None, "tokens": None}).clean.tokens
        is None
    )


@pytest.mark.parametrize("name", ["test\n", "train", "valid\n", "Test", ""])
def test_a_test_set_that_no_file_can_be_named_by_is_refused(name: str) -> None:
    corpus = {**task().model_dump(mode="json")["corpus"], "tests": {name: [TEST_PAIR]}}
    with pytest.raises(UserError, match=r"^mine: corpus\.tests"):
        task(corpus=corpus)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (
            {
                "corpus": {
                    "train": [{"source": "{x}.en", "target": "b"}],
                    "tests": {"test": []},
                }
            },
            r"corpus\.train\[0\]\.source",
        ),
        ({"titles": {"files": ["{x}.tsv"]}}, r"titles\.files\[0\]"),
        ({"vocabulary_of": "a/{x}.safetensors"}, "vocabulary_of"),
        ({"n_best": {"test": "{x}"}}, r"n_best\.test"),
    ],
)
def test_a_file_that_snakemake_takes_for_wildcards_is_refused(
    changes: dict[str, object], key: str
) -> None:
    said = rf"^mine: {key}: expected a name without {{ and }}, .*: rename the file or folder, not '"
    with pytest.raises(UserError, match=said):
        task(**changes)


def test_an_entry_of_opus_is_a_member_of_its_archive() -> None:
    pair = {"source": "opus:SETIMES/v2/en-ro#en", "target": "opus:SETIMES/v2/en-ro#ro"}
    (train,) = task(corpus={"train": [pair], "tests": {"test": [pair]}}).corpus.train
    archive = "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip"
    assert train.source == f"{archive}#SETIMES.en-ro.en"
    assert train.target == f"{archive}#SETIMES.en-ro.ro"


@pytest.mark.parametrize(
    "name", ["SETIMES/en-ro#ro", "SETIMES/v2/ro-en#ro", "Books/v1/en-fr#de"]
)
def test_what_is_no_entry_of_opus_is_refused(name: str) -> None:
    pair = {"source": "a.en", "target": f"opus:{name}"}
    with pytest.raises(
        UserError, match=r"expected opus:CORPUS/VERSION/LANGUAGES#LANGUAGE"
    ):
        task(corpus={"train": [pair], "tests": {"test": [pair]}})
