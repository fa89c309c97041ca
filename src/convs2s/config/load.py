"""The configuration: read, merged and validated, for the Snakefile and the command line alike.

What the files may say is in the classes of this package and in docs/configuration.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.config.architecture import KINDS
from convs2s.config.claims import Claim
from convs2s.config.corpus import PREPARATIONS
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import added, export_extensions
from convs2s.config.file_reference import Download, with_texts
from convs2s.config.measures import MEASURES
from convs2s.config.messages import check_known, validated
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Table
from convs2s.config.scale import Scale
from convs2s.config.section import Items, S, Section, Values
from convs2s.config.settings import Settings, check_references
from convs2s.config.task import SHARED_WITH_TEXT, Task
from convs2s.config.yaml_file import option_files, read_yaml
from convs2s.errors import UserError

Entries = dict[str, Values]  # name -> what its entry states

_COMMAND_LINE = "--config or --configfile"
FOLDERS_OF_RESULTS = ("archives", "benchmarks", "downloads", "logs", "paper", "scales", "shown")
"""What lies beside the folders of tasks."""


def load(
    root: Path,
    given: Mapping[str, object] | None = None,
    *,
    shipped: Path | None = None,
    given_by: str | None = None,
) -> Settings:
    """Read and validate the configuration below ``root``, the folder of config.yaml and config/.

    ``given`` is config.yaml and config.local.yaml as Snakemake merged them; None reads the two.
    ``shipped`` is the folder of a deployed workflow, whose config/ stands in for what ``root``
    lacks. ``given_by`` is what messages call ``given`` where another workflow states it; the files
    of ``root`` then say nothing.

    Raises:
        UserError: Names the file, the key and what was expected.
    """
    options, origins = _read_options(root, given, given_by)
    files = _Files(
        own=root,
        shipped=shipped,
        overrides=options.overrides.model_dump(),
        overrides_from=origins.get("overrides", "config.yaml"),
        has_texts=given is not None,
    )
    if not files.find("config").is_dir():
        raise UserError(
            f"{root}: has no folder config, as a clone or a deployed workflow has: run it there"
        )
    export_extensions(options.extensions, root, add=given_by is not None)
    added("ARCHITECTURES", KINDS)  # names that are taken are refused before anybody asks for them
    added("PREPARATIONS", PREPARATIONS)
    added("METRICS", {"chrF", *MEASURES})
    place = f"{origins.get('scale', 'config.yaml')}: scale"
    check_known(place, "scale", options.scale, files.names("config/scales"))
    scale = files.section(Scale, f"config/scales/{options.scale}.yaml")
    tables, paper = _read_tables(files, scale, options.scale)
    models, scale = _read_models(files, scale, paper)
    settings = Settings(
        options=options,
        scale=scale,
        tasks=_read_tasks(files, scale),
        models=models,
        decodings=files.named(DecodingSettings, "config/decodings.yaml", "decodings"),
        tables=tables,
        paper=paper,
        claims=files.named(Claim, "config/claims.yaml"),
        phrases=files.named(Phrases, "config/phrases.yaml"),
        downloads=_read_downloads(files),
        costs=files.section(Costs, "config/costs.yaml"),
    )
    check_references(settings, origins.get("tasks", "config.yaml"), files.place)
    return settings


def load_for_job(config: Mapping[str, object], shipped: str | Path) -> Settings:
    """Read the configuration in a job of the workflow, from the folder that Snakemake runs in."""
    return load(Path.cwd(), config, shipped=Path(shipped), given_by="the workflow's configuration")


def merged(base: Mapping[str, object], changes: Mapping[str, object]) -> Values:
    """Return ``base`` with ``changes`` merged in: mappings key by key, anything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        deeper = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merged(old, value) if deeper else value  # type: ignore[arg-type]
    return result


@dataclass(frozen=True)
class _Files:
    """The files of config/, a user's own and the workflow's, and what config.yaml overrides."""

    own: Path
    shipped: Path | None  # the folder of the workflow, for what is not there
    overrides: Mapping[str, Entries]  # of tasks, models and decodings: name -> keys to replace
    overrides_from: str  # the file or flag that states them
    has_texts: bool  # whether Snakemake may have left texts in them

    def find(self, file: str) -> Path:
        """Return where a file lies: the user's own, else what came with the workflow."""
        own = self.own / file
        return own if self.shipped is None or own.exists() else self.shipped / file

    def names(self, folder: str) -> list[str]:
        """Return the names of all YAML files of a folder, the user's own and those that came."""
        for file in (self.own / folder).glob("[!.]*.yml"):  # .#NAME is an editor's lock
            raise UserError(f"{folder}/{file.name}: is not read: rename it to {file.stem}.yaml")
        names: set[str] = set()
        for root in filter(None, (self.own, self.shipped)):
            names.update(file.stem for file in (root / folder).glob("[!.]*.yaml"))
        return sorted(names)

    def section(self, section: type[S], file: str) -> S:
        """Return the one section that a file states."""
        return validated(section, read_yaml(self.find(file), file), file)

    def entries(self, file: str) -> Entries:
        """Return what a file states under each of its names, not validated yet."""
        entries = read_yaml(self.find(file), file) or {}
        message = f"{file}: expected a mapping of names, each with a mapping of settings"
        if not isinstance(entries, dict):
            raise UserError(message)
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                raise UserError(message)
            _check_name(str(name), file)
        return entries

    def overridden(self, kind: str, entries: Entries) -> Entries:
        """Return entries with the overrides merged into those that have some."""
        changes = self.overrides.get(kind, {})
        return {name: merged(entry, changes.get(name, {})) for name, entry in entries.items()}

    def check_overrides(self, kind: str, entries: Entries) -> None:
        """Check that there is each entry that has overrides."""
        for name in self.overrides.get(kind, ()):
            place = f"{self.overrides_from}: overrides.{kind}"
            check_known(place, kind.removesuffix("s"), name, entries)

    def place(self, kind: str, file: str, name: str) -> str:
        """Return what a message on an entry begins with: its file, and what overrides it."""
        if name not in self.overrides.get(kind, ()):
            return file
        return f"{file} (with the overrides of {self.overrides_from})"

    def is_lax(self, kind: str) -> bool:
        """Whether texts may stand for numbers, truth values and null in entries with overrides."""
        return self.has_texts and bool(self.overrides.get(kind))

    def named(self, section: type[S], file: str, kind: str = "") -> dict[str, S]:
        """Return the sections that a file holds by their names; of a kind, with its overrides."""
        entries = self.entries(file)
        self.check_overrides(kind, entries)
        sections = {}
        for name, entry in self.overridden(kind, entries).items():
            place = self.place(kind, f"{file}: {name}", name)
            sections[name] = validated(section, entry, place, lax=self.is_lax(kind))
        return sections


def _read_options(
    root: Path, given: Mapping[str, object] | None, given_by: str | None
) -> tuple[Options, dict[str, str]]:
    """Return config.yaml with its defaults, and which file or flag states each key."""
    stated: Values = {}
    origins: dict[str, str] = {}
    if given_by is None:
        for name, content in option_files(root).items():
            validated(Options, content, name)
            assert isinstance(content, dict)
            stated = merged(stated, content)
            origins |= dict.fromkeys(content, name)
    giver = given_by or _COMMAND_LINE
    if given is not None:
        # Snakemake leaves numbers, truth values and null inside of such a mapping as text:
        # --config 'plots={sentences: [1]}'. So it does with 1e-4 in a file.
        read = with_texts(given, lambda text: None if text == "null" else text)
        for key, value in read.items():
            if stated.get(key) != value:
                origins[key] = giver
        stated = read
    return validated(Options, stated, giver, lax=given is not None), origins


def _check_name(name: str, where: str) -> None:
    # Names become parts of file names, and Snakemake matches them as wildcards.
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{where}: expected a name that begins with a small letter and has small letters, "
            f"digits and underscores alone, not '{name}'"
        )


class _Downloads(Section):
    downloads: Items[Download]


def _read_downloads(files: _Files) -> dict[str, Download]:
    """Return what config/downloads.yaml knows of files, by their addresses."""
    file = "config/downloads.yaml"
    stated = {"downloads": read_yaml(files.find(file), file) or []}
    return {download.url: download for download in validated(_Downloads, stated, file).downloads}


def _read_tables(
    files: _Files, scale: Scale, name_of_scale: str
) -> tuple[dict[str, Table], dict[str, Table]]:
    """Return all tables of config/paper.yaml, and those that have rows at this scale."""
    tables = files.named(Table, "config/paper.yaml")
    for name in {"claims", "costs", "ledger", "report"} & tables.keys():
        raise UserError(
            f"config/paper.yaml: {name}: a page beside the tables has this name; rename the table"
        )
    for name in scale.without:
        check_known(f"config/scales/{name_of_scale}.yaml: without", "table", name, tables)
    shown = {}
    for name, table in tables.items():
        if name not in scale.without and scale.shown_rows(table):
            shown[name] = table
    return tables, shown


def _read_tasks(files: _Files, scale: Scale) -> dict[str, Task]:
    """Return the tasks of config/tasks, each with its headline at this scale."""
    entries: Entries = {}
    for name in files.names("config/tasks"):
        file = f"config/tasks/{name}.yaml"
        _check_name(name, file)
        if name in FOLDERS_OF_RESULTS:
            raise UserError(
                f"{file}: the results have a folder '{name}' of their own; rename the task's file"
            )
        entry = read_yaml(files.find(file), file)
        if not isinstance(entry, dict):
            raise UserError(f"{file}: expected a mapping of keys to values")
        entries[name] = entry
    files.check_overrides("tasks", entries)
    entries = files.overridden("tasks", entries)
    lax = files.is_lax("tasks")
    tasks = {}
    for name in entries:
        place = files.place("tasks", f"config/tasks/{name}.yaml", name)
        task = Task.named(name, _with_shared_text(entries, name, place), place, lax)
        tasks[name] = task.model_copy(update={"headline": scale.headline_of(task)})
    return tasks


def _with_shared_text(entries: Entries, name: str, place: str) -> Values:
    """Return a task's entry with what it has from the task that ``text`` names."""
    entry = entries[name]
    text = entry.get("text")
    if text is None:
        return entry
    check_known(f"{place}: text", "task", str(text), set(entries) - {name})
    if entries[text].get("text") is not None:
        raise UserError(f"{place}: text: '{text}' has no text of its own; name the task it shares")
    shared = {}
    for key in SHARED_WITH_TEXT:
        if key in entry:
            raise UserError(f"{place}: {key}: is from '{text}', as text names it; state it there")
        if key in entries[text]:
            shared[key] = entries[text][key]
    return entry | shared


def _read_models(
    files: _Files, scale: Scale, paper: Mapping[str, Table]
) -> tuple[dict[str, ModelSettings], Scale]:
    """Return all models, and the scale with its small versions of some as their stand-ins."""
    file = "config/models.yaml"
    lax = files.is_lax("models")

    def read(name: str) -> ModelSettings:
        place = files.place("models", f"{file}: {name}", name)
        return validated(ModelSettings, _extended(entries, name, file), place, lax=lax)

    entries = files.overridden("models", files.entries(file))
    models = {name: read(name) for name in entries}
    stand_ins: dict[str, str] = {}
    if scale.shrink:
        for name in scale.to_shrink(paper.values()):
            if name not in models or not models[name].architecture.blocks:
                continue
            small = f"{scale.shrink.prefix}_{name}"
            stand_ins[name] = small
            if small not in models:
                entry = scale.shrink.entry(name, models[name].architecture)
                entries |= files.overridden("models", {small: entry})
                models[small] = read(small)
    files.check_overrides("models", entries)
    return models, scale.model_copy(update={"models": stand_ins | scale.models})


def _extended(entries: Entries, name: str, file: str, below: Sequence[str] = ()) -> Values:
    """Return a model's entry merged onto those that it extends; those ``below`` extend it."""
    base = entries[name].get("extends")
    if base is None:
        return entries[name]
    place = f"{file}: {name}.extends"
    check_known(place, "model", str(base), entries)
    names = [*below, name]
    if base in names:
        chain = " -> ".join([*names, base])
        raise UserError(f"{place}: a model cannot extend itself: {chain}")
    return merged(_extended(entries, base, file, names), entries[name])
