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
from pathlib import Path
from typing import NamedTuple

from convs2s.files.checksums import sha256
from tests.faults.campaign import traced
from tests.faults.campaign.commands import JOBS, REFUSED, TYPED
from tests.faults.campaign.pairs import STAYS, TEMPORARY, Ended, Files, Stage
from tests.faults.campaign.traced import FILES_CHANGE, WRITES, Call
from tests.faults.hub import Hub

NAMES = [name for name in TYPED | JOBS if name not in ("train", "status")]
"""Commands that are tried."""

KEEPS = {"train --products", "download", "download known", "published", *REFUSED}
"""What does not write its outputs anew where there are older ones."""

KEPT = (0.0, 0.5)
"""How much of what was not synced a power cut leaves."""

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


class Disturbance(NamedTuple):
    """What a trial does.

    Attributes:
        call: where it does it; None: after the end.
        deed: what strace does there, in its words.
        kept: of a power cut, one of ``KEPT``; None: it is none.
    """

    call: Call | None
    deed: str = "signal=SIGKILL"
    kept: float | None = None


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
        elif "sync" in call.name:
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
        calls = self.calls(name)
        moments = [None, *(call for call in calls if call.name in FILES_CHANGE)]
        cuts = [Disturbance(call, kept=kept) for call in moments for kept in KEPT]
        errors = []
        for call in calls:
            if call.name in ERRORS:
                for error in ERRORS[call.name].split():
                    errors.append(Disturbance(call, f"error={error}"))
                errors.append(Disturbance(call))
        drawn = draw.sample(cuts, min(len(cuts), trials // 3))
        return drawn + draw.sample(errors, min(len(errors), trials - len(drawn)))

    def add_older(self, name: str, place: Path) -> Files:
        """Put older outputs into a place, where the command replaces them; return them."""
        added: Files = {}
        if name in KEEPS:
            return added
        for path in self.alone[name].files.keys() - self.initial.keys():
            output = place / path
            if not TEMPORARY.search(path) and not output.name.startswith("."):
                output.parent.mkdir(parents=True, exist_ok=True)
                output.write_text("older\n")
                added[path] = sha256(output)
        return added

    def attempt(self, name: str, one: Disturbance, trial: Path) -> str:
        """Run a trial; return how the command ended, and raise where something is wrong."""
        place = self.copy(trial)
        before = self.initial | self.add_older(name, place)
        injected = one.call and f"{one.call.name}:{one.deed}:when={one.call.number}"
        ended = self.start(name, trial, trial / "log", injected)()
        calls = list(traced.calls(trial / "log", place))
        # The numbers of calls vary a little.
        if any(call.is_injected and not is_disturbed(call, trial) for call in calls):
            return "elsewhere"
        verdict = "done" if ended.code == 0 else "refused"
        if one.kept is not None:
            verdict = "cut"
            lose_unsynced(calls, place, one.kept)
        elif ended.code == -9:
            verdict = "killed"
        else:
            self.check_end(ended, trial)
        self.check([name], trial, before, TEMPORARY)
        self.check_kept(name, before, place)
        if verdict != "done":
            again = self.start(name, trial)()
            again.check_done()
            # What does not write again leaves the rest of a kill to the next command that does.
            is_done = again.code != 0 or name == "published"
            self.check_same(name, trial, TEMPORARY if is_done else STAYS)
        return verdict

    def check_end(self, ended: Ended, trial: Path) -> None:
        """Raise where a command ended wrongly, by itself or with an error of a call."""
        ended.check()
        if ended.code == 0:
            prints = self.alone[ended.name].out
            assert prints in (None, ended.out), f"prints otherwise: {ended.out[:500]}"
            self.check_same(ended.name, trial, REMAINS)
        else:
            line = next(line for line in ended.err.splitlines() if "error: " in line)
            named = re.search(r"error: (the output |\S+[:,] )", line)
            assert named, f"names neither a file nor the standard output: {line}"

    def check_kept(self, name: str, before: Files, place: Path) -> None:
        """Raise where something was there before, or is only in part."""
        whole = self.alone[name].files
        absent = {path for path in whole if not (place / path).exists()}
        lost = absent & before.keys()
        assert not lost, f"lost: {sorted(lost)}"
        for folder in FOLDERS:
            expected = {path for path in whole if path.startswith(folder)}
            missing = expected & absent
            assert missing in (set(), expected), f"in part: {folder}: without {missing}"

    def check_same(self, name: str, trial: Path, stays: re.Pattern[str]) -> None:
        """Raise where a place is not as after a run that nothing disturbed."""
        self.check_present(name, trial)
        self.check([name], trial, {}, stays)


def lose_unsynced(calls: Iterable[Call], place: Path, kept: float) -> None:
    """Do to the files of a place what a power cut does."""
    for path, (synced, more) in unsynced(calls).items():
        if path.is_relative_to(place) and path.is_file():
            size = synced + int(more * kept)
            os.truncate(path, min(size, path.stat().st_size))


def run(trials: int, names: Sequence[str] = NAMES) -> Counter[str]:
    """Run so many trials, as many of each command; print each fault, and count the verdicts."""
    counts: Counter[str] = Counter()
    if not traced.is_available():
        print("calls: not tried: strace is not installed, or may not trace")
        return counts
    hub = Hub()
    stage = Calls()
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
            try:
                verdicts[stage.attempt(name, one, trial)] += 1
                shutil.rmtree(trial)
            except AssertionError as fault:
                verdicts["faults"] += 1
                print(f"  {name}: {one}: {fault} (kept: {trial})")
        print(f"{name:24} {dict(sorted(verdicts.items()))}", flush=True)
        counts += verdicts
    stage.close()
    hub.close()
    print(f"calls: {counts.total()} trials of {len(names)} commands: {dict(counts)}")
    return counts
