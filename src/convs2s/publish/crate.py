"""The metadata of exported results: RO-Crate 1.1, JSON-LD by hand."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from convs2s.files.checksums import sha256
from convs2s.files.text import read_json

METADATA_FILE = "ro-crate-metadata.json"

_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]

_MEDIA_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".tex": "application/x-tex",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".zst": "application/zstd",
}

_KINDS = {
    ".bleu.json": "BLEU and chrF of one run on one test set, with signatures and manifest",
    ".rouge.json": "ROUGE of one run on one test set, with signatures and manifest",
    ".speed.json": "time that decoding a test set takes",
    "bleu.json": "the task's headline: mean and deviation over runs",
    "rouge.json": "the task's headline: mean and deviation over runs, beside the lead baseline",
    "training.json": "summary and manifest of a training",
    "history.jsonl": "a row for each epoch of a training",
    "settings.json": "architecture and recipe of a model",
    "card.md": "model card",
    "ledger.jsonl": "a line for each file of numbers that the papers' tables rest on",
    ".jsonl": "translations with scores, alignments and replaced words",
    ".zst": "text of a test set, as the scores were computed from it",
}
"""How a file's name ends -> what it is; the first that fits."""

Entity = dict[str, object]


@dataclass(frozen=True)
class Measurement:
    """What a file of numbers says of its making.

    Attributes:
        checksums: path of each file that it was computed from -> SHA-256.
        software: versions, code revision and machine.
    """

    checksums: Mapping[str, str]
    software: Mapping[str, object]


def read_measurement(path: Path) -> Measurement | None:
    """Read what a JSON file says of its making; None where it says nothing.

    Raises:
        UserError: it is not JSON.
    """
    content = read_json(path)
    manifest = content.get("manifest") if isinstance(content, dict) else None
    if not isinstance(manifest, dict) or not manifest.get("sha256"):
        return None
    keys = ("convs2s", "revision", "python", "packages", "processor", "system")
    return Measurement(manifest["sha256"], {key: manifest.get(key) for key in keys})


def crate(
    folder: Path, name: str, files: Sequence[str], measured: Mapping[str, Measurement]
) -> Entity:
    """Return the metadata of a folder's files.

    Args:
        folder: the archive's root.
        name: of what was exported.
        files: the paths below the folder, with slashes.
        measured: path of each file of numbers -> what it says of its making.
    """
    digests = {file: sha256(folder / file) for file in files}
    software = _software(one.software for one in measured.values())
    sources = list(_sources(folder, files))
    actions = [_action(file, one, digests, software) for file, one in measured.items()]
    absent = _absent(measured.values(), digests)
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Results of {name}",
        "description": "Scores of sequence to sequence models, and all that they rest on",
        "datePublished": datetime.now(UTC).date().isoformat(),
        "license": {"@id": "#terms"},
        "hasPart": _references(files),
        "mentions": [{"@id": one["@id"]} for one in (*actions, *sources)],
    }
    entities = [_descriptor(), root, _terms(), *_file_entities(folder, digests)]
    return {
        "@context": _CONTEXT,
        "@graph": [*entities, *absent, *sources, *software.values(), *actions],
    }


def _descriptor() -> Entity:
    return {
        "@id": METADATA_FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }


def _terms() -> Entity:
    return {
        "@id": "#terms",
        "@type": "CreativeWork",
        "name": "Terms of use",
        "description": "Numbers and code: MIT. Sentences of test sets, and their translations: as "
        "the owners of the data state; what is known of that stands with each source.",
    }


def _file_entities(folder: Path, digests: Mapping[str, str]) -> Iterator[Entity]:
    for file, digest in digests.items():
        about = next((text for end, text in _KINDS.items() if file.endswith(end)), None)
        media = _MEDIA_TYPES.get(Path(file).suffix)
        yield {
            "@id": file,
            "@type": "File",
            "name": Path(file).name,
            **({"description": about} if about else {}),
            **({"encodingFormat": media} if media else {}),
            "contentSize": str((folder / file).stat().st_size),
            "sha256": digest,
        }


def _sources(folder: Path, files: Iterable[str]) -> Iterator[Entity]:
    """Yield the files that text came from, as the descriptions of the token stores name them."""
    seen = set()
    for file in files:
        content = read_json(folder / file) if file.endswith("/dataset/train.json") else {}
        assert isinstance(content, dict)
        for source in content.get("sources", ()):
            if source["file"] not in seen:
                seen.add(source["file"])
                yield {
                    "@id": f"#source-{len(seen)}",
                    "@type": "CreativeWork",
                    "name": source["file"],
                    "usageInfo": source.get("licence") or "terms not known",
                    **({"sha256": source["sha256"]} if source.get("sha256") else {}),
                }


def _absent(measured: Iterable[Measurement], digests: Mapping[str, str]) -> list[Entity]:
    """Return what was computed from, but is no part of the archive: models, licensed text."""
    stated = {path: digest for one in measured for path, digest in one.checksums.items()}
    return [
        {"@id": f"#{path}", "@type": "CreativeWork", "name": path, "sha256": digest}
        for path, digest in stated.items()
        if path not in digests
    ]


def _software(stated: Iterable[Mapping[str, object]]) -> dict[str, Entity]:
    """Return each set of versions as an entity, by its text."""
    found: dict[str, Entity] = {}
    for one in stated:
        packages = cast(Mapping[str, str | None], one["packages"] or {})
        found.setdefault(
            json.dumps(one, sort_keys=True),
            {
                "@id": f"#convs2s-{len(found) + 1}",
                "@type": "SoftwareApplication",
                "name": "convs2s",
                "version": f"{one['convs2s']}, revision {one['revision']}",
                "softwareRequirements": [
                    f"python {one['python']}",
                    *(f"{name} {version}" for name, version in packages.items() if version),
                ],
                "processorRequirements": f"ran on {one['processor']}, {one['system']}",
            },
        )
    return found


def _action(
    file: str,
    measurement: Measurement,
    digests: Mapping[str, str],
    software: Mapping[str, Entity],
) -> Entity:
    """Return the making of a file of numbers."""
    used = software[json.dumps(measurement.software, sort_keys=True)]
    paths = [path if path in digests else f"#{path}" for path in measurement.checksums]
    return {
        "@id": f"#making-{file}",
        "@type": "CreateAction",
        "name": f"the making of {file}",
        "instrument": {"@id": used["@id"]},
        "object": _references(paths),
        "result": {"@id": file},
    }


def _references(ids: Iterable[str]) -> list[Entity]:
    return [{"@id": one} for one in ids]
