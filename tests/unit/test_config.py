"""The configuration: what it says with every default, and that files and pages are in step."""

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from convs2s import config, config_reference, config_schema
from convs2s.errors import UserError
from convs2s.text.preparation import PREPARATIONS
from tests.support.user_task import TASK

SCHEMAS = ["config", "scale", "download", "task", "model", "decoding", "paper", "cost"]
SCALES = ["paper", "demo", "multi30k", "mirror"]


@pytest.fixture(scope="module")
def settings(root: Path) -> config.Settings:
    return config.load(root, {})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# ---- what it says ----


def test_a_task_of_five_keys_gets_every_default(copy: Path) -> None:
    write(copy / "config/tasks/mine.yaml", TASK)
    task = config.load(copy).tasks["mine"]
    assert task["headline"] == {
        "model": "small",
        "seeds": [1],
        "tests": ["mine"],
        "decoding": "beam5",
    }
    assert task["vocabulary"]["merges"] == 8000
    assert task["hold_out"] is None
    assert set(task) == set(config.schema("task")["properties"])


def test_a_task_takes_its_text_from_another(settings: config.Settings) -> None:
    word, bpe = settings.tasks["demo_en_fr_word"], settings.tasks["demo_en_fr"]
    assert all(word[key] == bpe[key] for key in config.SHARED)
    assert word["vocabulary"]["kind"] == "word"
    assert bpe["vocabulary"]["kind"] == "bpe"


def test_a_model_extends_another(settings: config.Settings) -> None:
    base = settings.models["ablation"]
    variant = settings.models["ablation_no_source_position"]
    assert variant["architecture"]["positions"] == {
        **base["architecture"]["positions"],
        "source": False,
    }
    assert variant["architecture"]["encoder"] == base["architecture"]["encoder"]
    assert variant["training"] == base["training"]


def test_overrides_reach_models_that_extend_the_changed_one(copy: Path) -> None:
    given = {"overrides": {"models": {"ablation": {"training": {"clip": 1e-3}}}}}
    models = config.load(copy, given).models
    assert models["ablation_attention_1"]["training"]["clip"] == 1e-3
    assert models["ablation_attention_1"]["training"]["momentum"] == 0.99


def test_the_local_file_wins_and_leaves_the_rest(copy: Path) -> None:
    write(copy / "config.local.yaml", "mirrors: [/a/mirror]\nplots: {sentences: [7]}\n")
    options = config.load(copy).options
    assert options["mirrors"] == ["/a/mirror"]
    assert options["plots"] == {"sentences": [7]}
    assert options["scale"] == "paper"


def test_given_values_stand_for_the_files(copy: Path) -> None:
    write(copy / "config.local.yaml", "cores: 7\n")
    assert config.load(copy, {"scale": "demo"}).options["cores"] is None


def test_numbers_in_scientific_notation_are_numbers(copy: Path) -> None:
    write(copy / "config.local.yaml", "overrides: {models: {demo: {training: {clip: 1e-4}}}}\n")
    assert config.load(copy).models["demo"]["training"]["clip"] == 1e-4


def test_snakemakes_reading_of_scientific_notation_is_understood(copy: Path) -> None:
    given = {"overrides": {"models": {"demo": {"training": {"clip": "1e-4"}}}}}
    assert config.load(copy, given).models["demo"]["training"]["clip"] == 1e-4


def test_effective_takes_the_headline_unless_told(settings: config.Settings) -> None:
    usual = config.effective(settings, "demo_en_fr")
    assert (usual["model"]["name"], usual["decoding"]["name"]) == ("demo", "beam5")
    assert usual["scale"]["name"] == "paper"
    other = config.effective(settings, "demo_en_fr", "small", "greedy")
    assert other["model"]["architecture"]["embedding"] == 256
    assert other["decoding"]["beam"] == 1
    assert yaml.safe_load(yaml.safe_dump(other)) == other


def test_effective_names_the_nearest_task(settings: config.Settings) -> None:
    with pytest.raises(UserError, match="unknown task 'demo_en_fx'; did you mean 'demo_en_fr'"):
        config.effective(settings, "demo_en_fx")


def test_decoding_defaults_are_the_schemas() -> None:
    assert config.decoding_defaults()["beam"] == 5
    assert config.decoding_defaults()["maximum_length"] == {"factor": 1.5, "offset": 10}


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_folders_of_its_own(root: Path, scale: str) -> None:
    loaded = config.load(root, {"scale": scale}).scale
    others = [config.load(root, {"scale": other}).scale for other in SCALES if other != scale]
    assert loaded["results_dir"] not in [other["results_dir"] for other in others]
    assert loaded["downloads_dir"] not in [other["downloads_dir"] for other in others]
    assert (loaded["stand_in"] is None) == (scale == "paper")


def test_the_mirrors_headline_is_on_a_test_set_that_it_has(root: Path) -> None:
    tasks = config.load(root, {"scale": "mirror"}).tasks
    assert tasks["wmt14_en_de"]["headline"]["tests"] == ["newstest2014"]


def test_a_scales_models_and_seeds_stand_in_headlines_too(root: Path) -> None:
    tasks = config.load(root, {"scale": "mirror"}).tasks
    headlines = [tasks[name]["headline"] for name in ("wmt14_en_fr", "wmt16_en_ro")]
    assert [(one["model"], one["seeds"]) for one in headlines] == [("small", [1, 2])] * 2


# ---- files, schemas and pages in step ----


def test_config_yaml_is_the_schemas(root: Path) -> None:
    """After a change of the schema: convs2s config --template > config.yaml."""
    text = (root / "config.yaml").read_text(encoding="utf-8")
    assert text == config_reference.template(), "put your own settings into config.local.yaml"


def test_the_reference_page_is_the_schemas(root: Path) -> None:
    """After a change of a schema: convs2s config --reference > docs/configuration.md."""
    page = (root / "docs/configuration.md").read_text(encoding="utf-8")
    assert page == config_reference.reference()


def test_the_template_states_the_defaults() -> None:
    stated = yaml.safe_load(config_reference.template())
    assert stated == config_schema.with_defaults({}, config.schema("config"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_strict_and_described(name: str) -> None:
    rules = config.schema(name)
    Draft202012Validator.check_schema(rules)
    for place, part in _objects(rules, name):
        if place.startswith("config.properties.overrides.properties"):
            continue  # checked after merging, by the schemas of what they override
        assert part.get("additionalProperties") is not None, place
        for key, rule in part.get("properties", {}).items():
            assert rule.get("description"), f"{place}.{key}"


def _objects(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every mapping that a schema describes."""
    if isinstance(part, dict):
        if "object" in part.get("type", ()):
            yield place, part
        for key, value in part.items():
            yield from _objects(value, f"{place}.{key}")


def test_the_preparations_are_those_of_the_text_package() -> None:
    rules = config.schema("task")["properties"]["preparation"]["properties"]
    assert set(rules["train"]["enum"]) == set(rules["test"]["enum"]) == set(PREPARATIONS)


def _files(settings: config.Settings) -> set[str]:
    """Return every file that a task's corpus names."""
    return {
        pair[side]
        for task in settings.tasks.values()
        for pairs in (
            task["corpus"]["train"],
            task["corpus"]["valid"],
            *task["corpus"]["tests"].values(),
        )
        for pair in pairs
        for side in ("source", "target")
    }


def test_every_address_of_a_corpus_is_in_the_list_of_downloads(settings: config.Settings) -> None:
    addresses = {file.partition("#")[0] for file in _files(settings) if file.startswith("http")}
    assert addresses <= set(settings.downloads)


def test_the_list_of_downloads_has_what_registries_state(
    settings: config.Settings, shared: Path
) -> None:
    rows = (shared / "spec/archives.tsv").read_text("utf-8").splitlines()
    header, *stated = [row.split("\t") for row in rows if not row.startswith("#")]
    assert len(stated) >= 30
    for row in stated:
        fields = dict(zip(header, row, strict=True))
        entry = settings.downloads[fields["url"]]
        for name in ("bytes", "sha256", "md5", "licence"):
            known = None if fields[name] == "?" else fields[name]
            assert (None if entry[name] is None else str(entry[name])) == known, fields["url"]


def test_members_are_in_the_archives_of_the_mirror(settings: config.Settings, shared: Path) -> None:
    members: dict[Path, set[str]] = {}
    for file in _files(settings):
        address, _, member = file.partition("#")
        archive = shared / "mirror" / address.partition("://")[2]
        if member and archive.is_file():
            members.setdefault(archive, set()).add(member)
    assert len(members) >= 8
    for archive, named in members.items():
        assert named <= _members(archive), archive


def _members(archive: Path) -> set[str]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as opened:
            return set(opened.namelist())
    with tarfile.open(archive) as opened_tar:
        return set(opened_tar.getnames())


def test_printed_values_are_the_papers(settings: config.Settings, shared: Path) -> None:
    facts = yaml.safe_load((shared / "spec/paper_tables.yaml").read_text(encoding="utf-8"))
    for name in ("table1", "table2", "table3", "table4", "table5", "table6", "table7", "table8"):
        ours = [value for row in settings.paper[name]["rows"] for value in row["paper"].values()]
        assert sorted(map(float, ours)) == sorted(_printed(facts[name])), name


def _printed(part: Any) -> Iterator[float]:
    """Yield the printed values of a table in the file of facts."""
    if isinstance(part, list):
        for item in part:
            yield from [float(item)] if isinstance(item, float) else _printed(item)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key in ("bleu", "seconds", "ppl", "rg1", "rg2", "rgl"):
                yield float(value)
            elif key != "training_speed":
                yield from _printed(value)
