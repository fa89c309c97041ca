"""The metadata of exported results: RO-Crate 1.1, JSON-LD by hand.

The library rocrate would bring a web client and a command line into every installation, and spare
the two entities that are the same in each crate: what stands here says what our files are.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files as package_files
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any

import yaml

from convs2s.errors import failures_of_file
from convs2s.files.checksums import sha256
from convs2s.files.text import read_json

_ALIKE = yaml.safe_load(
    package_files("convs2s.publish").joinpath("data", "crate.yaml").read_text("utf-8")
)
_MEDIA_TYPES = MimeTypes().types_map[True] | _ALIKE["media_types"]
METADATA_FILE: str = _ALIKE["descriptor"]["@id"]

Entity = dict[str, object]


@dataclass
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
    held = set(files)
    software = _software(measured.values())
    sources = _sources(folder, files)
    absent: dict[str, Entity] = {}  # no part of the archive: a model, licensed text
    actions: list[Entity] = []
    for file, measurement in measured.items():
        action = _entity(f"#making-{file}", "CreateAction", f"the making of {file}")
        action["instrument"] = {"@id": software[measurement.versions]["@id"]}
        computed_from = []
        for path, digest in measurement.checksums.items():
            key = path
            if path not in held:
                key = f"#{path}"
                absent[key] = _entity(key, "CreativeWork", path, sha256=digest)
            computed_from.append(key)
        action["object"] = _links(computed_from)
        action["result"] = {"@id": file}
        actions.append(action)
    root = _entity(
        "./",
        "Dataset",
        f"Results of {name}",
        description="Scores of sequence to sequence models, and all that they rest on",
        datePublished=datetime.now(UTC).date().isoformat(),
        license={"@id": "#terms"},
        hasPart=_links(files),
        mentions=_links(entity["@id"] for entity in (*actions, *sources)),
    )
    graph = [
        _ALIKE["descriptor"],
        root,
        _ALIKE["terms"],
        *(_file_entity(folder, file) for file in files),
        *absent.values(),
        *sources,
        *software.values(),
        *actions,
    ]
    return {"@context": _ALIKE["context"], "@graph": graph}


def _entity(key: str, kind: str, name: str, **more: object) -> Entity:
    return {"@id": key, "@type": kind, "name": name, **more}


def _links(keys: Iterable[object]) -> list[Entity]:
    return [{"@id": key} for key in keys]


def _file_entity(folder: Path, file: str) -> Entity:
    path = folder / file
    entity = _entity(file, "File", path.name)
    for end, about in _ALIKE["descriptions"].items():
        if file.endswith(end):
            entity["description"] = about
            break
    if path.suffix in _MEDIA_TYPES:
        entity["encodingFormat"] = _MEDIA_TYPES[path.suffix]
    entity["contentSize"] = str(path.stat().st_size)
    entity["sha256"] = sha256(path)
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
                name = source["file"]
                if name in entities:
                    continue
                terms = source.get("licence") or "terms not known"
                key = f"#source-{len(entities) + 1}"
                entities[name] = _entity(key, "CreativeWork", name, usageInfo=terms)
                if source.get("sha256"):
                    entities[name]["sha256"] = source["sha256"]
    return list(entities.values())


def _software(measured: Iterable[Measurement]) -> dict[str, Entity]:
    """Return each set of versions as an entity, by its text."""
    entities: dict[str, Entity] = {}
    for versions in dict.fromkeys(measurement.versions for measurement in measured):
        stated = json.loads(versions)
        packages = stated["packages"] or {}
        needed = [f"{name} {version}" for name, version in packages.items() if version]
        entities[versions] = _entity(
            f"#convs2s-{len(entities) + 1}",
            "SoftwareApplication",
            "convs2s",
            version=f"{stated['convs2s']}, revision {stated['revision']}",
            softwareRequirements=[f"python {stated['python']}", *needed],
            processorRequirements=f"ran on {stated['processor']}, {stated['system']}",
        )
    return entities
