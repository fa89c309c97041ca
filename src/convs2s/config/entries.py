"""Named entries of the configuration before their validation: overridden, extended, with text."""

import re
from collections.abc import Mapping

from convs2s.config.folders import ConfigurationFolders
from convs2s.config.messages import unknown
from convs2s.config.task import SHARED_WITH_TEXT
from convs2s.config.yaml_file import Values, read_yaml
from convs2s.errors import UserError

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
