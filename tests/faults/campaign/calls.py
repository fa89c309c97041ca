"""System calls that fail, kills and power cuts, at drawn moments of every command that writes.

A trial lets one call of a command return an error (a full disk or quota, a broken disk, one that
became read-only, too many open files, a server that is gone), or kills the command when it enters
the call. In a power cut, files also lose what was written to them after they were last synced;
names are kept in their order, as a journal keeps them. What has its final name must then be whole,
or what it was before. The same command, run again, must end with the bytes of a run that nothing
disturbed.
"""

import json
import os
import random
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.files.checksums import sha256
from convs2s.files.tensors import load_tensors
from tests.faults.campaign import traced
from tests.faults.campaign.commands import JOBS, TYPED
from tests.faults.campaign.pairs import Ended, Stage
from tests.faults.campaign.traced import FILES_CHANGE, WRITES, Call
from tests.support.hub import Hub

NAMES = tuple(name for name in TYPED | JOBS if name not in ("train", "status"))
"""Commands that are tried."""

REPLACES = {"translate", "translate --json", "translate-document", "score rouge"}
REPLACES |= {"import fairseq", "mirror", "results", *JOBS}
REPLACES -= {"download", "download known", "published"}
"""What writes its outputs anew where there are older ones."""

KILL = "SIGKILL"
CUTS = ("cut, files emptied", "cut, files halved")
"""Power cuts: what was not synced is lost, or half of it."""

ERRORS = {
    "openat": "EMFILE ESTALE EIO EROFS",
    **dict.fromkeys((*WRITES, "fsync"), "ENOSPC EDQUOT EIO ESTALE"),
    "ftruncate": "ENOSPC EIO ESTALE",
    **dict.fromkeys(("mkdir", "rename"), "ENOSPC EDQUOT EIO ESTALE EROFS"),
}
"""Call -> the errors that it returns."""

TEMPORARY = re.compile(
    r"(^|/)(\.partial\.|state/|logs/|links\.zst\.state/)"
    r"|\.part(-\w+)?(\.json)?$|\.partial$|/\.[^/]+\.(lock|try)$"
)
"""Names that files have before they are whole, and of notes that a failure leaves on purpose."""

STAYS = re.compile(r"(^|/)logs/|/\.[^/]+\.try$|/\.partial\.\w+/\.?lock$")
"""Logs, notes of failed tries, and temporary folders with nothing but a lock in them."""

REMAINS = re.compile(rf"{STAYS.pattern}|/\.partial\.\w+/")
"""Also temporary folders that could not be removed; the next command that writes there does."""

FOLDERS = ("out/hub/", "out/onnx/", "out/pulled/", "out/exported/")
"""New folders, which are whole or absent."""

Files = dict[str, str]
"""Name of each file in a place -> its SHA-256."""


@dataclass(frozen=True)
class Disturbance:
    """What a trial does: at a call (None: after the end), an error, a kill or a power cut."""

    what: str
    call: Call | None

    def __str__(self) -> str:
        if self.call is None:
            return f"{self.what} after the end"
        names = " ".join(path.name for path in self.call.paths)
        return f"{self.what} at {self.call.name} {self.call.number} ({names})"

    def injected(self) -> list[str]:
        """Return what strace is told."""
        if self.call is None:
            return []
        is_error = self.what not in (KILL, *CUTS)
        deed = f"error={self.what}" if is_error else "signal=SIGKILL"
        return [f"{self.call.name}:{deed}:when={self.call.number}"]


@dataclass(frozen=True)
class Undisturbed:
    """What a command made when nothing disturbed it.

    Attributes:
        files: those that it leaves.
        varying: names of those whose bytes differ each time.
        out: what it prints; None: it differs each time.
        calls: of files in its place, or of what it prints.
    """

    files: Files
    varying: set[str]
    out: str | None
    calls: list[Call]


def files_of(folder: Path) -> Files:
    """Return the files of a place; a link to a folder is none."""
    found = {}
    for current, _, names in os.walk(folder):
        for path in (Path(current, name) for name in names):
            if not path.is_symlink():
                found[str(path.relative_to(folder))] = sha256(path)
    return found


def check_format(path: Path) -> None:
    """Raise where a file whose bytes differ each time is not whole."""
    if path.suffix == ".safetensors":
        load_tensors(path)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
    elif path.suffix == ".jsonl":
        for line in path.read_text("utf-8").splitlines(keepends=True):
            assert line.endswith("\n"), "its last line is cut"
            json.loads(line)
    elif path.suffix in (".json", ".made"):
        json.loads(path.read_text("utf-8"))
    else:
        assert path.stat().st_size > 0, "it is empty"


def unsynced(calls: Iterable[Call]) -> dict[Path, tuple[int, int]]:
    """Return the bytes of each file that are synced, and those that are not."""
    sizes: dict[Path, tuple[int, int]] = {}
    for call in calls:
        if call.result is None or not call.paths:
            continue
        path = call.paths[0]
        synced, more = sizes.get(path, (0, 0))
        if call.name == "openat":
            is_new = re.search(r"O_CREAT|O_TRUNC", call.words)
            if is_new and "O_APPEND" not in call.words:
                sizes[path] = (0, 0)
        elif call.name in WRITES:
            sizes[path] = (synced, more + call.result)
        elif call.name in ("fsync", "fdatasync"):
            sizes[path] = (synced + more, 0)
        elif call.name.startswith("rename"):
            for name in list(sizes):
                if name.is_relative_to(path):
                    sizes[call.paths[1] / name.relative_to(path)] = sizes.pop(name)
        elif call.name.startswith("link"):
            sizes[call.paths[1]] = (synced, more)
    return {path: size for path, size in sizes.items() if size[1]}


def is_disturbed(call: Call, trial: Path) -> bool:
    """Return whether a call is about a file of the place, or writes what is printed."""
    if any(path.is_relative_to(trial / "place") for path in call.paths):
        return True
    is_printed = any(path.parent == trial for path in call.paths)
    return call.name == "write" and is_printed and call.paths[0].suffix == ".out"


class Trials(Stage):
    """Runs commands in copies of a prepared folder, and disturbs them."""

    def __init__(self, names: Sequence[str], hub: Hub) -> None:
        super().__init__(names)
        os.environ |= {
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(self.folder / "home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        self._initial = files_of(self.before)
        self._undisturbed: dict[str, Undisturbed] = {}
        if "pull" in names:
            place = self.copy(self.folder / "hub")
            self.start("export hub", self.folder / "hub")()
            for file in (place / "out/hub").iterdir():
                hub.files[file.name] = file.read_bytes()

    def undisturbed(self, name: str) -> Undisturbed:
        """Run a command twice, with nothing that disturbs it."""
        if name in self._undisturbed:
            return self._undisturbed[name]
        found = []
        for number in (1, 2):
            trial = self.folder / f"alone-{number}"
            place = self.copy(trial)
            log = trial / "log"
            ended = self.start(name, trial, log)()
            assert ended.code == 0, f"{name}: {ended.err}{ended.out}"
            found.append((files_of(place), ended.out))
            every = list(traced.calls(log, place))
            # Where threads share a number, strace cannot be told which of them is meant.
            meant = Counter((call.name, call.number) for call in every)
            calls = []
            for call in every:
                is_alone = meant[call.name, call.number] == 1
                if is_alone and is_disturbed(call, trial):
                    calls.append(call)
            shutil.rmtree(trial)
        (files, out), (others, other) = found
        varying = {path for path in files if files[path] != others.get(path)}
        whole = Undisturbed(files, varying, out if out == other else None, calls)
        self._undisturbed[name] = whole
        return whole

    def disturbances(self, name: str, trials: int) -> list[Disturbance]:
        """Draw what disturbs a command: two thirds errors and kills, one third power cuts."""
        draw = random.Random(name)
        cuts = [Disturbance(what, None) for what in CUTS]
        errors = []
        for call in self.undisturbed(name).calls:
            if call.name in FILES_CHANGE:
                cuts += [Disturbance(what, call) for what in CUTS]
            if call.name in ERRORS:
                kinds = (*ERRORS[call.name].split(), KILL)
                errors += [Disturbance(what, call) for what in kinds]
        drawn = draw.sample(cuts, min(len(cuts), trials // 3))
        return drawn + draw.sample(errors, min(len(errors), trials - len(drawn)))

    def _add_older(self, name: str, place: Path) -> Files:
        """Put older outputs into a place, where the command replaces them; return them."""
        added: Files = {}
        if name not in REPLACES:
            return added
        for path in self.undisturbed(name).files.keys() - self._initial.keys():
            output = place / path
            if not TEMPORARY.search(path) and not output.name.startswith("."):
                output.parent.mkdir(parents=True, exist_ok=True)
                output.write_text("older\n")
                added[path] = sha256(output)
        return added

    def fault(self, name: str, one: Disturbance, trial: Path) -> tuple[str, str | None]:
        """Run a trial; return how the command ended, and what was wrong, if anything was."""
        log = trial / "log"
        place = self.copy(trial)
        before = self._initial | self._add_older(name, place)
        ended = self.start(name, trial, log, *one.injected())()
        calls = list(traced.calls(log, place))
        # The numbers of calls vary a little.
        if any(call.is_injected and not is_disturbed(call, trial) for call in calls):
            return "elsewhere", None
        verdict = "done" if ended.code == 0 else "refused"
        if one.what in CUTS:
            verdict = "cut"
            lose_unsynced(calls, place, halved=one.what == CUTS[1])
        elif ended.code == -9:
            verdict = "killed"
        elif fault := self._wrong_end(name, ended, place):
            return verdict, fault
        if fault := self._torn(name, before, place):
            return verdict, fault
        if verdict == "done":
            return verdict, None
        again = self.start(name, trial)()
        if fault := again.fault_alone(name):
            return verdict, fault
        # What does not write again leaves the rest of a kill to the next command that does.
        is_done = again.code != 0 or name == "published"
        fault = self._unlike(name, place, TEMPORARY if is_done else STAYS)
        return verdict, None if fault is None else f"again: {fault}"

    def _wrong_end(self, name: str, ended: Ended, place: Path) -> str | None:
        """Say what is wrong with how a command ended, by itself or with an error of a call."""
        if fault := ended.fault():
            return fault
        if ended.code == 0:
            out = self.undisturbed(name).out
            if out not in (None, ended.out):
                return f"prints otherwise: {ended.out[:500]}"
            return self._unlike(name, place, REMAINS)
        line = next(text for text in ended.err.splitlines() if "error: " in text)
        if re.search(r"error: (the output |\S+[:,] )", line):
            return None
        return f"names neither a file nor the standard output: {line}"

    def _torn(self, name: str, before: Files, place: Path) -> str | None:
        """Say what is neither whole nor what it was before the command."""
        whole = self.undisturbed(name)
        found = files_of(place)
        for path, digest in found.items():
            if TEMPORARY.search(path) or digest in (
                before.get(path),
                whole.files.get(path),
            ):
                continue
            if path not in whole.varying:
                return f"torn: {path}"
            try:
                check_format(place / path)
            except Exception as error:
                return f"torn: {path}: {type(error).__name__}: {error}"
        if lost := (whole.files.keys() & before.keys()) - found.keys():
            return f"lost: {sorted(lost)}"
        for folder in FOLDERS:
            expected = {path for path in whole.files if path.startswith(folder)}
            absent = expected - found.keys()
            if absent and absent != expected:
                return f"in part: {folder}: {sorted(absent)} are not there"
        return None

    def _unlike(self, name: str, place: Path, stays: re.Pattern[str]) -> str | None:
        """Say in what a place differs from the one of a run that nothing disturbed."""
        whole = self.undisturbed(name)
        found = files_of(place)
        if absent := whole.files.keys() - found.keys():
            return f"not there: {sorted(absent)}"
        more = found.keys() - whole.files.keys()
        if left := [path for path in sorted(more) if not stays.search(path)]:
            return f"left behind: {left}"
        for path in whole.files.keys() - whole.varying:
            if found[path] != whole.files[path]:
                return f"wrong bytes: {path}"
        return None


def lose_unsynced(calls: Iterable[Call], place: Path, *, halved: bool) -> None:
    """Do to the files of a place what a power cut does."""
    for path, (synced, more) in unsynced(calls).items():
        if path.is_relative_to(place) and path.is_file():
            size = synced + (more // 2 if halved else 0)
            os.truncate(path, min(size, path.stat().st_size))


def run(trials: int, names: Sequence[str] = NAMES) -> Counter[str]:
    """Run so many trials, as many of each command; print each fault, and count the verdicts."""
    counts: Counter[str] = Counter()
    if not traced.is_available():
        print("calls: not tried: strace is not installed, or may not trace")
        return counts
    hub = Hub()
    every = Trials(names, hub)
    for name in names:
        drawn = every.disturbances(name, -(-trials // len(names)))
        verdicts: Counter[str] = Counter()
        for number, one in enumerate(drawn):
            trial = every.folder / f"{name.replace(' ', '-')}-{number}"
            verdict, fault = every.fault(name, one, trial)
            verdicts["faults" if fault else verdict] += 1
            if fault:
                print(f"  {name}: {one}: {fault} (kept: {trial})")
            else:
                shutil.rmtree(trial)
        print(f"{name:24} {dict(sorted(verdicts.items()))}", flush=True)
        counts += verdicts
    every.close()
    hub.close()
    print(f"calls: {counts.total()} trials of {len(names)} commands: {dict(counts)}")
    return counts
