"""The jobs of a run and what each asks for, as the text of Snakemake's dry run states them.

The text does not say which rules are local, so their files are read for that.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter

ALL_CORES = 999_999
"""``--cores`` of the dry run, which else cuts threads to one; who asks for so many takes all."""

_UNKNOWN = "<TBD>"

# In the files of rules.
_RULE = re.compile(r"^ *(?:rule|checkpoint) (\w+):$", re.MULTILINE)
_LOCAL = re.compile(r"^ +localrule: True$", re.MULTILINE)
_ACTION = re.compile(r"^ +(?:script|shell|run):", re.MULTILINE)

# In the plan.
_GROUP = re.compile(r"\[.*\] Group job (.+) \(jobs in .*\):")
_JOB = re.compile(r"( *)(?:local)?(?:rule|checkpoint) (\S+):")
_MESSAGE = re.compile(r" *Job \d+: ")
_PROPERTY = re.compile(r" +(input|output|threads|resources): (.*)")
_NEXT_RESOURCE = re.compile(r", (?=[A-Za-z_]\w*=)")
_GPUS = re.compile(r"\bgpu(?::([^:,()]+))?:(\d+)")

Resources = Mapping[str, str]
"""What a job asks for, by name; a number as digits, ``<TBD>`` if Snakemake does not know it yet."""


@dataclass(frozen=True)
class Request:
    """What a job, or a group of jobs that is one submission, asks for."""

    name: str
    rules: tuple[str, ...]
    resources: Resources

    def number(self, resource: str) -> int | None:
        """Return a resource's number; None where it is not stated or not known."""
        value = self.resources.get(resource, "")
        return int(value) if re.fullmatch(r"-?\d+", value) else None

    @property
    def gpus(self) -> int:
        """GPUs of all its nodes."""
        on_a_node = sum(gpus_in(self.resources.get("gres", "")).values())
        nodes = self.number("nodes") or 1
        return (self.number("gpu") or 0) + nodes * on_a_node


@dataclass(frozen=True)
class DryRun:
    """The jobs of a dry run."""

    requests: list[Request]
    local: int
    """Jobs of local rules, which nobody submits."""
    not_shown: int
    """Jobs of which Snakemake prints a rule's message in place of the request."""


def dry_run(
    command: Sequence[str], asked: str, targets: Sequence[str], limits_cores: bool
) -> list[str]:
    """Return the command line that plans targets in place of the one that is asked for."""
    end = command.index("--") if "--" in command else len(command)
    words = [word for word in command[:end] if word != asked]
    further = [word for word in command[end + 1 :] if word != asked]
    added = ["--dry-run", "--nolock", "--nocolor", "--quiet", "host", "progress", "reason"]
    if not limits_cores:
        added += ["--cores", str(ALL_CORES)]
    return [*words, *added, "--", *targets, *further]


def local_rules(texts: Iterable[str]) -> set[str]:
    """Return the names of the rules in these texts that are never submitted.

    Those are the rules with ``localrule: True``, and those without an action.
    """
    local = set()
    for text in texts:
        _, *names_and_bodies = _RULE.split(text)
        names = names_and_bodies[::2]
        bodies = names_and_bodies[1::2]
        for name, body in zip(names, bodies, strict=True):
            if _LOCAL.search(body) or not _ACTION.search(body):
                local.add(name)
    return local


@dataclass
class _Job:
    rule: str
    group: int | None
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def resources(self) -> Resources:
        found = {"threads": self.properties.get("threads", "1")}
        for stated in _NEXT_RESOURCE.split(self.properties.get("resources", "")):
            name, _, value = stated.partition("=")
            if name:
                found[name] = value
        return found

    def files(self, side: str) -> set[str]:
        """Return the paths of a side, without notes such as `(update)`."""
        stated = self.properties.get(side)
        if stated is None:
            return set()
        return {path.partition(" (")[0] for path in stated.split(", ")}


def parse_plan(text: str, local: Collection[str], limits: Mapping[str, int]) -> DryRun:
    """Return the jobs that Snakemake's dry run prints.

    ``local`` are the rules that run here, ``limits`` the resources that a group has at most.
    """
    jobs: list[_Job] = []
    groups: list[str] = []
    not_shown = 0
    in_job = False
    for line in text.splitlines():
        if found := _GROUP.match(line):
            groups.append(found[1])
            in_job = False
        elif found := _JOB.fullmatch(line):
            is_in_group = bool(found[1])  # it is indented
            group = len(groups) - 1 if is_in_group else None
            jobs.append(_Job(found[2], group))
            in_job = True
        elif _MESSAGE.match(line):
            not_shown += 1
            in_job = False
        elif in_job and (found := _PROPERTY.fullmatch(line)):
            jobs[-1].properties[found[1]] = found[2]
    requests = []
    members = defaultdict(list)
    count_local = 0
    for job in jobs:
        if job.group is not None:
            members[job.group].append(job)
        elif job.rule in local:
            count_local += 1
        else:
            requests.append(Request(job.rule, (job.rule,), job.resources))
    for group, of_group in members.items():
        requests.append(_of_group(groups[group], of_group, limits))
    return DryRun(requests, count_local, not_shown)


def _of_group(name: str, jobs: Sequence[_Job], limits: Mapping[str, int]) -> Request:
    """Return what a group asks for, as Snakemake adds it up.

    Jobs that do not wait for each other run side by side, as far as ``limits`` let them.
    """
    order = TopologicalSorter[int]()
    for index, job in enumerate(jobs):
        inputs = job.files("input")
        order.add(index)
        for other, maker in enumerate(jobs):
            if inputs & maker.files("output"):
                order.add(index, other)
    order.prepare()
    turns: list[list[Resources]] = []
    while order.is_active():
        ready = sorted(order.get_ready())
        turns += _in_turns([jobs[index].resources for index in ready], limits)
        order.done(*ready)
    names: set[str] = set()
    for job in jobs:
        names |= job.resources.keys()
    total = {name: _total(name, turns) for name in names}
    rules = sorted({job.rule for job in jobs})
    return Request(f"group {name} ({', '.join(rules)})", tuple(rules), total)


def _in_turns(jobs: Iterable[Resources], limits: Mapping[str, int]) -> list[list[Resources]]:
    """Return jobs by the turns in which they run: each in the first one that has room for it."""
    turns: list[list[Resources]] = []
    for job in jobs:
        for turn in turns:
            if _has_room(turn, job, limits):
                turn.append(job)
                break
        else:
            turns.append([job])
    return turns


def _has_room(turn: Iterable[Resources], job: Resources, limits: Mapping[str, int]) -> bool:
    for name, most in limits.items():
        used = sum(int(other.get(name, 0)) for other in turn)
        if name in job and used + int(job[name]) > most:
            return False
    return True


def _total(resource: str, turns: Iterable[Iterable[Resources]]) -> str:
    """Return what a group asks for of a resource, which Snakemake adds up in this way.

    The numbers of jobs side by side are added, and the largest of such sums counts; of the times
    of jobs side by side the longest counts, and these are added. What is not known is left out.
    """
    amounts = []
    for turn in turns:
        numbers = []
        for job in turn:
            value = job.get(resource, _UNKNOWN)
            if value.isdecimal():
                numbers.append(int(value))
            elif value != _UNKNOWN:
                return value  # a text: Snakemake refuses a group in which they differ
        if numbers:
            amounts.append(max(numbers) if resource == "runtime" else sum(numbers))
    if not amounts:
        return _UNKNOWN
    return str(sum(amounts) if resource == "runtime" else max(amounts))


def gpus_in(gres: str) -> dict[str, int]:
    """Return the GPUs of each model in Slurm's words, such as `gpu:a100:4(S:0-1),gpu:v100:2`."""
    if gres == "gpu":
        return {"": 1}
    found: dict[str, int] = {}
    for model, count in _GPUS.findall(gres):
        found[model] = found.get(model, 0) + int(count)
    return found
