"""Seeded kills in every stage of a small run; the same command again must end with the same files.

A run is killed as a whole, as one of its processes, or as Snakemake alone, which leaves its jobs.
That is at a drawn time, or when Snakemake enters a drawn system call on one of its own records.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from convs2s.files.checksums import sha256
from convs2s.mirror.write import write_mirror
from tests.faults.campaign import traced
from tests.support.checkout import Checkout, check_out
from tests.support.own_pair import TINY

IN_A_ROW = 5
"""Kills of one run, which then goes on from where the last of them left it."""
MOST_SECONDS = 600.0
"""In which the same command ends well after a kill: jobs that outlived Snakemake are waited for."""

WAYS = ("group", "one", "alone", "call")
RECORDS = (".snakemake/metadata", ".snakemake/incomplete", ".snakemake/convs2s")
"""Where Snakemake writes what it knows of outputs, and the workflow what it tells Snakemake."""
ROOT = Path(__file__).resolve().parents[3]
TASK = "results/demo_en_fr"
STAGES = {
    "download": "results/scales/mirror/wmt16_en_ro/corpus/raw/valid.source.zst",
    "prepare": f"{TASK}/dataset/train.arrow",
    "align": f"{TASK}/alignment/dictionary.tsv",
    "train": f"{TASK}/models/demo/seed1/model.safetensors",
    "decode": f"{TASK}/models/demo/seed1/test.beam5.jsonl",
    "score": f"{TASK}/bleu.txt",
}
"""Stage -> what is asked for; what the stage before makes is there."""
RESULTS = re.compile(r"(\.(arrow|tsv|zst|safetensors|jsonl|txt|t?gz)|/\.?[^/.]+)$")
"""Files whose bytes depend on nothing but their inputs, if they are none of the next."""
PASSING = re.compile(r"/(state|archives)/|/history\.jsonl$|/\.partial\.")

TRAINING = {"maximum_epochs": 2, "checkpoint_minutes": 1 / 60}
OVERRIDES = {
    "models": {"demo": TINY | {"training": TRAINING}},
    "tasks": {"demo_en_fr": {"headline": {"seeds": [1]}}},
}


def start(checkout: Checkout, stage: str) -> subprocess.Popen[bytes]:
    """Start a stage's run in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", STAGES[stage]],
        cwd=checkout.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def calls_of_snakemake(checkout: Checkout, stage: str) -> list[tuple[str, str]]:
    """Run a stage; return name and file of the calls that change Snakemake's records."""
    log = checkout.folder.with_name("calls.log")
    process = start(checkout, stage)
    tracer = traced.attach(process.pid, log)
    process.wait()
    tracer.communicate()
    found = set()
    for call in traced.calls(log, checkout.folder):
        if call.name != "openat" or "O_CREAT" in call.words:
            for path in map(str, call.paths):
                name = path.removeprefix(f"{checkout.folder}/")
                if name.startswith(RECORDS):
                    found.add((call.name, name))
    return sorted(found)


def kill(process: subprocess.Popen[bytes], way: str, draw: random.Random) -> None:
    """Kill all of a run, one of its processes, or Snakemake alone."""
    with suppress(ProcessLookupError, psutil.NoSuchProcess, IndexError):  # it has ended
        if way == "group":
            os.killpg(process.pid, signal.SIGKILL)
        elif way == "alone":
            process.kill()
        else:
            draw.choice(psutil.Process(process.pid).children(recursive=True)).kill()
    process.wait()


def results(checkout: Checkout) -> dict[str, str]:
    """Return the checksums of a run's files by their names; times and states are none of them."""
    found = filter(RESULTS.search, checkout.files("results"))
    return {name: sha256(checkout / name) for name in found if not PASSING.search(name)}


def kill_at_call(checkout: Checkout, stage: str, call: tuple[str, str]) -> None:
    """Start a run, and kill the process that enters a call on a file; jobs are left."""
    name, path = call
    process = start(checkout, stage)
    kill_it = f"{name}:signal=SIGKILL"
    null = Path(os.devnull)
    tracer = traced.attach(process.pid, null, kill_it, path, str(checkout / path))
    process.wait()
    tracer.kill()  # jobs that go on are not waited for
    tracer.communicate()


def fault_after_kills(
    before: Checkout,
    whole: dict[str, str],
    stage: str,
    seconds: float,
    calls: list[tuple[str, str]],
    number: int,
) -> str | None:
    """Kill a stage's runs one after another, then let one end; return what went wrong.

    Args:
        before: what the stage begins with.
        whole: the results of a run that nobody kills.
        stage: a key of ``STAGES``.
        seconds: how long it takes.
        calls: name and file of Snakemake's calls; none without strace.
        number: of this row of kills.
    """
    draw = random.Random(f"{stage} {number}")
    with tempfile.TemporaryDirectory(prefix="convs2s-kills-") as name:
        checkout = before.copy(Path(name))
        for killed in range(IN_A_ROW):
            way = WAYS[(number + killed) % len(WAYS)]
            if way == "call" and calls:
                kill_at_call(checkout, stage, draw.choice(calls))
            else:
                process = start(checkout, stage)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(draw.uniform(0, seconds))
                kill(process, way, draw)
            for path, digest in results(checkout).items():
                if whole.get(path, digest) != digest:
                    return f"torn under its final name right after {way}: {path}"
        end = time.monotonic() + MOST_SECONDS
        while (done := checkout.snakemake(STAGES[stage])).code != 0:
            if time.monotonic() > end:
                return f"the same command fails: {done.said[-1000:]}"
            time.sleep(5.0)
        found = results(checkout)
    # Intermediate files, which go when nothing needs them, are in one of the two alone.
    other = [path for path in whole if found.get(path) != whole[path]]
    return f"other results: {other}" if other else None


def run(kills: int) -> Counter[str]:
    """Kill so many runs in all, as many in each stage; print and count the faults."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="convs2s-kills-") as name:
        folder = Path(name)
        plain = check_out(ROOT, folder / "plain")
        plain.configure({"device": "cpu", "cores": 2, "overrides": OVERRIDES})
        mirrored = check_out(ROOT, folder / "mirrored")
        archives = mirrored / "results/scales/mirror/archives"
        write_mirror(archives)
        shutil.copytree(archives / "data", mirrored / "data")
        mirrored.configure({"scale": "mirror", "device": "cpu", "cores": 1})
        for stage in STAGES:
            checkout = mirrored if stage == "download" else plain
            before = checkout.copy(folder / f"before {stage}")
            started = time.monotonic()
            checkout.snakemake(STAGES[stage]).succeeded()
            seconds = time.monotonic() - started
            whole = results(checkout)
            calls = []
            if traced.is_available():
                calls = calls_of_snakemake(before.copy(folder / "traced"), stage)
                shutil.rmtree(folder / "traced")
            for number in range(-(-kills // len(STAGES) // IN_A_ROW)):
                fault = fault_after_kills(before, whole, stage, seconds, calls, number)
                counts["faults" if fault else "passed"] += 1
                print(f"{stage} {number}: {fault or 'passed'}", flush=True)
            shutil.rmtree(before.folder)
    print(
        f"kills: {kills} in {len(STAGES)} stages, {IN_A_ROW} in a row: {dict(counts)}"
    )
    return counts
