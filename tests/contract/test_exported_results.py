"""Exported results: all that a reader needs to check a number, and nothing that has changed."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from convs2s.files.checksums import sha256
from convs2s.files.text import write_json, write_lines
from convs2s.publish.results import export_results
from tests.conftest import Terminal

RUN = "results/tiny/models/small/seed1"
TARGET = "results/tiny/corpus/raw/test.target.zst"
TOKENIZED = "results/tiny/corpus/tok/test.target.zst"
SCORE = f"{RUN}/test.beam5.bleu.json"
METADATA = "ro-crate-metadata.json"


def graph(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entities of a crate by their id, each of which is there once."""
    text = (folder / METADATA).read_text("utf-8")
    metadata = json.loads(text)
    assert metadata["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {one["@id"]: one for one in metadata["@graph"]}
    assert len(entities) == len(metadata["@graph"])
    references = set(re.findall(r'{\s*"@id": "([^"]+)"\s*}', text))
    assert references - {"https://w3id.org/ro/crate/1.1"} <= set(entities)
    return entities


def files(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


@pytest.fixture(scope="module")
def exported(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive") / "exported"
    export_results(ran / "results/tiny", folder)
    return folder


def test_what_numbers_rest_on_is_there_with_checksums_and_no_store_state_or_model(
    exported: Path,
) -> None:
    made = files(exported) - {"SHA256SUMS", METADATA}
    assert made == {
        "README.md",
        TARGET,
        TOKENIZED,
        "results/tiny/dataset/train.json",
        "results/tiny/dataset/valid.json",
        "results/tiny/models/small/settings.json",
        f"{RUN}/card.md",
        f"{RUN}/history.jsonl",
        f"{RUN}/training.json",
        f"{RUN}/test.beam5.jsonl",
        f"{RUN}/test.beam5.txt",
        SCORE,
    }
    entities = graph(exported)
    assert {part["@id"] for part in entities["./"]["hasPart"]} == made
    sums = ""
    for name in sorted({*made, METADATA}):
        digest = sha256(exported / name)
        sums += f"{digest}  {name}\n"
        if name in made:
            size = str((exported / name).stat().st_size)
            file = {"@type": "File", "contentSize": size, "sha256": digest}
            assert file.items() <= entities[name].items()
    assert (exported / "SHA256SUMS").read_text("utf-8") == sums
    # A score names what it was made of, and by what.
    making = entities[f"#making-{SCORE}"]
    # The model is stated, though it is no part of the archive.
    model = f"#{RUN}/model.safetensors"
    inputs = {one["@id"] for one in making["object"]}
    assert inputs == {model, f"{RUN}/test.beam5.jsonl", TARGET, TOKENIZED}
    assert len(entities[model]["sha256"]) == 64
    versions = entities[making["instrument"]["@id"]]["softwareRequirements"]
    assert any(one.startswith("sacrebleu ") for one in versions)
    source = entities["#source-1"]
    assert source["name"].endswith("train.en.gz")
    assert (source["sha256"], source["usageInfo"]) == ("a" * 64, "LicenseRef-WMT")


def test_a_score_is_computed_again_from_the_archive_alone(
    exported: Path, run: Terminal
) -> None:
    text = (exported / RUN / "test.beam5.txt").read_bytes()
    said = run("score", "bleu", "--reference", exported / TARGET, text=text)
    stated = json.loads((exported / SCORE).read_text("utf-8"))
    score = stated["bleu"]["detokenized"]
    assert said.startswith(f"BLEU = {score['score']:.2f}  {score['signature']}")


def test_the_library_rocrate_reads_all_of_it(exported: Path) -> None:
    crate = pytest.importorskip("rocrate.rocrate").ROCrate(exported)
    assert {entity.id for entity in crate.get_entities()} == set(graph(exported))
    assert crate.get(f"#making-{SCORE}")["instrument"]["name"] == "convs2s"
    assert None not in (
        crate.name,
        crate.description,
        crate.datePublished,
        crate.license,
    )


def test_files_of_a_storage_are_named_without_the_folders_of_their_local_copies(
    results: Path, exported: Path, tmp_path: Path
) -> None:
    score = results.parents[1] / SCORE
    text = score.read_text("utf-8")
    assert '"results/' in text
    copied = '".snakemake/storage/s3/bucket/results/'
    score.write_text(text.replace('"results/', copied), "utf-8")
    output = tmp_path / "of_storage"
    export_results(results, output)
    assert files(output) == files(exported)
    assert set(graph(output)) == set(graph(exported))


def test_an_archive_holds_the_same_and_its_bytes_stay_the_same(
    ran: Path, exported: Path, tmp_path: Path, run: Terminal
) -> None:
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    for output in (one, two):
        run("export-results", ran / "results/tiny", output)
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as archive:
        assert set(archive.namelist()) == files(exported)
        assert {one.external_attr >> 16 for one in archive.infolist()} == {0o644}
        assert archive.read(TARGET) == (exported / TARGET).read_bytes()
    assert sorted(tmp_path.iterdir()) == [one, two]


def test_text_stays_behind_where_its_license_asks_for_that(
    results: Path, tmp_path: Path, run: Terminal
) -> None:
    example = results / "models/small/seed1/test.beam5.example.json"
    shutil.copy(example.with_name("test.beam5.bleu.json"), example)
    output = tmp_path / "exported"
    run("export-results", "--without-text", results, output)
    left = " ".join(files(output))
    assert not re.search(r"\.zst|beam5\.jsonl|example", left)
    assert {f"{RUN}/history.jsonl", SCORE} <= files(output)
    entities = graph(output)
    assert len(entities[f"#{TARGET}"]["sha256"]) == 64
    assert "example" not in " ".join(entities)


def test_speeds_rest_on_histories_and_what_jobs_took_stays_behind(
    results: Path, tmp_path: Path
) -> None:
    """A removed model and somebody's notes do no harm."""
    run = results / "models/small/seed1"
    (run / "model.safetensors").unlink()
    (run / "notes.json").write_text('{"manifest": {"sha256": "abc"}}')
    manifest = {"sha256": {f"{RUN}/history.jsonl": sha256(run / "history.jsonl")}}
    write_json(run / "training.speed.json", {"manifest": manifest})
    table = "small/seed1/valid.beam5.length_penalty.tsv"
    for folder in (results / "models", results.parent / "benchmarks/tiny"):
        write_lines(folder / table, ["a table"])
    output = tmp_path / "exported"
    export_results(results.parent, output)
    assert f"#making-{RUN}/training.speed.json" in graph(output)
    made = files(output)
    assert f"{RUN}/card.md" not in made
    tables = [name for name in made if name.endswith(".tsv")]
    assert tables == [f"results/tiny/models/{table}"]
