"""The configuration: read, merged and validated, for the Snakefile and the command line alike.

What the files may say is in the classes of this package and in docs/configuration.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.claims import Claim
from convs2s.config.costs import Costs
from convs2s.config.decoding import DecodingSettings
from convs2s.config.file_reference import Download
from convs2s.config.messages import unknown, validated
from convs2s.config.model import ModelSettings
from convs2s.config.options import Options
from convs2s.config.paper import Phrases, Table
from convs2s.config.scale import Scale, Shrinking
from convs2s.config.section import Rule, Section, Values
from convs2s.config.settings import Effective, Settings, check_references, effective
from convs2s.config.task import SHARED_WITH_TEXT, Task
from convs2s.config.yaml_file import as_read, read_yaml
from convs2s.errors import UserError


@dataclass(frozen=True)
class ConfigurationFolders:
    """The folder of config.yaml and config/, and the workflow's own for what is not there.

    Attributes:
        own: the user's folder, mostly that of the run.
        shipped: the folder of a deployed workflow; None where nothing stands in for a file.
    """

    own: Path
    shipped: Path | None = None

    def find(self, file: str) -> Path:
        """Return where a file lies: the user's own, else what came with the workflow."""
        own = self.own / file
        return own if self.shipped is None or own.exists() else self.shipped / file

    def names(self, folder: str) -> list[str]:
        """Return the names of all YAML files of a folder, the user's own and those that came.

        Raises:
            UserError: a file has another suffix for YAML, so that nothing would be read of it.
        """
        places = [place for place in (self.own, self.shipped) if place]
        for file in (self.own / folder).glob("*.yml"):
            raise UserError(f"{folder}/{file.name}: is not read: rename it to {file.stem}.yaml")
        return sorted({file.stem for place in places for file in (place / folder).glob("*.yaml")})


Entries = dict[str, Values]
"""Name -> what its entry states."""

# Names become parts of file names, and Snakemake matches them as wildcards.
_NAME = re.compile(r"[a-z][a-z0-9_]*")
# What lies beside the folders of tasks.
_FOLDERS_OF_RESULTS = ("archives", "downloads", "logs", "paper", "scales", "shown")


def read_entries(folders: ConfigurationFolders, file: str) -> Entries:
    """Return the entries of a file as they stand there.

    Raises:
        UserError: the file is no mapping of names to mappings, or a name has no right form.
    """
    entries = read_yaml(folders.find(file), file) or {}
    if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
        raise UserError(f"{file}: expected a mapping of names, each with a mapping of settings")
    for name in entries:
        check_name(str(name), file)
    return entries


def read_tasks(folders: ConfigurationFolders) -> Entries:
    """Return the files of config/tasks by their names.

    Raises:
        UserError: a file is no mapping, or its name has no right form.
    """
    entries: Entries = {}
    for name in folders.names("config/tasks"):
        file = f"config/tasks/{name}.yaml"
        check_name(name, file)
        if name in _FOLDERS_OF_RESULTS:
            raise UserError(
                f"{file}: the results have a folder '{name}' of their own; rename the task's file"
            )
        entry = read_yaml(folders.find(file), file)
        if not isinstance(entry, dict):
            raise UserError(f"{file}: expected a mapping of keys to values")
        entries[name] = entry
    return entries


def check_name(name: str, where: str) -> None:
    """Check that a name can be a part of file names.

    Raises:
        UserError: it cannot.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{where}: expected a name of small letters, digits and underscores, not '{name}'"
        )


def merged(base: Mapping[str, object], changes: Mapping[str, object]) -> Values:
    """Return ``base`` with ``changes`` merged in: mappings key by key, anything else replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        deeper = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merged(old, value) if deeper else value  # type: ignore[arg-type]
    return result


def overridden(entries: Entries, changes: Entries, what: str, where: str) -> Entries:
    """Return entries with the ``overrides`` of config.yaml merged in.

    Args:
        entries: of config/.
        changes: name -> keys to replace.
        what: "task", "model" or "decoding".
        where: the file or flag that states the overrides.

    Raises:
        UserError: a name is not known; the nearest known one is named.
    """
    for name in changes:
        if name not in entries:
            raise UserError(f"{where}: overrides.{what}s: {unknown(what, name, entries)}")
    return {name: merged(entry, changes.get(name, {})) for name, entry in entries.items()}


def extended(entries: Entries, name: str, file: str) -> Values:
    """Return a model's entry merged onto those that it extends.

    Raises:
        UserError: it extends a model that does not exist, or itself.
    """
    return _extended(entries, name, (), file)


def _extended(entries: Entries, name: str, path: tuple[str, ...], file: str) -> Values:
    base = entries[name].get("extends")
    if base is None:
        return entries[name]
    if base not in entries:
        raise UserError(f"{file}: {name}.extends: {unknown('model', base, entries)}")
    if base in (*path, name):
        chain = " -> ".join((*path, name, base))
        raise UserError(f"{file}: {name}.extends: a model cannot extend itself: {chain}")
    return merged(_extended(entries, base, (*path, name), file), entries[name])


def with_text(entries: Entries, name: str, place: str) -> Values:
    """Return a task's entry with what it has from the task that ``text`` names.

    Raises:
        UserError: there is no such task, it has no text of its own, or both state the same.
    """
    entry = entries[name]
    text = entry.get("text")
    if text is None:
        return entry
    if text not in entries or text == name:
        raise UserError(f"{place}: text: {unknown('task', text, set(entries) - {name})}")
    if entries[text].get("text") is not None:
        raise UserError(f"{place}: text: '{text}' has no text of its own; name the task it shares")
    for key in SHARED_WITH_TEXT:
        if key in entry:
            raise UserError(
                f"{place}: {key}: comes from '{text}', as text names it; state it there"
            )
    shared = {key: entries[text][key] for key in SHARED_WITH_TEXT if key in entries[text]}
    return entry | shared


__all__ = [
    "Effective",
    "Settings",
    "check_option_files",
    "effective",
    "load",
    "merged",
    "option_files",
]

S = TypeVar("S", bound=Section)

_COMMAND_LINE = "--config or --configfile"


class _Changes(NamedTuple):
    """Overrides of entries of one kind, and the file or flag that states them."""

    entries: Entries
    where: str

    def place(self, file: str, name: str) -> str:
        """Return what a message on an entry begins with."""
        return f"{file} (with the overrides of {self.where})" if name in self.entries else file


def load(
    root: Path,
    given: Mapping[str, object] | None = None,
    *,
    shipped: Path | None = None,
    given_by: str | None = None,
) -> Settings:
    """Read and validate the configuration below ``root``.

    Args:
        root: the folder of config.yaml and config/.
        given: config.yaml and config.local.yaml as Snakemake merged them; None reads the two.
        shipped: the folder of a deployed workflow, whose config/ stands in for what ``root`` lacks.
        given_by: what messages call ``given`` where another workflow states it; the files of
            ``root`` then say nothing.

    Raises:
        UserError: one line that names the file, the key and what was expected.
    """
    folders = _folders(root, shipped)
    options, origins = _options(root, given, given_by)
    where = origins.get("overrides", "config.yaml")
    scale = _scale(folders, options.scale, origins.get("scale", "config.yaml"))
    paper = _paper(folders)
    models, scale = _models(folders, _Changes(options.overrides.models, where), scale, paper)
    settings = Settings(
        options=options,
        scale=scale,
        tasks=_tasks(folders, _Changes(options.overrides.tasks, where), scale),
        models=models,
        decodings=_decodings(folders, _Changes(options.overrides.decodings, where)),
        paper=paper,
        claims=_named(folders, Claim, "config/claims.yaml"),
        phrases=_named(folders, Phrases, "config/phrases.yaml"),
        downloads=_downloads(folders),
        costs=_file(folders, Costs, "config/costs.yaml"),
    )
    check_references(settings, origins.get("tasks", "config.yaml"))
    return settings


def load_for_job(config: Mapping[str, object], shipped: str | Path) -> Settings:
    """Read the configuration in a job of the workflow, from the folder that Snakemake runs in.

    Args:
        config: config.yaml and config.local.yaml as Snakemake merged them.
        shipped: the folder of the workflow, whose config/ stands in for what is not here.

    Raises:
        UserError: likewise.
    """
    return load(Path.cwd(), config, shipped=Path(shipped), given_by="the workflow's configuration")


def option_files(root: Path) -> list[str]:
    """Return the files of options that there are, the later one wins.

    A deployed workflow has its config.yaml in config/, where deployment puts it; a config.yaml
    beside that folder is the one that counts.
    """
    options = "config.yaml" if (root / "config.yaml").exists() else "config/config.yaml"
    return [file for file in (options, "config.local.yaml") if (root / file).exists()]


def check_option_files(root: Path) -> dict[str, Values]:
    """Return what each of the files of options states, validated by itself.

    A fault is then told of the file that states it. The Snakefile asks for this before Snakemake
    reads the files, whose own message on what is not YAML does not name the file.

    Raises:
        UserError: one line that names the file, the line or key and what was expected.
    """
    stated: dict[str, Values] = {}
    for name in option_files(root):
        content = read_yaml(root / name, name) or {}
        validated(Options, content, name)
        assert isinstance(content, dict)
        stated[name] = content
    return stated


def _folders(root: Path, shipped: Path | None) -> ConfigurationFolders:
    folders = ConfigurationFolders(root, shipped)
    if not folders.find("config").is_dir():
        raise UserError(
            f"{root}: has no folder config, as a clone or a deployed workflow has: run it there"
        )
    return folders


def _options(
    root: Path, given: Mapping[str, object] | None, given_by: str | None
) -> tuple[Options, dict[str, str]]:
    """Return config.yaml with its defaults, and which file or flag states each key."""
    stated: Values = {}
    origins: dict[str, str] = {}
    for name, content in ({} if given_by else check_option_files(root)).items():
        stated = merged(stated, content)
        origins |= dict.fromkeys(content, name)
    if given is not None:
        read = as_read(given, _schema_of_options)
        changed = [key for key, value in read.items() if stated.get(key) != value]
        origins |= dict.fromkeys(changed, given_by or _COMMAND_LINE)
        stated = read
    return validated(Options, stated, given_by or _COMMAND_LINE), origins


def _schema_of_options() -> Rule:
    from convs2s.config.json_schema import file_schema  # seldom needed

    return file_schema("config")


def _file(folders: ConfigurationFolders, section: type[S], file: str) -> S:
    return validated(section, read_yaml(folders.find(file), file), file)


def _scale(folders: ConfigurationFolders, name: str, where: str) -> Scale:
    known = folders.names("config/scales")
    if name not in known:
        raise UserError(f"{where}: scale: {unknown('scale', name, known)}")
    return _file(folders, Scale, f"config/scales/{name}.yaml")


def _tasks(folders: ConfigurationFolders, changes: _Changes, scale: Scale) -> dict[str, Task]:
    entries = overridden(read_tasks(folders), changes.entries, "task", changes.where)
    tasks = {}
    for name in entries:
        place = changes.place(f"config/tasks/{name}.yaml", name)
        task = Task.named(name, with_text(entries, name, place), place)
        tasks[name] = task.model_copy(update={"headline": scale.headline_of(task)})
    return tasks


def _models(
    folders: ConfigurationFolders, changes: _Changes, scale: Scale, paper: Mapping[str, Table]
) -> tuple[dict[str, ModelSettings], Scale]:
    """Return all models, and the scale with its small versions of some as their stand-ins."""
    file = "config/models.yaml"
    entries, small = read_entries(folders, file), Entries()
    if scale.shrink:
        changed = {
            name: merged(old, changes.entries.get(name, {})) for name, old in entries.items()
        }
        small = small_versions(changed, scale.to_shrink(paper.values()), scale.shrink, file)
    entries = overridden(small | entries, changes.entries, "model", changes.where)
    models = {
        name: validated(
            ModelSettings, extended(entries, name, file), changes.place(f"{file}: {name}", name)
        )
        for name in entries
    }
    return models, scale.with_small_versions(list(small))


def _decodings(folders: ConfigurationFolders, changes: _Changes) -> dict[str, DecodingSettings]:
    file = "config/decodings.yaml"
    entries = overridden(read_entries(folders, file), changes.entries, "decoding", changes.where)
    return {
        name: validated(DecodingSettings, entry, changes.place(f"{file}: {name}", name))
        for name, entry in entries.items()
    }


def _paper(folders: ConfigurationFolders) -> dict[str, Table]:
    file = "config/paper.yaml"
    return {
        name: validated(Table, entry, f"{file}: {name}").filled()
        for name, entry in read_entries(folders, file).items()
    }


def _named(folders: ConfigurationFolders, section: type[S], file: str) -> dict[str, S]:
    entries = read_entries(folders, file)
    return {name: validated(section, one, f"{file}: {name}") for name, one in entries.items()}


def _downloads(folders: ConfigurationFolders) -> dict[str, Download]:
    file = "config/downloads.yaml"
    entries = read_yaml(folders.find(file), file) or []
    if not isinstance(entries, list):
        raise UserError(f"{file}: expected a list of downloads, each with its url")
    checked = [
        validated(Download, entry, f"{file}: download {number}")
        for number, entry in enumerate(entries, start=1)
    ]
    return {download.url: download for download in checked}


def small_versions(
    entries: Entries, names: Iterable[str], shrinking: Shrinking, file: str
) -> dict[str, Values]:
    """Return an entry for the small version of each convolutional model.

    Args:
        entries: of config/models.yaml.
        names: of models; one that there is not is left to whoever checks the names.
        shrinking: how a small version differs from its model.
        file: what messages call the entries' file.

    Raises:
        UserError: an entry of these is wrong.
    """
    made: Entries = {}
    for name in names:
        if name not in entries:
            continue
        model = validated(ModelSettings, extended(entries, name, file), f"{file}: {name}")
        if isinstance(model.architecture, ConvS2SArchitecture):
            made[shrinking.name_of(name)] = shrinking.entry(name, model.architecture)
    return made
