"""The jobs of a run and what each asks for, as the text of Snakemake's dry run states them.

The text does not say which rules are local, so their files are read for that.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

ALL_CORES = 999_999
"""``--cores`` of the dry run, which else cuts threads to one; who asks for so many takes all."""

_UNKNOWN = "<TBD>"
_ACTIONS = {"shell", "script", "run", "notebook", "wrapper", "cwl", "template_engine"}

_RULE = re.compile(r"( *)(?:rule|checkpoint) (\w+):")
_USE_RULE = re.compile(r"( *)use rule (\w+) as (\w+)")
_DIRECTIVE = re.compile(r"( +)(\w+):\s*(\w*)")
_GROUP = re.compile(r"\[.*\] Group job (.+) \(jobs in .*\):")
_JOB = re.compile(r"( *)(?:local)?(?:rule|checkpoint) (\S+):")
_MESSAGE = re.compile(r" *Job \d+: ")
_PROPERTY = re.compile(r" +(input|output|threads|resources): (.*)")
_NEXT_RESOURCE = re.compile(r", (?=[A-Za-z_]\w*=)")
_GPUS = re.compile(r"\bgpu(?::([^:,()]+))?:(\d+)")


@dataclass(frozen=True)
class Request:
    """What a job, or a group of jobs that is one submission, asks for."""

    name: str
    rules: tuple[str, ...]
    resources: Mapping[str, str]
    """Numbers among them as digits; ``<TBD>`` is what Snakemake does not know yet."""

    def number(self, resource: str) -> int | None:
        """Return a resource's number; None where it is not stated or not known."""
        value = self.resources.get(resource, "")
        return int(value) if re.fullmatch(r"-?\d+", value) else None

    @property
    def gpus(self) -> int:
        """GPUs of all its nodes."""
        in_gres = sum(gpus_in(self.resources.get("gres", "")).values())
        return (self.number("gpu") or 0) + in_gres * (self.number("nodes") or 1)


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
    """Return the names of the rules in the texts of Snakefiles that are never submitted.

    Those are what ``localrule`` and ``localrules`` say, and rules without an action.
    """
    stated: dict[str, dict[str, str]] = defaultdict(dict)
    bases = {}
    named = set()
    for text in texts:
        name, indent = "", ""
        for line in text.splitlines():
            if found := _RULE.match(line):
                indent, name = found[1], found[2]
                stated[name] = {}
            elif found := _USE_RULE.match(line):
                indent, name = found[1], found[3]
                bases[name] = found[2]
            elif line.startswith("localrules:"):
                named |= {*re.findall(r"\w+", line.partition(":")[2])}
            elif (found := _DIRECTIVE.match(line)) and name and found[1] == f"{indent}    ":
                stated[name].setdefault(found[2], found[3])
            elif line.strip() and not line.startswith(f"{indent} "):
                name = ""  # the rule has ended

    def directives(name: str) -> dict[str, str]:
        """Return those of a rule and of the rule that it was made from."""
        return (directives(bases[name]) if name in bases else {}) | stated.get(name, {})

    return named | {
        name
        for name in {*stated, *bases}
        if directives(name).get("localrule") == "True" or not _ACTIONS & {*directives(name)}
    }


@dataclass
class _Job:
    rule: str
    group: int | None
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def resources(self) -> dict[str, str]:
        stated = _NEXT_RESOURCE.split(self.properties.get("resources", ""))
        pairs = (each.partition("=") for each in stated)
        found = {name: value for name, _, value in pairs if name}
        return found | {"threads": self.properties.get("threads", "1")}

    def files(self, side: str) -> set[str]:
        """Return the paths of a side, without notes such as `(update)`."""
        return {path.partition(" (")[0] for path in self.properties.get(side, "").split(", ")}


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
            jobs.append(_Job(found[2], len(groups) - 1 if found[1] else None))
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
    requests += [_of_group(groups[group], of_group, limits) for group, of_group in members.items()]
    return DryRun(requests, count_local, not_shown)


def _of_group(name: str, jobs: Sequence[_Job], limits: Mapping[str, int]) -> Request:
    """Return what a group asks for, as Snakemake adds it up.

    The numbers of jobs that run side by side are added, and the largest of such sums counts; of
    time, the longest of them is added. What is not known is left out. Jobs that do not wait for
    each other run side by side, as far as ``limits`` let them.
    """
    levels: dict[int, int] = {}

    def level(index: int) -> int:
        if index not in levels:
            inputs = jobs[index].files("input") - {""}
            before = [other for other, job in enumerate(jobs) if inputs & job.files("output")]
            levels[index] = 1 + max(map(level, before), default=0)
        return levels[index]

    layers: dict[tuple[int, int], list[dict[str, str]]] = defaultdict(list)
    for index, job in enumerate(jobs):
        resources = job.resources
        turn = 0
        while not _fits(resources, layers[level(index), turn], limits):
            turn += 1
        layers[level(index), turn].append(resources)
    total: dict[str, str] = {}
    for resource in dict.fromkeys(name for job in jobs for name in job.resources):
        given = [[job[resource] for job in layer if resource in job] for layer in layers.values()]
        known = [[value for value in layer if value != _UNKNOWN] for layer in given]
        texts = [value for layer in known for value in layer if not value.isdecimal()]
        if texts:
            total[resource] = texts[0]  # Snakemake refuses a group in which they differ
        elif any(known):
            beside, after = (max, sum) if resource == "runtime" else (sum, max)
            numbers = [[int(value) for value in layer] for layer in known if layer]
            total[resource] = str(after(map(beside, numbers)))
        else:
            total[resource] = _UNKNOWN
    rules = sorted({job.rule for job in jobs})
    return Request(f"group {name} ({', '.join(rules)})", tuple(rules), total)


def _fits(
    job: Mapping[str, str], beside: Sequence[Mapping[str, str]], limits: Mapping[str, int]
) -> bool:
    """Return whether a job can run beside others."""
    for name, most in limits.items():
        used = sum(int(other.get(name, 0)) for other in beside)
        if name in job and beside and used + int(job[name]) > most:
            return False
    return True


def gpus_in(gres: str) -> dict[str, int]:
    """Return the GPUs of each model in Slurm's words, such as `gpu:a100:4(S:0-1),gpu:v100:2`."""
    if gres == "gpu":
        return {"": 1}
    found: dict[str, int] = {}
    for model, count in _GPUS.findall(gres):
        found[model] = found.get(model, 0) + int(count)
    return found
