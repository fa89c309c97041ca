"""The metadata of exported results: an RO-Crate 1.1, written as JSON-LD without a library.

The library rocrate would add a web client and a command line to every installation. It would spare
us only the two entities that are the same in each crate. The rest describes our own files.
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

_CONSTANTS = yaml.safe_load(
    package_files("convs2s.publish").joinpath("data", "crate.yaml").read_text("utf-8")
)
# types_map[True] has the types that are registered at IANA.
_MEDIA_TYPES = MimeTypes().types_map[True] | _CONSTANTS["media_types"]
METADATA_FILE: str = _CONSTANTS["descriptor"]["@id"]

Entity = dict[str, object]


@dataclass
class Measurement:
    """The origin of a file of numbers, as the file itself records it."""

    # Path of each file that it was computed from -> SHA-256.
    checksums: Mapping[str, str]
    # The versions of software, the code's revision and the machine. They are JSON text, so that
    # they can be the key of a dictionary.
    versions: str


def read_measurement(path: Path) -> Measurement | None:
    """Read the origin of a file of numbers; return None if the file does not record it.

    Raises:
        UserError: the file is not JSON.
    """
    match read_json(path):
        case {"manifest": {"sha256": dict(checksums), **manifest}} if checksums:
            keys = ("convs2s", "revision", "python", "packages", "processor", "system")
            versions = {key: manifest.get(key) for key in keys}
            return Measurement(checksums, json.dumps(versions, sort_keys=True))
    return None


def crate(
    folder: Path,
    name: str,
    files: Sequence[str],
    measured: Mapping[str, Measurement],
) -> Entity:
    """Return the metadata of the files in a folder.

    Args:
        folder: the folder.
        name: the name of the results, for people.
        files: the paths of the files, from the folder and with slashes.
        measured: path of each file of numbers -> its origin.
    """
    included = set(files)
    software = _software(measured.values())
    sources = _sources(folder, files)
    absent: dict[str, Entity] = {}  # files that are not in the folder, such as models
    actions: list[Entity] = []
    for file, measurement in measured.items():
        computed_from = []
        for path, digest in measurement.checksums.items():
            identifier = path
            if path not in included:
                identifier = f"#{path}"
                absent[identifier] = _entity(
                    identifier, "CreativeWork", path, sha256=digest
                )
            computed_from.append(identifier)
        action = _entity(
            f"#making-{file}",
            "CreateAction",
            f"the making of {file}",
            instrument={"@id": software[measurement.versions]["@id"]},
            object=_links(computed_from),
            result={"@id": file},
        )
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
        _CONSTANTS["descriptor"],
        root,
        _CONSTANTS["terms"],
        *(_file_entity(folder, file) for file in files),
        *absent.values(),
        *sources,
        *software.values(),
        *actions,
    ]
    return {"@context": _CONSTANTS["context"], "@graph": graph}


def _entity(
    identifier: str,
    kind: str,
    name: str,
    **properties: object,
) -> Entity:
    """Return an entity of JSON-LD."""
    return {"@id": identifier, "@type": kind, "name": name, **properties}


def _links(identifiers: Iterable[object]) -> list[Entity]:
    """Return references to the entities with these identifiers."""
    return [{"@id": identifier} for identifier in identifiers]


def _file_entity(folder: Path, file: str) -> Entity:
    """Return the entity of a file. The end of its name determines its description."""
    path = folder / file
    entity = _entity(file, "File", path.name)
    for suffix, description in _CONSTANTS["descriptions"].items():
        if file.endswith(suffix):
            # setdefault: of several that match, the first is used.
            entity.setdefault("description", description)
    if path.suffix in _MEDIA_TYPES:
        entity["encodingFormat"] = _MEDIA_TYPES[path.suffix]
    entity["contentSize"] = str(path.stat().st_size)
    entity["sha256"] = sha256(path)
    return entity


def _sources(folder: Path, files: Iterable[str]) -> list[Entity]:
    """Return the source files of training text, each once, as entities.

    They are read from the descriptions of token stores (``dataset/train.json``).
    """
    entities: dict[str, Entity] = {}
    for file in files:
        if not file.endswith("/dataset/train.json"):
            continue
        content: Any = read_json(folder / file)
        with failures_of_file(
            folder / file, "no description of training text; prepare again"
        ):
            for source in content.get("sources", ()):
                name = source["file"]
                if name in entities:
                    continue
                entities[name] = _entity(
                    f"#source-{len(entities) + 1}",
                    "CreativeWork",
                    name,
                    usageInfo=source.get("licence") or "terms not known",
                )
                if source.get("sha256"):
                    entities[name]["sha256"] = source["sha256"]
    return list(entities.values())


def _software(measured: Iterable[Measurement]) -> dict[str, Entity]:
    """Return one entity for each distinct ``Measurement.versions``, by those versions."""
    entities: dict[str, Entity] = {}
    for versions in dict.fromkeys(measurement.versions for measurement in measured):
        manifest = json.loads(versions)
        packages = manifest["packages"] or {}
        needed = [f"{name} {version}" for name, version in packages.items() if version]
        entities[versions] = _entity(
            f"#convs2s-{len(entities) + 1}",
            "SoftwareApplication",
            "convs2s",
            version=f"{manifest['convs2s']}, revision {manifest['revision']}",
            softwareRequirements=[f"python {manifest['python']}", *needed],
            processorRequirements=f"ran on {manifest['processor']}, {manifest['system']}",
        )
    return entities
