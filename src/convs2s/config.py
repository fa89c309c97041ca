"""The configuration: read, merged, validated, with every default filled in.

``load`` serves the Snakefile and the command line alike. What the files may say is in
``schemas/`` and in docs/configuration.md.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convs2s import scales
from convs2s.config_checks import check_references
from convs2s.config_schema import as_read, check, read_yaml, schema, unknown, with_defaults
from convs2s.errors import UserError

__all__ = [
    "Settings",
    "decoding_defaults",
    "effective",
    "load",
    "merged",
    "model_settings",
    "schema",
]

Values = dict[str, Any]

# What a task with `text: OTHER` has from OTHER.
SHARED = (
    "languages",
    "corpus",
    "hold_out",
    "preparation",
    "clean",
    "paper_pairs",
    "alignment",
)

_OPTION_FILES = ("config.yaml", "config.local.yaml")
# Names become parts of file names, and Snakemake matches them as wildcards.
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Settings:
    """The whole configuration: plain values, every default filled in, ``text:`` resolved.

    Attributes:
        root: the folder of config.yaml and config/.
        options: config.yaml.
        scale: the file of config/scales that options["scale"] names.
        tasks: name -> config/tasks/NAME.yaml.
        models: name -> entry of config/models.yaml, ``extends`` resolved.
        decodings: name -> entry of config/decodings.yaml.
        paper: name of a table or figure -> entry of config/paper.yaml.
        downloads: URL -> entry of config/downloads.yaml.
        costs: config/costs.yaml.
    """

    root: Path
    options: Values
    scale: Values
    tasks: dict[str, Values]
    models: dict[str, Values]
    decodings: dict[str, Values]
    paper: dict[str, Values]
    downloads: dict[str, Values]
    costs: Values


def load(root: Path, given: Values | None = None) -> Settings:
    """Read and validate the configuration below ``root``.

    Args:
        root: the folder of config.yaml and config/.
        given: what stands for config.yaml and config.local.yaml, already merged (the Snakefile's
            ``config``); None reads those two files.

    Raises:
        UserError: one line that names the file, the key and what was expected.
    """
    if not (root / "config").is_dir():
        raise UserError(f"{root}: has no folder config; give the folder of config.yaml")
    options, origins = _options(root, given)
    overrides = options["overrides"]
    where = origins.get("overrides", "config.yaml")
    scale = _scale(root, options["scale"], origins.get("scale", "config.yaml"))
    settings = Settings(
        root=root,
        options=options,
        scale=scale,
        tasks=_tasks(root, overrides["tasks"], where, scale),
        models=_models(root, overrides["models"], where),
        decodings=_decodings(root, overrides["decodings"], where),
        paper=_paper(root),
        downloads=_downloads(root),
        costs=_costs(root),
    )
    check_references(settings)
    return settings


def effective(
    settings: Settings, task: str, model: str | None = None, decoding: str | None = None
) -> Values:
    """Return everything that applies to one task: itself, its model, decoding, scale and options.

    Args:
        settings: the configuration.
        task: name of a task.
        model: name of a model; None takes the task's headline model.
        decoding: name of a decoding; None takes the task's headline decoding.

    Raises:
        UserError: a name is not known; the nearest known one is named.
    """
    headline = _named(settings.tasks, "task", task)["headline"]
    model, decoding = model or headline["model"], decoding or headline["decoding"]
    options = {key: value for key, value in settings.options.items() if key != "overrides"}
    return {
        "task": {"name": task} | settings.tasks[task],
        "model": {"name": model} | _named(settings.models, "model", model),
        "decoding": {"name": decoding} | _named(settings.decodings, "decoding", decoding),
        "scale": {"name": options.pop("scale")} | settings.scale,
        "options": options,
    }


def model_settings(settings: Settings, name: str) -> Values:
    """Return what a training reads of a model: its ``architecture`` and ``training``.

    Raises:
        UserError: there is no such model; the nearest known one is named.
    """
    model = _named(settings.models, "model", name)
    return {key: model[key] for key in ("architecture", "training")}


def decoding_defaults() -> Values:
    """Return the settings of a decoding that states nothing."""
    defaults: Values = with_defaults({}, schema("decoding"))
    return defaults


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Values:
    """Return ``base`` with ``changes`` merged in: mappings key by key, anything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        deeper = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merged(old, value) if deeper else value  # type: ignore[arg-type]
    return result


def _named(known: Mapping[str, Values], what: str, name: str) -> Values:
    if name not in known:
        raise UserError(unknown(what, name, known))
    return known[name]


def _options(root: Path, given: Values | None) -> tuple[Values, dict[str, str]]:
    """Return config.yaml's values with defaults, and which file or flag states each key."""
    stated: Values = {}
    origins: dict[str, str] = {}
    for name in _OPTION_FILES:
        if (root / name).exists():
            content = read_yaml(root / name, name) or {}
            check(content, "config", name)  # each file alone, so that a fault names its own
            stated = merged(stated, content)
            origins |= dict.fromkeys(content, name)
    if given is not None:
        given = as_read(given)
        origins |= {
            key: "--config or --configfile"
            for key, value in given.items()
            if stated.get(key) != value
        }
        stated = given
    return check(stated, "config", "--config or --configfile"), origins


def _scale(root: Path, name: str, where: str) -> Values:
    known = sorted(path.stem for path in (root / "config/scales").glob("*.yaml"))
    if name not in known:
        raise UserError(f"{where}: scale: {unknown('scale', name, known)}")
    file = f"config/scales/{name}.yaml"
    scale: Values = check(read_yaml(root / file, file), "scale", file)
    return scale


def _downloads(root: Path) -> dict[str, Values]:
    file = "config/downloads.yaml"
    entries = read_yaml(root / file, file) or []
    if not isinstance(entries, list):
        raise UserError(f"{file}: expected a list of downloads, each with its url")
    checked = [
        check(entry, "download", f"{file}: download {number}")
        for number, entry in enumerate(entries, start=1)
    ]
    return {entry["url"]: entry for entry in checked}


def _costs(root: Path) -> Values:
    file = "config/costs.yaml"
    costs: Values = check(read_yaml(root / file, file), "cost", file)
    return costs


def _entries(root: Path, file: str) -> dict[str, Values]:
    """Return a file's entries, name -> mapping, as they stand there."""
    entries = read_yaml(root / file, file) or {}
    if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
        raise UserError(f"{file}: expected a mapping of names, each with a mapping of settings")
    for name in entries:
        _check_name(str(name), file)
    return entries


def _check_name(name: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{where}: expected a name of small letters, digits and underscores, not '{name}'"
        )


def _overridden(
    entries: dict[str, Values], changes: dict[str, Values], what: str, where: str
) -> dict[str, Values]:
    for name in changes:
        if name not in entries:
            raise UserError(f"{where}: overrides.{what}s: {unknown(what, name, entries)}")
    return merged(entries, changes)


def _decodings(root: Path, changes: dict[str, Values], where: str) -> dict[str, Values]:
    file = "config/decodings.yaml"
    entries = _overridden(_entries(root, file), changes, "decoding", where)
    return {
        name: check(entry, "decoding", _place(f"{file}: {name}", name in changes, where))
        for name, entry in entries.items()
    }


def _models(root: Path, changes: dict[str, Values], where: str) -> dict[str, Values]:
    file = "config/models.yaml"
    entries = _overridden(_entries(root, file), changes, "model", where)
    return {
        name: check(
            _extended(entries, name, (), file),
            "model",
            _place(f"{file}: {name}", name in changes, where),
        )
        for name in entries
    }


def _extended(entries: dict[str, Values], name: str, path: tuple[str, ...], file: str) -> Values:
    """Return a model's entry merged onto those that it extends."""
    base = entries[name].get("extends")
    if base is None:
        return entries[name]
    if base not in entries:
        raise UserError(f"{file}: {name}.extends: {unknown('model', base, entries)}")
    if base in (*path, name):
        chain = " -> ".join((*path, name, base))
        raise UserError(f"{file}: {name}.extends: a model cannot extend itself: {chain}")
    return merged(_extended(entries, base, (*path, name), file), entries[name])


def _tasks(root: Path, changes: dict[str, Values], where: str, scale: Values) -> dict[str, Values]:
    entries = {}
    for path in sorted((root / "config/tasks").glob("*.yaml")):
        file = f"config/tasks/{path.name}"
        _check_name(path.stem, file)
        entries[path.stem] = read_yaml(path, file)
        if not isinstance(entries[path.stem], dict):
            raise UserError(f"{file}: expected a mapping of keys to values")
    entries = _overridden(entries, changes, "task", where)
    tasks = {}
    for name in entries:
        place = _place(f"config/tasks/{name}.yaml", name in changes, where)
        task = tasks[name] = check(_with_text(entries, name, place), "task", place)
        task["headline"] |= _stand_ins(task, scale)
    return tasks


def _stand_ins(task: Values, scale: Values) -> Values:
    """Return what a task's headline rests on at a scale."""
    headline, tests = task["headline"], list(task["corpus"]["tests"])
    return {
        "model": scales.headline_model(scale, headline["model"]),
        "seeds": scales.headline_seeds(scale, headline["seeds"]),
        "tests": scales.headline_tests(scale, headline["tests"] or tests, tests),
    }


def _with_text(entries: dict[str, Values], name: str, place: str) -> Values:
    """Return a task's entry with what it has from the task that ``text`` names."""
    entry = entries[name]
    text = entry.get("text")
    if text is None:
        return entry
    if text not in entries or text == name:
        raise UserError(f"{place}: text: {unknown('task', text, set(entries) - {name})}")
    if entries[text].get("text") is not None:
        raise UserError(f"{place}: text: '{text}' has no text of its own; name the task it shares")
    for key in SHARED:
        if key in entry:
            raise UserError(
                f"{place}: {key}: comes from '{text}', as text names it; state it there"
            )
    return entry | {key: entries[text][key] for key in SHARED if key in entries[text]}


def _place(file: str, changed: bool, where: str) -> str:
    """Return what a message begins with, where values may come from ``overrides`` as well."""
    return f"{file} (with the overrides of {where})" if changed else file


def _paper(root: Path) -> dict[str, Values]:
    file = "config/paper.yaml"
    tables = {}
    for name, entry in _entries(root, file).items():
        table = check(entry, "paper", f"{file}: {name}")
        common = table["ours"]
        for row, stated in zip(table["rows"], entry.get("rows", []), strict=True):
            if row["kind"] == "ours":
                row |= {key: value for key, value in common.items() if key not in stated}
        tables[name] = table
    return tables
