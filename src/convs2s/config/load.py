"""Reading, merging and validation of the configuration, for the Snakefile and the command line.

The classes of this package and docs/configuration.md describe the keys of the files.
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
from convs2s.config.settings import (
    Settings,
    check_references,
    without_broken_tasks,
)
from convs2s.config.task import SHARED_WITH_TEXT, Task
from convs2s.config.yaml_file import option_files, read_yaml
from convs2s.errors import UnreadableFileError, UserError

Entries = dict[str, Values]  # name -> the keys that its entry states

# Name of the command line's values in messages.
_COMMAND_LINE = "--config or --configfile"
FOLDERS_OF_RESULTS = (
    "archives",
    "benchmarks",
    "downloads",
    "logs",
    "paper",
    "scales",
    "shown",
)
"""Folders of the results that are beside the folders of tasks, so no task can have these names."""


def load(
    root: Path,
    given: Mapping[str, object] | None = None,
    *,
    shipped: Path | None = None,
    given_by: str | None = None,
) -> Settings:
    """Read and validate the configuration below ``root``, the folder of config.yaml and config/.

    ``given`` is the content of config.yaml, config.local.yaml and --config, merged by Snakemake. If
    it is None, the two files are read here.

    ``shipped`` is the folder of a deployed workflow. A file of config/ that ``root`` does not have
    is read from there.

    ``given_by`` is the name of ``given`` in messages if another workflow states it. config.yaml and
    config.local.yaml below ``root`` are then ignored.

    A task whose file is not valid is in ``Settings.broken`` and does not stop work on other tasks.

    Raises:
        UserError: The configuration is not valid. The message names the file, the key and what was
            expected.
    """
    options, origins = _read_options(root, given, given_by)
    files = _Files(
        own=root,
        shipped=shipped or root,
        overrides=options.overrides.model_dump(),
        overrides_from=origins["overrides"],
        has_texts=given is not None,
    )
    if not files.find("config").is_dir():
        raise UserError(
            f"{root}: has no folder config: run the command in a clone or a deployed workflow"
        )
    export_extensions(options.extensions, root, add=given_by is not None)
    # Refuse an extension whose names are taken, even if the configuration does not use them.
    added("ARCHITECTURES", KINDS)
    added("PREPARATIONS", PREPARATIONS)
    added("METRICS", {"chrF", *MEASURES})
    files.refuse_other_suffix("config/scales")
    place = f"{origins['scale']}: scale"
    check_known(place, "scale", options.scale, files.names("config/scales"))
    scale = files.section(Scale, f"config/scales/{options.scale}.yaml")
    tables = _read_tables(files)
    paper = {}
    for name, table in tables.items():
        if name not in scale.without and scale.shown_rows(table):
            paper[name] = table
    models, model_files, scale = _read_models(files, scale, paper)
    tasks, broken = _read_tasks(files, scale)
    settings = Settings(
        options=options,
        scale=scale,
        tasks=tasks,
        models=models,
        model_files=model_files,
        decodings=files.named(DecodingSettings, "config/decodings.yaml", "decodings"),
        tables=tables,
        paper=paper,
        claims=files.named(Claim, "config/claims.yaml"),
        phrases=files.named(Phrases, "config/phrases.yaml"),
        downloads=_read_downloads(files),
        costs=files.section(Costs, "config/costs.yaml"),
        broken=broken,
    )
    settings = without_broken_tasks(settings, files.place)
    check_references(settings, origins)
    return settings


def load_for_job(config: Mapping[str, object], shipped: str | Path) -> Settings:
    """Read the configuration in a job of the workflow, below the current folder.

    ``config`` is Snakemake's merged configuration. ``shipped`` is the folder of the workflow.
    """
    return load(
        Path.cwd(),
        config,
        shipped=Path(shipped),
        given_by="the workflow's configuration",
    )


def merged(base: Mapping[str, object], changes: Mapping[str, object]) -> Values:
    """Return ``base`` with ``changes``: mappings are merged key by key, other values replaced."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            value = merged(old, value)
        result[key] = value
    return result


@dataclass(frozen=True)
class _Files:
    """The files of config/, and the overrides that config.yaml states for them.

    A file of the user replaces the workflow's file with the same name.
    """

    own: Path  # folder of the user's config/
    # Folder of the workflow's config/, for files that the user does not have.
    shipped: Path
    # "tasks", "models" or "decodings" -> entry -> keys to replace.
    overrides: Mapping[str, Entries]
    overrides_from: str  # the file or flag that states the overrides
    has_texts: bool  # whether Snakemake may have left numbers in the overrides as texts

    def find(self, file: str) -> Path:
        """Return the path of a file: the user's file if it exists, otherwise the workflow's."""
        own = self.own / file
        return own if own.exists() else self.shipped / file

    def with_other_suffix(self, folder: str) -> dict[str, UserError]:
        """Return NAME -> error for each file NAME.yml in the user's folder.

        Such a file is not read, because its suffix is not .yaml.
        """
        errors = {}
        for file in (self.own / folder).glob("[!.]*.yml"):
            errors[file.stem] = UserError(
                f"{folder}/{file.name}: is not read: rename it to {file.stem}.yaml"
            )
        return errors

    def refuse_other_suffix(self, folder: str) -> None:
        """Raise a UserError if the user's folder has a file NAME.yml."""
        errors = list(self.with_other_suffix(folder).values())
        if errors:
            raise errors[0]

    def names(self, folder: str) -> list[str]:
        """Return the names of the YAML files in the user's and the workflow's folder."""
        # Hidden files are skipped, because an editor's lock file is called .#NAME.
        names: set[str] = set()
        for root in (self.own, self.shipped):
            names.update(file.stem for file in (root / folder).glob("[!.]*.yaml"))
        return sorted(names)

    def section(self, section: type[S], file: str) -> S:
        """Return the content of a file that has a single section."""
        return validated(section, read_yaml(self.find(file), file), file)

    def entries(self, file: str) -> Entries:
        """Return the entries of a file by their names, without validating their keys."""
        entries = read_yaml(self.find(file), file) or {}
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) for entry in entries.values()
        ):
            raise UserError(
                f"{file}: expected a mapping of names, each with a mapping of settings"
            )
        for name in entries:
            _check_name(str(name), file)
        return entries

    def overridden(self, kind: str, entries: Entries) -> Entries:
        """Return the entries of a kind with their overrides merged in.

        ``kind`` is a key of ``overrides``, such as "tasks".
        """
        changes = self.overrides.get(kind, {})
        return {
            name: merged(entry, changes.get(name, {}))
            for name, entry in entries.items()
        }

    def place(
        self,
        kind: str,
        file: str,
        name: str,
    ) -> str:
        """Return the beginning of messages about an entry.

        It names ``file`` and, if the entry has overrides, the file or flag that states them.
        """
        if name not in self.overrides.get(kind, ()):
            return file
        return f"{file} (with the overrides of {self.overrides_from})"

    def validated(
        self,
        section: type[S],
        entry: Values,
        kind: str,
        file: str,
        name: str,
    ) -> S:
        """Return an entry, with its overrides merged in, as an object of its class."""
        # Snakemake may have left numbers, truth values and null in the overrides as texts.
        lax = self.has_texts and bool(self.overrides.get(kind))
        return validated(section, entry, self.place(kind, file, name), lax=lax)

    def named(
        self,
        section: type[S],
        file: str,
        kind: str = "",
    ) -> dict[str, S]:
        """Return the sections of a file by their names, with the overrides of ``kind``."""
        entries = self.overridden(kind, self.entries(file))
        return {
            name: self.validated(section, entry, kind, f"{file}: {name}", name)
            for name, entry in entries.items()
        }


def _read_options(
    root: Path,
    given: Mapping[str, object] | None,
    given_by: str | None,
) -> tuple[Options, dict[str, str]]:
    """Return the options, and for each of their keys the file or flag that states it."""
    stated: Values = {}
    origins = dict.fromkeys(Options.model_fields, "config.yaml")
    if given_by is None:
        for name, content in option_files(root).items():
            validated(
                Options, content, name
            )  # by itself, so that a message names the file
            assert isinstance(content, dict)
            stated = merged(stated, content)
            origins |= dict.fromkeys(content, name)
    giver = given_by or _COMMAND_LINE
    if given is not None:
        # Snakemake has merged the files into ``given``, so ``given`` replaces what was read.
        # In a mapping on the command line, such as --config 'plots={sentences: [1]}', Snakemake
        # leaves numbers, truth values and null as texts. It also leaves 1e-4 in a file as text.
        values = with_texts(given, lambda text: None if text == "null" else text)
        for key, value in values.items():
            # A value that the files do not state comes from the command line.
            if stated.get(key) != value:
                origins[key] = giver
        stated = values
    return validated(Options, stated, giver, lax=given is not None), origins


def _check_name(name: str, where: str) -> None:
    # The names become parts of file names, which Snakemake matches with wildcards.
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{where}: expected a name of lower-case letters, digits and underscores that begins "
            f"with a letter, not '{name}'"
        )


def check_task_name(name: str, where: str) -> None:
    """Check that a task can have this name.

    Raises:
        UserError: The name is malformed, or a folder of the results has it. The message begins with
            ``where``.
    """
    _check_name(name, where)
    if name in FOLDERS_OF_RESULTS:
        raise UserError(
            f"{where}: '{name}' is the name of another folder of the results; rename the task"
        )


class _Downloads(Section):
    downloads: Items[Download]


def _read_downloads(files: _Files) -> dict[str, Download]:
    """Return the entries of config/downloads.yaml by their addresses."""
    file = "config/downloads.yaml"
    stated = {"downloads": read_yaml(files.find(file), file) or []}
    return {
        download.url: download
        for download in validated(_Downloads, stated, file).downloads
    }


def _read_tables(files: _Files) -> dict[str, Table]:
    """Return all tables of config/paper.yaml."""
    tables = files.named(Table, "config/paper.yaml")
    for name in ("claims", "costs", "ledger", "report"):
        if name in tables:
            raise UserError(
                f"config/paper.yaml: {name}: a page beside the tables has this name; rename the "
                "table"
            )
    return tables


def _read_tasks(
    files: _Files, scale: Scale
) -> tuple[dict[str, Task], dict[str, UserError]]:
    """Return the tasks of config/tasks, with their headlines changed for this scale.

    The second mapping has the error of each task whose file, or whose text's file, is not valid.
    """
    tasks: dict[str, Task] = {}
    broken = files.with_other_suffix("config/tasks")
    entries: Entries = {}
    for name in files.names("config/tasks"):
        try:
            entries[name] = _task_entry(files, name)
        except UnreadableFileError:
            # A job that left out this task would write tables without its rows, although the run
            # was planned with them.
            raise
        except UserError as error:
            broken[name] = error
    entries = files.overridden("tasks", entries)
    # Tasks with their own text come first, because an error in the file of such a task is also an
    # error of each task that shares the text.
    for name in sorted(entries, key=lambda name: "text" in entries[name]):
        entry = entries[name]
        file = f"config/tasks/{name}.yaml"
        text = entry.get("text")
        try:
            if isinstance(text, str) and text in broken:
                raise broken[text]
            full = _with_shared_text(entries, name, files.place("tasks", file, name))
            task = files.validated(Task, full, "tasks", file, name).named(name)
        except UserError as error:
            broken[name] = error
        else:
            headline = scale.headline_of(task)
            tasks[name] = task.model_copy(update={"headline": headline})
    return {name: tasks[name] for name in sorted(tasks)}, broken


def _task_entry(files: _Files, name: str) -> Values:
    """Return the content of a task's file, without validating its keys."""
    file = f"config/tasks/{name}.yaml"
    check_task_name(name, file)
    entry = read_yaml(files.find(file), file)
    if not isinstance(entry, dict):
        raise UserError(f"{file}: expected a mapping of keys to values")
    return entry


def _with_shared_text(
    entries: Entries,
    name: str,
    place: str,
) -> Values:
    """Return a task's entry with the keys that it shares with the task that ``text`` names.

    Raises:
        UserError: There is no such task, that task has no text of its own, or the entry states a
            shared key itself. The message begins with ``place``.
    """
    entry = entries[name]
    text = entry.get("text")
    if text is None:
        return entry
    check_known(f"{place}: text", "task", str(text), set(entries) - {name})
    if entries[text].get("text") is not None:
        raise UserError(
            f"{place}: text: '{text}' has no text of its own; name '{entries[text]['text']}', the "
            "task whose text it uses"
        )
    shared = {}
    for key in SHARED_WITH_TEXT:
        if key in entry:
            raise UserError(
                f"{place}: {key}: is taken from the task '{text}'; state it there"
            )
        if key in entries[text]:
            shared[key] = entries[text][key]
    return entry | shared


def _read_models(
    files: _Files,
    scale: Scale,
    paper: Mapping[str, Table],
) -> tuple[dict[str, ModelSettings], dict[str, str], Scale]:
    """Return all models, their files, and the scale with small versions of models as stand-ins.

    ``paper`` has the tables with rows at this scale. If the scale has ``shrink``, a small version
    of each convolutional model in these tables is made. If a file of models has an entry with the
    name of a small version, this entry is used instead.
    """
    entries, model_files = _model_entries(files)
    entries = files.overridden("models", entries)

    def read(name: str) -> ModelSettings:
        entry = _extended(entries, name, model_files)
        where = f"{model_files[name]}: {name}"
        return files.validated(ModelSettings, entry, "models", where, name)

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
                model_files[small] = model_files[name]
                models[small] = read(small)
    scale = scale.model_copy(update={"models": stand_ins | scale.models})
    return models, model_files, scale


def _model_entries(files: _Files) -> tuple[Entries, dict[str, str]]:
    """Return the models of config/models.yaml and config/models.d, and the file of each.

    Raises:
        UserError: Two files state a model with the same name.
    """
    files.refuse_other_suffix("config/models.d")
    names = ["config/models.yaml"]
    names += [f"config/models.d/{name}.yaml" for name in files.names("config/models.d")]
    entries: Entries = {}
    model_files: dict[str, str] = {}
    for file in names:
        for model, entry in files.entries(file).items():
            if model in entries:
                raise UserError(
                    f"{file}: {model}: {model_files[model]} has a model with this name; rename one"
                )
            entries[model] = entry
            model_files[model] = file
    return entries, model_files


def _extended(
    entries: Entries,
    name: str,
    model_files: Mapping[str, str],
    below: Sequence[str] = (),
) -> Values:
    """Return a model's entry merged into the entries that it extends.

    ``below`` are the models that extend this one, directly or through each other. They show whether
    a model extends itself.
    """
    base = entries[name].get("extends")
    if base is None:
        return entries[name]
    place = f"{model_files[name]}: {name}.extends"
    check_known(place, "model", str(base), entries)
    names = [*below, name]
    if base in names:
        chain = " -> ".join([*names, base])
        raise UserError(f"{place}: a model cannot extend itself: {chain}")
    return merged(_extended(entries, base, model_files, names), entries[name])
