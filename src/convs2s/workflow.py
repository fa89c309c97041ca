"""Pure functions behind the rules: names, seeds, fingerprints of code, logs. No Snakemake here."""

import ast
import fcntl
import hashlib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

from convs2s.errors import UserError
from convs2s.files import read_lines

PACKAGE = Path(__file__).resolve().parent

UNTUNED = 1.0
"""The length penalty of the n-best list by which another one is tuned."""


def provide_environment() -> None:
    """Let jobs find this package and the Python that runs now, whoever started it and how.

    A conda environment's own Python still comes first. Threads that wait give up their core: where
    several jobs share a machine, busy waiting makes each of them many times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for name, folder in (("PYTHONPATH", PACKAGE.parent), ("PATH", Path(sys.executable).parent)):
        rest = os.environ.get(name, "").split(os.pathsep)
        os.environ[name] = os.pathsep.join([str(folder), *filter(None, rest)])


def release_stale_locks(folder: Path) -> IO[str]:
    """Remove the locks that a killed Snakemake left in a working directory, and only those.

    Every process that runs the workflow here shares a lock of the kernel's, which dies with it. One
    that can have it alone is the only one: what Snakemake's own lock files say is then untrue, and
    the same command goes on without ``--unlock``.

    Args:
        folder: Snakemake's own folder, ``.snakemake`` in the working directory.

    Returns:
        What the caller must keep open for as long as it runs.
    """
    folder.mkdir(exist_ok=True)
    alive = (folder / "alive").open("a")
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass  # another one runs: its locks hold
    else:
        for lock in folder.glob("locks/*.lock"):
            lock.unlink(missing_ok=True)
    fcntl.flock(alive, fcntl.LOCK_SH)
    return alive


def granted_gpus(environment: Mapping[str, str]) -> int:
    """Return how many GPUs a scheduler has granted to this job; 0 where it does not say."""
    names = environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return sum(name.strip() not in ("", "NoDevFiles") for name in names)


def alternatives(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these names, or nothing without names."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def members(run: str) -> list[str]:
    """Return the models of a run: ``ensemble2`` is seed1 and seed2, any other one is itself."""
    if run.startswith("ensemble"):
        return [f"seed{seed}" for seed in range(1, int(run.removeprefix("ensemble")) + 1)]
    return [run]


def headline_runs(task: Mapping[str, Any]) -> list[str]:
    """Return the runs that a task's headline rests on: its seeds, or its released model."""
    if task["released"]:
        return ["released"]
    return [f"seed{seed}" for seed in task["headline"]["seeds"]]


def splits(task: Mapping[str, Any]) -> list[str]:
    """Return the parts of a task's corpus that its headline needs."""
    tests = list(task["corpus"]["tests"])
    return tests if task["released"] else ["train", "valid", *tests]


def released_references(task: Mapping[str, Any]) -> list[str]:
    """Return the file references of a task's released model; none where it has none."""
    return [reference for reference in (task["released"] or {}).values() if reference]


def text_of(tasks: Mapping[str, Any], task: str) -> str:
    """Return the task whose corpus and alignment ``task`` uses: its ``text``, or itself."""
    return str(tasks[task]["text"] or task)


def language_pairs(tasks: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Return (source, target) languages -> the tasks with a corpus of their own in them."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name, task in tasks.items():
        if task["text"] is None:
            languages = task["languages"]
            pairs.setdefault((languages["source"], languages["target"]), []).append(name)
    return pairs


def file_pairs(tasks: Mapping[str, Any], name: str, split: str) -> list[tuple[str, str]]:
    """Return the (source, target) file references that a split is made from.

    Raises:
        UserError: the task has no such test set.
    """
    corpus = tasks[name]["corpus"]
    if hold_out(tasks[name], split):
        pairs = corpus["train"]
    elif split in ("train", "valid"):
        pairs = corpus[split]
    elif split in corpus["tests"]:
        pairs = corpus["tests"][split]
    else:
        known = ", ".join(corpus["tests"])
        raise UserError(f"'{split}' is not a test set of the task {name}, which has {known}")
    return [(pair["source"], pair["target"]) for pair in pairs]


def hold_out(task: Mapping[str, Any], split: str) -> dict[str, Any] | None:
    """Return which training pairs a split takes, where validation is held out from training.

    The result is None, or ``every``: the period, and ``held``: whether the split takes every such
    pair (valid) or all others (train).
    """
    if task["hold_out"] is None or split not in ("train", "valid"):
        return None
    return {"every": task["hold_out"]["every"], "held": split == "valid"}


def corpus_facts(name: str, task: Mapping[str, Any], scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands beside the numbers of a corpus's pairs."""
    return {
        "task": name,
        "clean": task["clean"],
        "paper_pairs": task["paper_pairs"],
        "stand_in": scale["stand_in"],
    }


def model_text(task: Mapping[str, Any]) -> str:
    """Return the stage of the corpus whose words the task's models read."""
    return "truecased" if task["preparation"]["truecase"] else "clean"


def vocabulary_size(task: Mapping[str, Any], language: str) -> int | None:
    """Return the most types of a language's vocabulary, or None for all."""
    side = "source" if task["languages"]["source"] == language else "target"
    size: int | None = task["vocabulary"][f"{side}_size"]
    return size


def codes_name(vocabulary: Mapping[str, Any], language: str) -> str | None:
    """Return the name of a language's BPE codes: joint ones are one file; None for whole words."""
    if vocabulary["kind"] == "word":
        return None
    return "codes" if vocabulary["joint"] else f"codes.{language}"


def model_facts(name: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model file says of its task."""
    return {
        "task": name,
        "languages": task["languages"],
        "preparation": task["preparation"]["test"],
    }


def dataset_facts(name: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a token store's reader must know of its text."""
    return {**model_facts(name, task), "vocabulary": task["vocabulary"]}


def with_length_penalty(decoding: Mapping[str, Any], tuned: Sequence[str]) -> dict[str, Any]:
    """Return a decoding's settings with a number for the length penalty.

    Args:
        decoding: a validated entry of config/decodings.yaml.
        tuned: the JSON file of the tuning; none where the number is stated, and for the list that
            the tuning goes by, whose order does not matter.
    """
    if not isinstance(decoding["length_penalty"], Mapping):
        return dict(decoding)
    values = [json.loads(Path(path).read_text("utf-8"))["length_penalty"] for path in tuned]
    return {**decoding, "length_penalty": values[0] if values else UNTUNED}


def references(tasks: Mapping[str, Any]) -> set[str]:
    """Return every file reference of every task."""
    return {
        reference
        for name, task in tasks.items()
        for split in ("train", "valid", *task["corpus"]["tests"])
        for pair in file_pairs(tasks, name, split)
        for reference in pair
    }.union(*map(released_references, tasks.values()))


def checksum(sums: Path, name: str) -> str:
    """Return a file's SHA-256 from a list in the format of sha256sum.

    Raises:
        UserError: the list does not name the file.
    """
    for line in read_lines(sums):
        digest, _, listed = line.partition("  ")
        if listed == name:
            return digest
    raise UserError(f"{sums}: no checksum for {name}: this scale's mirror does not hold the file")


@cache
def fingerprint(*entries: Path) -> str:
    """Return a digest of the code that scripts or modules run, comments and docstrings aside.

    It covers the files themselves and every module of this package that they import, directly or
    not, so that a rule which carries it in its params is run again when a change of the code can
    change its result, and never for an edited comment.
    """
    digest = hashlib.sha256()
    pending, seen = sorted(entries, reverse=True), set(entries)
    while pending:
        path = pending.pop()
        code, imported = _read_code(path)
        digest.update(f"{path.name}\n{code}\n".encode())
        for module in sorted(imported - seen, reverse=True):
            seen.add(module)
            pending.append(module)
    return digest.hexdigest()[:16]


@cache
def _read_code(path: Path) -> tuple[str, frozenset[Path]]:
    """Return a file's syntax tree as text without docstrings, and the modules that it imports."""
    tree = ast.parse(path.read_text("utf-8"))
    imported: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {_module(alias.name) for alias in node.names} - {None}  # type: ignore[arg-type]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            imported |= {_module(name) for name in names} - {None}  # type: ignore[arg-type]
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_docstring(one)]  # type: ignore[attr-defined]
    return ast.dump(tree), frozenset(imported)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _module(name: str) -> Path | None:
    """Return the file of a module of this package, or None for any other name."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return None
    path = PACKAGE.joinpath(*parts[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@contextmanager
def faults_in_one_line() -> Iterator[None]:
    """Say an input fault in one line where Snakemake would show the place in the code as well.

    Raises:
        SystemExit: with code 1 after a ``UserError``.
    """
    try:
        yield
    except UserError as error:
        sys.exit(f"error: {error}")


@contextmanager
def job(log: str) -> Iterator[None]:
    """Run a rule's work: what it prints goes to its log, an input fault also to the terminal.

    Raises:
        SystemExit: with code 1 after a ``UserError``, which is said in one line.
    """
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    terminal = os.dup(2)
    with Path(log).open("w", encoding="utf-8") as stream:
        saved = os.dup(1)
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        try:
            yield
        except UserError as error:
            for descriptor in (2, terminal):
                os.write(descriptor, f"error: {error}\n".encode())
            sys.exit(1)
        except Exception:
            os.write(2, traceback.format_exc().encode())
            raise
        finally:
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.dup2(terminal, 2)
            os.close(saved)
            os.close(terminal)
