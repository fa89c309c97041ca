"""What a run will ask of a cluster: each kind of request, and those that can never run."""

import argparse
import importlib.util
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from convs2s.costs.dry_run import ALL_CORES, DryRun, Request, dry_run, local_rules, parse_plan
from convs2s.costs.partitions import ask_sinfo, refusals
from convs2s.scoring.text_table import aligned, underlined

LOCAL_EXECUTORS = {"local", "dryrun", "touch"}

MOST_SHOWN = 4
"""Names of requests in a warning; of more the others are counted."""

# Of what a request states beside threads, mem_mb, runtime and gpu, where it does.
_FURTHER = (
    "gres",
    "gpu_model",
    "nodes",
    "tasks",
    "tasks_per_node",
    "cpus_per_task",
    "mem_mb_per_cpu",
    "slurm_partition",
    "slurm_account",
    "qos",
    "constraint",
    "clusters",
    "slurm_extra",
)
_PROFILE = re.compile(r"(?:profile|config)(?:\.v(\d+)\+)?\.yaml")


@dataclass(frozen=True)
class Submission:
    """How a command line and its profiles have jobs submitted."""

    executor: str
    limits_cores: bool
    """Whether a number of cores is stated, which cuts the threads of all jobs."""
    chooses_partition: bool
    """Whether Slurm's plugin chooses the partition of a job that names none."""
    translations: int | None
    """How many of them a group runs at a time (rules/common.smk: resource_scopes); None: all."""
    folder: Path
    """Where the command line was given."""

    @property
    def is_local(self) -> bool:
        """Whether jobs run on this machine."""
        return self.executor in LOCAL_EXECUTORS


def requests_report(
    command: Sequence[str],
    submission: Submission,
    *,
    targets: Sequence[str],
    prefix: str,
    snakefiles: Iterable[Path],
) -> Iterator[str]:
    """Yield the lines on what a run asks of its cluster; none where jobs run on this machine.

    Args:
        command: the command line that runs now: Python, ``-m snakemake`` and its arguments.
        submission: how it has jobs submitted.
        targets: those of the run itself, in place of the one that asks for this report.
        prefix: what a module's `use rule` puts before the names of these and of all rules.
        snakefiles: the files of the rules.
    """
    # Another interface of Snakemake's has a command line of its own, without the target.
    asked = f"{prefix}preflight"
    if submission.is_local or asked not in command:
        return
    yield ""
    yield from underlined(f"requests to the cluster, by its executor {submission.executor}")
    targets = [prefix + target for target in targets]
    yield f"planning {', '.join(targets)}, without running anything"
    done = subprocess.run(
        dry_run(command, asked, targets, submission.limits_cores),
        cwd=submission.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}".strip()
        last_line = said.rpartition("\n")[2]
        yield f"WARNING: the requests are not known: the plan failed: {last_line}"
        return
    local = local_rules(path.read_text("utf-8") for path in snakefiles)
    plan = parse_plan(done.stdout, {prefix + name for name in local}, submission.translations)
    yield from table(plan)
    yield from warnings(plan, submission)


def submission_of(words: Sequence[str], started_in: Path) -> Submission:
    """Return how the words of a command line, given in a folder, have jobs submitted.

    The folder is not the one of ``--directory``, if that has taken effect.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default=os.environ.get("SNAKEMAKE_PROFILE"))
    parser.add_argument("--workflow-profile", default="profiles/default")
    parser.add_argument("--executor", "-e", default="local")
    parser.add_argument("--cores", "-c", nargs="?", const="all")
    parser.add_argument("--resources", "--res", nargs="+")
    parser.add_argument("--directory", "-d")
    partitions = os.environ.get("SNAKEMAKE_SLURM_PARTITIONS")
    parser.add_argument("--slurm-partition-config", default=partitions)
    options, _ = parser.parse_known_args(words)
    folder = Path.cwd()
    if options.directory is not None and (started_in / options.directory).resolve() == folder:
        folder = started_in
    at_home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    homes = [folder, Path(at_home, "snakemake"), Path("/etc/xdg/snakemake")]
    # What a profile states is an option's default. That of the workflow comes last, as it wins.
    for profile in (options.profile, options.workflow_profile):
        if profile:
            parser.set_defaults(**_profile(profile, homes))
    options, _ = parser.parse_known_args(words)
    limits = options.resources or {}
    if isinstance(limits, list):
        limits = dict(word.split("=", 1) for word in limits)
    return Submission(
        executor=options.executor,
        limits_cores=options.cores is not None,
        chooses_partition=options.slurm_partition_config is not None,
        translations=int(limits["translations"]) if "translations" in limits else None,
        folder=folder,
    )


def _profile(name: str, homes: Iterable[Path]) -> dict[str, object]:
    """Return what a profile of Snakemake states, a file or a folder with one, by option."""
    for home in homes:
        path = home / name
        if path.is_dir():
            versions = {}
            for file in path.glob("*.yaml"):
                if found := _PROFILE.fullmatch(file.name):
                    versions[file] = int(found[1] or 0)
            # That for the newest version of Snakemake.
            path = max(versions, key=versions.__getitem__, default=path)
        if path.is_file():
            stated = yaml.safe_load(path.read_text("utf-8")) or {}
            return {option.replace("-", "_"): value for option, value in stated.items()}
    return {}


def table(plan: DryRun) -> Iterator[str]:
    """Yield a line for each kind of request, the largest first, and the number of all."""
    header = ["", "submissions", "threads", "mem_mb", "runtime", "GPUs", "further"]
    rows = []
    for largest, kind in _kinds(plan.requests):
        row = [largest.name, f"{len(kind):,}"]
        for resource in ("threads", "mem_mb", "runtime"):
            row.append(_range(request.resources.get(resource) for request in kind))
        gpus = _range(str(request.gpus) for request in kind)
        row += ["" if gpus == "0" else gpus, _further(largest)]
        rows.append(row)
    if rows:
        yield from aligned(header, rows)
    if any("?" in cell for row in rows for cell in row):
        yield "?: not known before its input is there"
    yield f"submissions: {len(plan.requests):,}; jobs that run here: {plan.local:,}"
    if plan.not_shown:
        yield f"not counted: {plan.not_shown:,} jobs of rules with a message of their own"


def warnings(plan: DryRun, submission: Submission) -> Iterator[str]:
    """Yield a line for each request that can never run as it is, and what to set."""
    if any(request.gpus for request in plan.requests) and not torch_has_gpus():
        yield (
            "WARNING: jobs ask for GPUs, and torch here was built without: remove .venv and run "
            "make install TORCH=cuda"
        )
    if submission.executor != "slurm" or not plan.requests:
        return
    partitions = ask_sinfo()
    if partitions is None:
        yield "requests are not checked: sinfo is not here, or does not answer"
        return
    refused = defaultdict(list)
    for request, _ in _kinds(plan.requests):
        for refusal in refusals(request, partitions, submission.chooses_partition):
            refused[refusal.why, refusal.to_set].append((request, refusal.asked))
    for (why, to_set), of_requests in refused.items():
        names = [request.name for request, _ in of_requests]
        verb = "asks for" if len(names) == 1 else "ask for"
        amounts = [asked for _, asked in of_requests if asked is not None]
        if amounts:
            up_to = " up to" if len(amounts) > 1 else ""
            verb += f"{up_to} {max(amounts):,}"
        if len(names) > MOST_SHOWN:
            others = names[MOST_SHOWN - 1 :]
            names[MOST_SHOWN - 1 :] = [f"{len(others)} more"]
        rules = {rule for request, _ in of_requests for rule in request.rules}
        rule = rules.pop() if len(rules) == 1 else "RULE"
        yield f"WARNING: {', '.join(names)}: {verb} {why}: {to_set.replace('RULE', rule)}"


def torch_has_gpus() -> bool:
    """Whether torch was built for GPUs, by a file of it: its import would take seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = Path(spec.origin).with_name("version.py").read_text("utf-8")
    return re.search(r"^(?:cuda|hip)\b[^=\n]*= *['\"]", text, re.MULTILINE) is not None


def _kinds(requests: Iterable[Request]) -> list[tuple[Request, list[Request]]]:
    """Return the requests of each kind, of one rule or group and the same texts, largest first.

    Before each kind stands a request with the largest of all its numbers.
    """
    kinds = defaultdict(list)
    for request in requests:
        kinds[request.name, _further(request)].append(request)
    found = []
    for kind in kinds.values():
        resources = dict(kind[0].resources)
        for name in ("threads", "mem_mb", "runtime", "gpu"):
            numbers = [request.number(name) for request in kind]
            known = [number for number in numbers if number is not None]
            if known:
                resources[name] = str(max(known))
        found.append((replace(kind[0], resources=resources), kind))
    return sorted(found, key=lambda kind: _size(kind[0]), reverse=True)


def _size(request: Request) -> list[int]:
    return [request.gpus, request.number("runtime") or 0, request.number("mem_mb") or 0]


def _further(request: Request) -> str:
    stated = []
    for name in _FURTHER:
        value = request.resources.get(name)
        if value and (name, value) != ("nodes", "1"):
            stated.append(f"{name}={value}")
    return " ".join(stated)


def _range(values: Iterable[str | None]) -> str:
    """Write the least and the greatest number of what is stated, and that others are not known."""
    stated = {value for value in values if value is not None}
    numbers = sorted(int(value) for value in stated if value.isdecimal())
    ends = ["all" if number >= ALL_CORES else f"{number:,}" for number in numbers]
    del ends[1:-1]
    if len(numbers) < len(stated):
        ends.append("?")
    return "-".join(ends)
