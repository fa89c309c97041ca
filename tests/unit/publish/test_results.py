"""Exported results: all that a reader needs to check a number, and nothing that has changed."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json, write_json, write_lines
from convs2s.publish import results as publishing
from convs2s.publish.results import export_results
from tests.unit.conftest import Terminal

RUN = "results/tiny/models/small/seed1"


def graph(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entities of a crate by their id, each of which is there once."""
    metadata = json.loads((folder / "ro-crate-metadata.json").read_text("utf-8"))
    assert metadata["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {one["@id"]: one for one in metadata["@graph"]}
    assert len(entities) == len(metadata["@graph"])
    return entities


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture
def exported(results: Path, tmp_path: Path) -> Path:
    export_results(results, tmp_path / "exported")
    return tmp_path / "exported"


def test_what_numbers_rest_on_is_there_and_no_store_state_or_model(
    exported: Path,
) -> None:
    assert files(exported) == {
        "README.md",
        "SHA256SUMS",
        "ro-crate-metadata.json",
        "results/tiny/corpus/raw/test.target.zst",
        "results/tiny/corpus/tok/test.target.zst",
        "results/tiny/dataset/train.json",
        "results/tiny/dataset/valid.json",
        "results/tiny/models/small/settings.json",
        *(
            f"{RUN}/{name}"
            for name in (
                "card.md",
                "history.jsonl",
                "training.json",
                "test.beam5.bleu.json",
                "test.beam5.jsonl",
                "test.beam5.txt",
            )
        ),
    }
    assert "| test | 3 | beam5 |" in (exported / RUN / "card.md").read_text("utf-8")


def test_a_score_is_computed_again_from_the_archive_alone(
    exported: Path, results: Path, run: Terminal
) -> None:
    shutil.rmtree(results)
    said = run(
        *(
            "score",
            "bleu",
            "--reference",
            exported / "results/tiny/corpus/raw/test.target.zst",
        ),
        text=(exported / RUN / "test.beam5.txt").read_bytes(),
    )
    stated = read_json(exported / RUN / "test.beam5.bleu.json")
    assert isinstance(stated, dict)
    score = stated["bleu"]["detokenized"]
    assert said.startswith(f"BLEU = {score['score']:.2f}  {score['signature']}")


def test_every_file_is_listed_with_its_checksum(exported: Path) -> None:
    lines = (exported / "SHA256SUMS").read_text("utf-8").splitlines()
    stated = {
        name: digest for digest, _, name in (line.partition("  ") for line in lines)
    }
    assert set(stated) == files(exported) - {"SHA256SUMS"}
    for name, digest in stated.items():
        assert hashlib.sha256((exported / name).read_bytes()).hexdigest() == digest


def test_the_metadata_is_a_crate(exported: Path) -> None:
    entities = graph(exported)
    descriptor, root = entities["ro-crate-metadata.json"], entities["./"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert descriptor["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= set(root)
    parts = {one["@id"] for one in root["hasPart"]}
    assert parts == files(exported) - {"ro-crate-metadata.json", "SHA256SUMS"}
    for part in parts:
        entity, path = entities[part], exported / part
        assert entity["@type"] == "File"
        assert entity["contentSize"] == str(path.stat().st_size)
        assert entity["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_library_rocrate_reads_all_of_it(exported: Path) -> None:
    read = pytest.importorskip("rocrate.rocrate").ROCrate(exported)
    written = graph(exported)
    assert {entity.id for entity in read.get_entities()} == set(written)
    assert {one.id for one in read.root_dataset["hasPart"]} < files(exported)
    score = read.get(f"{RUN}/test.beam5.bleu.json")
    assert score["sha256"] == written[score.id]["sha256"]
    making = read.get(f"#making-{score.id}")
    assert making["result"] is score
    assert f"{RUN}/test.beam5.jsonl" in {one.id for one in making["object"]}
    assert making["instrument"]["name"] == "convs2s"


def test_files_of_a_storage_are_named_without_the_folders_of_their_local_copies(
    results: Path, exported: Path, tmp_path: Path
) -> None:
    score = results / "models/small/seed1/test.beam5.bleu.json"
    copies = ".snakemake/storage/s3/bucket/results/"
    score.write_text(
        score.read_text("utf-8").replace('"results/', f'"{copies}'), "utf-8"
    )
    assert copies in score.read_text("utf-8")
    export_results(results, tmp_path / "of_storage")
    assert files(tmp_path / "of_storage") == files(exported)
    assert set(graph(tmp_path / "of_storage")) == set(graph(exported))


def test_every_reference_of_the_metadata_leads_somewhere(exported: Path) -> None:
    entities = graph(exported)
    outside = {"https://w3id.org/ro/crate/1.1"}

    def ids(value: object) -> set[str]:
        if isinstance(value, dict):
            return ({value["@id"]} if set(value) == {"@id"} else set()).union(
                *(ids(one) for one in value.values())
            )
        return set().union(*map(ids, value)) if isinstance(value, list) else set()

    named = set().union(*(ids(one) for one in entities.values()))
    assert named - outside <= set(entities)


def test_the_making_of_a_score_names_its_inputs_and_versions(exported: Path) -> None:
    entities = graph(exported)
    making = entities[f"#making-{RUN}/test.beam5.bleu.json"]
    inputs = [one["@id"] for one in making["object"]]
    assert f"{RUN}/test.beam5.jsonl" in inputs
    model = next(one for one in inputs if one.endswith("model.safetensors"))
    # Stated, though the model is no part of the archive.
    assert entities[model]["sha256"]
    versions = entities[making["instrument"]["@id"]]["softwareRequirements"]
    assert any(one.startswith("sacrebleu ") for one in versions)
    source = next(
        one for one in entities.values() if one.get("name", "").endswith("train.en.gz")
    )
    assert (source["sha256"], source["usageInfo"]) == ("a" * 64, "LicenseRef-WMT")


def test_an_archive_holds_the_same_and_its_bytes_stay_the_same(
    results: Path, exported: Path, tmp_path: Path, run: Terminal
) -> None:
    for name in ("one.zip", "two.zip"):
        run("export-results", results, tmp_path / name)
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    assert files(tmp_path / "unpacked") == files(exported)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert not list(tmp_path.glob(".partial*"))


def test_text_stays_behind_where_its_license_asks_for_that(
    results: Path, tmp_path: Path, run: Terminal
) -> None:
    output = tmp_path / "exported"
    example = results / "models/small/seed1/test.beam5.example.json"
    shutil.copy(example.with_name("test.beam5.bleu.json"), example)
    run("export-results", "--without-text", results, output)
    left = files(output)
    assert f"{RUN}/test.beam5.example.json" not in left
    assert not [name for name in left if name.endswith((".zst", "beam5.jsonl"))]
    assert {f"{RUN}/history.jsonl", f"{RUN}/test.beam5.bleu.json"} <= left
    reference = graph(output)["#results/tiny/corpus/raw/test.target.zst"]
    assert len(reference["sha256"]) == 64
    assert not [entity for entity in graph(output) if "example" in entity]


def test_a_file_that_has_changed_since_it_was_scored_is_refused(
    results: Path, tmp_path: Path
) -> None:
    write_lines(results / "corpus/raw/test.target.zst", ["w1", "w2", "w3"])
    with pytest.raises(
        UserError, match=r"raw/test\.target\.zst: has changed since .*beam5\.bleu\.json"
    ):
        export_results(results, tmp_path / "exported.zip")
    assert not list(tmp_path.glob("*exported*"))


@pytest.mark.parametrize("lines", [None, ["another"], []])
def test_a_text_that_is_not_the_scored_one_is_refused(
    results: Path, tmp_path: Path, lines: list[str] | None
) -> None:
    text = results / "models/small/seed1/test.beam5.txt"
    text.unlink()
    if lines is not None:
        write_lines(text, lines)
    with pytest.raises(
        UserError, match=r"beam5\.txt: is not the text of test\.beam5\.jsonl"
    ):
        export_results(results, tmp_path / "exported")


def test_a_score_that_does_not_say_what_was_scored_is_refused(
    results: Path, tmp_path: Path
) -> None:
    (results / "models/small/seed1/test.beam5.bleu.json").write_text("{}")
    with pytest.raises(
        UserError, match=r"beam5\.bleu\.json: does not say what was scored"
    ):
        export_results(results, tmp_path / "exported")


def test_an_archive_of_another_kind_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"a\.tar\.gz: name a new folder, or an archive NAME\.zip"
    ):
        export_results(results, tmp_path / "a.tar.gz")


def test_a_file_that_several_scores_rest_on_is_read_once(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score, read = results / "models/small/seed1/test.beam5.bleu.json", list[Path]()
    shutil.copy(score, score.with_name("test.beam6.bleu.json"))

    def noted(path: Path) -> str:
        read.append(path)
        return sha256(path)

    monkeypatch.setattr(publishing, "sha256", noted)
    export_results(results, tmp_path / "exported")
    assert results / "models/small/seed1/model.safetensors" in read
    assert len(read) == len(set(read))


def test_a_missing_file_is_named_but_a_missing_model_is_none_of_them(
    results: Path, tmp_path: Path
) -> None:
    (results / "models/small/seed1/model.safetensors").unlink()
    export_results(results, tmp_path / "exported")
    assert f"{RUN}/card.md" not in files(tmp_path / "exported")
    # One whose first input is the model, and which comes first; and a file of somebody's notes.
    path = results / "models/small/seed1/test.beam5.bleu.json"
    content = json.loads(path.read_text("utf-8"))
    model, others = (
        str(path.with_name("model.safetensors")),
        content["manifest"]["sha256"],
    )
    first = {model.removeprefix(f"{results.parents[1]}/"): "0" * 64, **others}
    content["manifest"]["sha256"] = first
    path.write_text(json.dumps(content), "utf-8")
    path.with_name("notes.json").write_text(
        json.dumps({"manifest": {"sha256": "abc"}}), "utf-8"
    )
    export_results(results, tmp_path / "of a model")
    (results / "corpus/tok/test.target.zst").unlink()
    with pytest.raises(UserError, match=r"tok/test\.target\.zst: .* but it is missing"):
        export_results(results, tmp_path / "again")


def test_what_jobs_took_stays_behind(results: Path, tmp_path: Path) -> None:
    tuned = results / "models/small/seed1/valid.beam5.length_penalty.tsv"
    measured = (
        results.parent / "benchmarks/tiny/small/seed1/valid.beam5.length_penalty.tsv"
    )
    for path in (tuned, measured):
        write_lines(path, ["a table"])
    export_results(results.parent, tmp_path / "exported")
    tables = [path for path in files(tmp_path / "exported") if path.endswith(".tsv")]
    assert tables == [f"{RUN}/valid.beam5.length_penalty.tsv"]


def test_the_speed_of_a_training_rests_on_its_history(
    results: Path, tmp_path: Path
) -> None:
    """A row for each epoch, and no translations."""
    history = results / "models/small/seed1/history.jsonl"
    manifest = {"sha256": {f"{RUN}/history.jsonl": sha256(history)}}
    write_json(history.with_name("training.speed.json"), {"manifest": manifest})
    export_results(results, tmp_path / "exported")
    assert f"#making-{RUN}/training.speed.json" in graph(tmp_path / "exported")


@pytest.mark.parametrize(
    "content", ["[]", '{"sources": 1}', '{"sources": [{"name": "a"}]}']
)
def test_a_damaged_description_of_text_is_named(
    results: Path, tmp_path: Path, content: str
) -> None:
    (results / "dataset/train.json").write_text(content)
    message = r"dataset/train\.json: no description of training text; prepare again: "
    with pytest.raises(UserError, match=message):
        export_results(results, tmp_path / "exported")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no scores", r"has no scores \(\*\.bleu\.json, \*\.rouge\.json\)"),
        ("moved", r"no folder above .* has it"),
        ("exists", r"exported\.zip: exists already"),
        ("no folder", r"no such folder"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    results: Path, tmp_path: Path, change: str, message: str
) -> None:
    if change == "no scores":
        (results / "models/small/seed1/test.beam5.bleu.json").unlink()
    elif change == "moved":
        results = results.rename(tmp_path / "elsewhere")
    elif change == "exists":
        (tmp_path / "exported.zip").touch()
    else:
        results = tmp_path / "nowhere"
    with pytest.raises(UserError, match=message):
        export_results(results, tmp_path / "exported.zip")
