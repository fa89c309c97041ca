"""The configuration: read, merged and validated, for the Snakefile and the command line alike.

What the files may say is in the classes of this package and in docs/configuration.md.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from convs2s.config.architecture import KINDS
from convs2s.config.claims import Claim
from convs2s.config.corpus import PREPARATIONS
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.extensions import added, check_added, export_extensions
from convs2s.config.file_reference import Download
from convs2s.config.measures import MEASURES
from convs2s.config.messages import check_known, place_of, validated
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Table
from convs2s.config.scale import Scale
from convs2s.config.section import S, Section, Values
from convs2s.config.settings import Settings, check_references
from convs2s.config.task import SHARED_WITH_TEXT, Task
from convs2s.config.yaml_file import option_files, read_scalar, read_yaml
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
    folders = _Folders(root, shipped)
    if not folders.find("config").is_dir():
        raise UserError(
            f"{root}: has no folder config, as a clone or a deployed workflow has: run it there"
        )
    options, origins = _read_options(root, given, given_by)
    export_extensions(options.extensions, root, add=given_by is not None)
    added("ARCHITECTURES", KINDS)  # names that are taken are refused before anybody asks for them
    added("PREPARATIONS", PREPARATIONS)
    added("METRICS", {"chrF", *MEASURES})

    def overrides_of(noun: str, entries: Mapping[str, Values]) -> _Overrides:
        origin = origins.get("overrides", "config.yaml")
        return _Overrides(noun, entries, origin, has_texts=given is not None)

    tasks = overrides_of("task", options.overrides.tasks)
    models = overrides_of("model", options.overrides.models)
    decodings = overrides_of("decoding", options.overrides.decodings)
    place = f"{origins.get('scale', 'config.yaml')}: scale"
    check_known(place, "scale", options.scale, folders.names("config/scales"))
    scale = folders.section(Scale, f"config/scales/{options.scale}.yaml")
    tables, paper = _read_tables(folders, scale, options.scale)
    model_settings, scale = _read_models(folders, models, scale, paper)
    settings = Settings(
        options=options,
        scale=scale,
        tasks=_read_tasks(folders, tasks, scale),
        models=model_settings,
        decodings=folders.named(DecodingSettings, "config/decodings.yaml", decodings),
        tables=tables,
        paper=paper,
        claims=folders.named(Claim, "config/claims.yaml"),
        phrases=folders.named(Phrases, "config/phrases.yaml"),
        downloads=_read_downloads(folders),
        costs=folders.section(Costs, "config/costs.yaml"),
    )
    check_references(settings, origins.get("tasks", "config.yaml"), tasks.place, models.place)
    return settings


def load_for_job(config: Mapping[str, object], shipped: str | Path) -> Settings:
    """Read the configuration in a job of the workflow, from the folder that Snakemake runs in."""
    return load(Path.cwd(), config, shipped=Path(shipped), given_by="the workflow's configuration")


def check_option_files(root: Path) -> dict[str, Values]:
    """Return what each of the files of options states, validated by itself.

    The Snakefile asks before Snakemake reads the files, whose message on bad YAML names no file.
    """
    stated: dict[str, Values] = {}
    for name in option_files(root):
        content = read_yaml(root / name, name)
        validated(Options, content, name)
        assert isinstance(content, dict)
        stated[name] = content
    return stated


def merged(base: Mapping[str, object], changes: Mapping[str, object]) -> Values:
    """Return ``base`` with ``changes`` merged in: mappings key by key, anything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        deeper = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merged(old, value) if deeper else value  # type: ignore[arg-type]
    return result


@dataclass(frozen=True)
class _Overrides:
    """The overrides of config.yaml for tasks, models or decodings: name -> keys to replace."""

    noun: str = ""  # task, model or decoding
    entries: Mapping[str, Values] = field(default_factory=dict)
    origin: str = ""  # the file or flag that states them
    has_texts: bool = False  # whether Snakemake may have left texts in them

    def applied(self, entries: Entries) -> Entries:
        """Return entries of config/ with the overrides merged in, whose names must be known."""
        for name in self.entries:
            check_known(f"{self.origin}: overrides.{self.noun}s", self.noun, name, entries)
        return self.merged_into(entries)

    def merged_into(self, entries: Entries) -> Entries:
        """Return the entries with the overrides of those that are there."""
        return {name: merged(entry, self.entries.get(name, {})) for name, entry in entries.items()}

    def place(self, file: str, name: str) -> str:
        """Return what a message on an entry begins with."""
        return f"{file} (with the overrides of {self.origin})" if name in self.entries else file

    def read(self, section: type[Section], entry: Values) -> Values:
        """Return an entry with the texts read that Snakemake may have left in it."""
        return _with_texts_read(section, entry) if self.has_texts and self.entries else entry


@dataclass(frozen=True)
class _Folders:
    """The folder of config.yaml and config/, and the workflow's own for what is not there."""

    own: Path
    shipped: Path | None

    def find(self, file: str) -> Path:
        """Return where a file lies: the user's own, else what came with the workflow."""
        own = self.own / file
        return own if self.shipped is None or own.exists() else self.shipped / file

    def names(self, folder: str) -> list[str]:
        """Return the names of all YAML files of a folder, the user's own and those that came."""
        for file in (self.own / folder).glob("[!.]*.yml"):  # .#NAME is an editor's lock
            raise UserError(f"{folder}/{file.name}: is not read: rename it to {file.stem}.yaml")
        names: set[str] = set()
        for root in (self.own, self.shipped):
            if root is not None:
                names.update(file.stem for file in (root / folder).glob("[!.]*.yaml"))
        return sorted(names)

    def content(self, file: str) -> object:
        """Return what a file states, None where it is empty."""
        return read_yaml(self.find(file), file)

    def section(self, section: type[S], file: str) -> S:
        """Return the one section that a file states."""
        return validated(section, self.content(file), file)

    def entries(self, file: str) -> Entries:
        """Return what a file states under each of its names, not validated yet.

        Raises:
            UserError: it is no mapping of names, each with a mapping.
        """
        entries = self.content(file) or {}
        message = f"{file}: expected a mapping of names, each with a mapping of settings"
        if not isinstance(entries, dict):
            raise UserError(message)
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                raise UserError(message)
            _check_name(str(name), file)
        return entries

    def named(
        self, section: type[S], file: str, overrides: _Overrides = _Overrides()
    ) -> dict[str, S]:
        """Return the sections that a file holds by their names."""
        sections = {}
        for name, entry in overrides.applied(self.entries(file)).items():
            place = overrides.place(f"{file}: {name}", name)
            sections[name] = validated(section, overrides.read(section, entry), place)
        return sections


def _read_options(
    root: Path, given: Mapping[str, object] | None, given_by: str | None
) -> tuple[Options, dict[str, str]]:
    """Return config.yaml with its defaults, and which file or flag states each key."""
    stated: Values = {}
    origins: dict[str, str] = {}
    if given_by is None:
        for name, content in check_option_files(root).items():
            stated = merged(stated, content)
            origins |= dict.fromkeys(content, name)
    giver = given_by or _COMMAND_LINE
    if given is not None:
        read = _with_texts_read(Options, dict(given))
        for key, value in read.items():
            if stated.get(key) != value:
                origins[key] = giver
        stated = read
    return validated(Options, stated, giver), origins


def _with_texts_read(section: type[Section], stated: Values) -> Values:
    """Return what is stated, its texts read as YAML where the section takes no text.

    Snakemake leaves numbers, truth values and null inside of ``--config 'plots={sentences: [1]}'``
    as text, and so it does with 1e-4 in a file.
    """
    network = stated.get("architecture")
    try:
        if isinstance(network, dict):
            own = check_added("", "ARCHITECTURES", network.get("kind"), KINDS)
            if own is not None:
                stated = stated | {"architecture": _with_texts_read(own, network)}
        section.model_validate(stated)
        return stated
    except UserError:  # of an extension's network: who reads the section says it, with its place
        return stated
    except ValidationError as error:
        changed = deepcopy(stated)
        for failure in error.errors(include_url=False, include_context=False):
            place = place_of(failure["loc"], stated)
            if not place:
                continue
            *above, key = place
            holder: Any = changed
            for part in above:
                holder = holder[part]
            if isinstance(holder[key], str):
                holder[key] = read_scalar(holder[key])
        return changed


def _check_name(name: str, where: str) -> None:
    # Names become parts of file names, and Snakemake matches them as wildcards.
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{where}: expected a name that begins with a small letter and has small letters, "
            f"digits and underscores alone, not '{name}'"
        )


def _read_downloads(folders: _Folders) -> dict[str, Download]:
    """Return what config/downloads.yaml knows of files, by their addresses."""
    file = "config/downloads.yaml"
    entries = folders.content(file) or []
    if not isinstance(entries, list):
        raise UserError(f"{file}: expected a list of downloads, each with its url")
    downloads = {}
    for number, entry in enumerate(entries, start=1):
        download = validated(Download, entry, f"{file}: download {number}")
        downloads[download.url] = download
    return downloads


def _read_tables(
    folders: _Folders, scale: Scale, name_of_scale: str
) -> tuple[dict[str, Table], dict[str, Table]]:
    """Return all tables of config/paper.yaml, and those that have rows at this scale."""
    tables = folders.named(Table, "config/paper.yaml")
    for name in {"claims", "costs", "ledger", "report"} & tables.keys():
        raise UserError(
            f"config/paper.yaml: {name}: a page beside the tables has this name; rename the table"
        )
    for name in scale.without:
        check_known(f"config/scales/{name_of_scale}.yaml: without", "table", name, tables)
    shown = {}
    for name, table in tables.items():
        tables[name] = table.filled()
        if name not in scale.without and scale.shown_rows(tables[name]):
            shown[name] = tables[name]
    return tables, shown


def _read_tasks(folders: _Folders, overrides: _Overrides, scale: Scale) -> dict[str, Task]:
    """Return the tasks of config/tasks, each with its headline at this scale."""
    entries: Entries = {}
    for name in folders.names("config/tasks"):
        file = f"config/tasks/{name}.yaml"
        _check_name(name, file)
        if name in FOLDERS_OF_RESULTS:
            raise UserError(
                f"{file}: the results have a folder '{name}' of their own; rename the task's file"
            )
        entry = folders.content(file)
        if not isinstance(entry, dict):
            raise UserError(f"{file}: expected a mapping of keys to values")
        entries[name] = entry
    entries = overrides.applied(entries)
    tasks = {}
    for name in entries:
        place = overrides.place(f"config/tasks/{name}.yaml", name)
        entry = overrides.read(Task, _with_shared_text(entries, name, place))
        task = Task.named(name, entry, place)
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
    folders: _Folders, overrides: _Overrides, scale: Scale, paper: Mapping[str, Table]
) -> tuple[dict[str, ModelSettings], Scale]:
    """Return all models, and the scale with its small versions of some as their stand-ins."""
    file = "config/models.yaml"

    def read(entries: Entries, name: str) -> ModelSettings:
        entry = overrides.read(ModelSettings, _extended(entries, name, file))
        return validated(ModelSettings, entry, overrides.place(f"{file}: {name}", name))

    entries = folders.entries(file)
    small: Entries = {}
    stand_ins: dict[str, str] = {}
    if scale.shrink:
        # The small version of a model is that of the model with its overrides; it may have
        # overrides of its own, so their names are not checked before all versions are there.
        changed = overrides.merged_into(entries)
        for name in scale.to_shrink(paper.values()):
            if name not in changed:
                continue
            network = read(changed, name).architecture
            if network.blocks:
                stand_in = f"{scale.shrink.prefix}_{name}"
                stand_ins[name] = stand_in
                small[stand_in] = scale.shrink.entry(name, network)
    entries = overrides.applied(small | entries)
    models = {name: read(entries, name) for name in entries}
    return models, scale.model_copy(update={"models": stand_ins | scale.models})


def _extended(entries: Entries, name: str, file: str) -> Values:
    """Return a model's entry merged onto those that it extends."""
    names = [name]
    base = entries[name].get("extends")
    while base is not None:
        place = f"{file}: {names[-1]}.extends"
        check_known(place, "model", str(base), entries)
        if base in names:
            chain = " -> ".join([*names, base])
            raise UserError(f"{place}: a model cannot extend itself: {chain}")
        names.append(base)
        base = entries[base].get("extends")
    extended: Values = {}
    for part in reversed(names):
        extended = merged(extended, entries[part])
    return extended
