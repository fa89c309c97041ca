"""System calls that fail, kills and power cuts, at drawn moments of every command that writes.

A trial lets one call of a command return an error (a full disk or quota, a broken disk, one that
became read-only, too many open files, a server that is gone), or kills the command when it enters
the call. In a power cut, files also lose what was written to them after they were last synced;
names are kept in their order, as a journal keeps them. What has its final name must then be whole,
or what it was before. The same command, run again, must end with the bytes of a run that nothing
disturbed.
"""

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from convs2s.files.checksums import sha256
from tests.faults.campaign import traced
from tests.faults.campaign.commands import JOBS, TYPED
from tests.faults.campaign.pairs import STAYS, TEMPORARY, Ended, Files, Stage
from tests.faults.campaign.traced import FILES_CHANGE, WRITES, Call
from tests.faults.hub import Hub

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

REMAINS = re.compile(rf"{STAYS.pattern}|/\.partial\.\w+/")
"""Also temporary folders that could not be removed; the next command that writes there does."""

FOLDERS = ("out/hub/", "out/onnx/", "out/pulled/", "out/exported/")
"""New folders, which are whole or absent."""


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


class Calls(Stage):
    """Runs commands, and disturbs them."""

    def calls(self, name: str) -> list[Call]:
        """Return the calls of a command that may be disturbed."""
        trial = self.folder / "traced"
        self.copy(trial)
        self.start(name, trial, trial / "log")()
        every = list(traced.calls(trial / "log", trial / "place"))
        shutil.rmtree(trial)
        # Where threads share a number, strace cannot be told which of them is meant.
        meant = Counter((call.name, call.number) for call in every)
        alone = [call for call in every if meant[call.name, call.number] == 1]
        return [call for call in alone if is_disturbed(call, trial)]

    def disturbances(self, name: str, trials: int) -> list[Disturbance]:
        """Draw what disturbs a command: two thirds errors and kills, one third power cuts."""
        draw = random.Random(name)
        cuts = [Disturbance(what, None) for what in CUTS]
        errors = []
        for call in self.calls(name):
            if call.name in FILES_CHANGE:
                cuts += [Disturbance(what, call) for what in CUTS]
            if call.name in ERRORS:
                kinds = (*ERRORS[call.name].split(), KILL)
                errors += [Disturbance(what, call) for what in kinds]
        drawn = draw.sample(cuts, min(len(cuts), trials // 3))
        return drawn + draw.sample(errors, min(len(errors), trials - len(drawn)))

    def add_older(self, name: str, place: Path) -> Files:
        """Put older outputs into a place, where the command replaces them; return them."""
        added: Files = {}
        if name not in REPLACES:
            return added
        for path in self.alone[name].files.keys() - self.initial.keys():
            output = place / path
            if not TEMPORARY.search(path) and not output.name.startswith("."):
                output.parent.mkdir(parents=True, exist_ok=True)
                output.write_text("older\n")
                added[path] = sha256(output)
        return added

    def fault(self, name: str, one: Disturbance, trial: Path) -> tuple[str, str | None]:
        """Run a trial; return how the command ended, and what was wrong, if anything was."""
        place = self.copy(trial)
        before = self.initial | self.add_older(name, place)
        ended = self.start(name, trial, trial / "log", *one.injected())()
        calls = list(traced.calls(trial / "log", place))
        # The numbers of calls vary a little.
        if any(call.is_injected and not is_disturbed(call, trial) for call in calls):
            return "elsewhere", None
        verdict = "done" if ended.code == 0 else "refused"
        if one.what in CUTS:
            verdict = "cut"
            lose_unsynced(calls, place, halved=one.what == CUTS[1])
        elif ended.code == -9:
            verdict = "killed"
        elif fault := self.wrong_end(name, ended, trial):
            return verdict, fault
        fault = self.wrong([name], trial, before, TEMPORARY)
        fault = fault or self.lost(name, before, place)
        if fault or verdict == "done":
            return verdict, fault
        again = self.start(name, trial)()
        # What does not write again leaves the rest of a kill to the next command that does.
        is_done = again.code != 0 or name == "published"
        stays = TEMPORARY if is_done else STAYS
        fault = again.fault_alone(name) or self.unlike(name, trial, stays)
        return verdict, None if fault is None else f"again: {fault}"

    def wrong_end(self, name: str, ended: Ended, trial: Path) -> str | None:
        """Say what is wrong with how a command ended, by itself or with an error of a call."""
        if fault := ended.fault():
            return fault
        if ended.code == 0:
            if self.alone[name].out not in (None, ended.out):
                return f"prints otherwise: {ended.out[:500]}"
            return self.unlike(name, trial, REMAINS)
        line = next(text for text in ended.err.splitlines() if "error: " in text)
        if re.search(r"error: (the output |\S+[:,] )", line):
            return None
        return f"names neither a file nor the standard output: {line}"

    def lost(self, name: str, before: Files, place: Path) -> str | None:
        """Say what was there before, or is only in part."""
        whole = self.alone[name].files
        found = {path for path in whole if (place / path).exists()}
        if lost := (whole.keys() & before.keys()) - found:
            return f"lost: {sorted(lost)}"
        for folder in FOLDERS:
            expected = {path for path in whole if path.startswith(folder)}
            if expected & found and expected - found:
                return f"in part: {folder}: {sorted(expected - found)} are not there"
        return None

    def unlike(self, name: str, trial: Path, stays: re.Pattern[str]) -> str | None:
        """Say in what a place differs from the one of a run that nothing disturbed."""
        return self.absent(name, trial) or self.wrong([name], trial, {}, stays)


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
    stage = Calls(names)
    os.environ |= {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(stage.folder / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    if "pull" in names:
        place = stage.copy(stage.folder / "hub")
        stage.start("export hub", stage.folder / "hub")()
        for file in (place / "out/hub").iterdir():
            hub.files[file.name] = file.read_bytes()
    for name in names:
        stage.run_alone(name)
        verdicts: Counter[str] = Counter()
        drawn = stage.disturbances(name, -(-trials // len(names)))
        for number, one in enumerate(drawn):
            trial = stage.folder / f"{name.replace(' ', '-')}-{number}"
            verdict, fault = stage.fault(name, one, trial)
            verdicts["faults" if fault else verdict] += 1
            if fault:
                print(f"  {name}: {one}: {fault} (kept: {trial})")
            else:
                shutil.rmtree(trial)
        print(f"{name:24} {dict(sorted(verdicts.items()))}", flush=True)
        counts += verdicts
    stage.close()
    hub.close()
    print(f"calls: {counts.total()} trials of {len(names)} commands: {dict(counts)}")
    return counts
