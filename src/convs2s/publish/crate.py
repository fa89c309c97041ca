"""The metadata of exported results: RO-Crate 1.1, JSON-LD by hand.

The library rocrate would bring a web client and a command line into every installation, and spare
the two entities that are the same in each crate: what stands here says what our files are.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any, cast

from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json

METADATA_FILE = "ro-crate-metadata.json"

_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]

_MEDIA_TYPES = MimeTypes().types_map[True] | {
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".zst": "application/zstd",
}

_DESCRIPTIONS = {
    ".bleu.json": "BLEU and chrF of one run on one test set, with signatures and manifest",
    ".rouge.json": "ROUGE of one run on one test set, with signatures and manifest",
    "training.speed.json": "speed and hours of a training",
    ".speed.json": "time that decoding a test set takes",
    "bleu.json": "the task's headline: mean and deviation over runs",
    "rouge.json": "the task's headline: mean and deviation over runs, beside the lead baseline",
    "training.json": "summary, learning curve and manifest of a training",
    "history.jsonl": "a row for each epoch of a training",
    "settings.json": "architecture and recipe of a model",
    "card.md": "model card",
    "ledger.jsonl": "a line for each file of numbers that the papers' tables rest on",
    ".jsonl": "translations with scores, alignments and replaced words",
    ".zst": "text of a test set, as the scores were computed from it",
}
"""How a file's name ends -> what it is; the first that fits."""

Entity = dict[str, object]

_DESCRIPTOR: Entity = {
    "@id": METADATA_FILE,
    "@type": "CreativeWork",
    "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
    "about": {"@id": "./"},
}
_TERMS: Entity = {
    "@id": "#terms",
    "@type": "CreativeWork",
    "name": "Terms of use",
    "description": "Numbers and code: MIT. Sentences of test sets, and their translations: as the "
    "owners of the data state; what is known of that stands with each source.",
}


@dataclass(frozen=True)
class Measurement:
    """What a file of numbers says of its making: path -> SHA-256 of what it was computed from.

    ``versions`` are of software, the code's revision and the machine, as JSON.
    """

    checksums: Mapping[str, str]
    versions: str


def read_measurement(path: Path) -> Measurement | None:
    """Read what a JSON file says of its making; None where it says nothing.

    Raises:
        UserError: it is not JSON.
    """
    match read_json(path):
        case {"manifest": {"sha256": dict(checksums), **manifest}} if checksums:
            keys = ("convs2s", "revision", "python", "packages", "processor", "system")
            versions = json.dumps({key: manifest.get(key) for key in keys}, sort_keys=True)
            return Measurement(checksums, versions)
    return None


def crate(
    folder: Path, name: str, files: Sequence[str], measured: Mapping[str, Measurement]
) -> Entity:
    """Return the metadata of a folder's files, whose paths below it have slashes.

    ``measured`` is what each file of numbers says of its making.
    """
    digests = {file: sha256(folder / file) for file in files}
    software = _software(measured.values())
    sources = _sources(folder, files)
    absent: dict[str, Entity] = {}
    actions: list[Entity] = []
    for file, measurement in measured.items():
        computed_from = []
        for path, digest in measurement.checksums.items():
            key = path
            if path not in digests:  # no part of the archive: a model, licensed text
                key = f"#{path}"
                absent[key] = {
                    "@id": key,
                    "@type": "CreativeWork",
                    "name": path,
                    "sha256": digest,
                }
            computed_from.append({"@id": key})
        action: Entity = {
            "@id": f"#making-{file}",
            "@type": "CreateAction",
            "name": f"the making of {file}",
            "instrument": {"@id": software[measurement.versions]["@id"]},
            "object": computed_from,
            "result": {"@id": file},
        }
        actions.append(action)
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Results of {name}",
        "description": "Scores of sequence to sequence models, and all that they rest on",
        "datePublished": datetime.now(UTC).date().isoformat(),
        "license": {"@id": "#terms"},
        "hasPart": [{"@id": file} for file in files],
        "mentions": [{"@id": entity["@id"]} for entity in (*actions, *sources)],
    }
    graph = [
        _DESCRIPTOR,
        root,
        _TERMS,
        *(_file_entity(folder, file, digest) for file, digest in digests.items()),
        *absent.values(),
        *sources,
        *software.values(),
        *actions,
    ]
    return {"@context": _CONTEXT, "@graph": graph}


def _file_entity(folder: Path, file: str, digest: str) -> Entity:
    entity: Entity = {"@id": file, "@type": "File", "name": Path(file).name}
    for end, about in _DESCRIPTIONS.items():
        if file.endswith(end):
            entity["description"] = about
            break
    media = _MEDIA_TYPES.get(Path(file).suffix)
    if media:
        entity["encodingFormat"] = media
    entity["contentSize"] = str((folder / file).stat().st_size)
    entity["sha256"] = digest
    return entity


def _sources(folder: Path, files: Iterable[str]) -> list[Entity]:
    """Return the files that text came from, as the descriptions of the token stores name them."""
    entities: dict[str, Entity] = {}
    for file in files:
        if not file.endswith("/dataset/train.json"):
            continue
        content: Any = read_json(folder / file)
        with failures_of_file(str(folder / file), "no description of training text; prepare again"):
            for source in content.get("sources", ()):
                if source["file"] in entities:
                    continue
                entity: Entity = {
                    "@id": f"#source-{len(entities) + 1}",
                    "@type": "CreativeWork",
                    "name": source["file"],
                    "usageInfo": source.get("licence") or "terms not known",
                }
                if source.get("sha256"):
                    entity["sha256"] = source["sha256"]
                entities[source["file"]] = entity
    return list(entities.values())


def _software(measured: Iterable[Measurement]) -> dict[str, Entity]:
    """Return each set of versions as an entity, by its text."""
    entities: dict[str, Entity] = {}
    for measurement in measured:
        stated = json.loads(measurement.versions)
        packages = cast(Mapping[str, str | None], stated["packages"] or {})
        needed = [f"{name} {version}" for name, version in packages.items() if version]
        entity: Entity = {
            "@id": f"#convs2s-{len(entities) + 1}",
            "@type": "SoftwareApplication",
            "name": "convs2s",
            "version": f"{stated['convs2s']}, revision {stated['revision']}",
            "softwareRequirements": [f"python {stated['python']}", *needed],
            "processorRequirements": f"ran on {stated['processor']}, {stated['system']}",
        }
        entities.setdefault(measurement.versions, entity)
    return entities
