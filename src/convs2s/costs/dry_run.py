"""The jobs of a run and what each asks for, as the text of Snakemake's dry run states them.

The text does not say which rules are local, so their files are read for that.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

ALL_CORES = 999_999
"""``--cores`` of the dry run, which else cuts threads to one; who asks for so many takes all."""

_UNKNOWN = "<TBD>"

# In the files of rules.
_RULE = re.compile(r"^ *(?:rule|checkpoint) (?=\w+:$)", re.MULTILINE)
_LOCAL = re.compile(r"^ +localrule: True$", re.MULTILINE)
_ACTION = re.compile(r"^ +(?:script|shell|run):", re.MULTILINE)

# In the plan: the beginning of a group; a job, which is indented in a group, with its properties; a
# rule's message in place of a job.
_PLANNED = re.compile(
    r"^(?:\[.*\] Group job (?P<group>.+) \(jobs in .*\):$"
    r"|(?P<indent> *)(?:local)?(?:rule|checkpoint) (?P<rule>\S+):(?P<properties>(?:\n +\w+: .*)*)$"
    r"|(?P<message> *Job \d+: ))",
    re.MULTILINE,
)
_PROPERTY = re.compile(r"(\w+): (.*)")
_RESOURCE = re.compile(r"([A-Za-z_]\w*)=(.*?)(?:, (?=[A-Za-z_]\w*=)|$)")
_NOTE = re.compile(r" \([^,]*\)")  # behind a path, such as `(update)`
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
    def nodes(self) -> int:
        """On how many nodes it runs; without a number it is one, for a rule's job."""
        return self.number("nodes") or 1

    @property
    def gpus(self) -> int:
        """GPUs of all its nodes."""
        on_a_node = sum(gpus_in(self.resources.get("gres", "")).values())
        return self.number("gpu") or self.nodes * on_a_node


@dataclass
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
    words = [word for word in command if word != asked]
    end = words.index("--") if "--" in words else len(words)
    added = ["--dry-run", "--nolock", "--nocolor", "--quiet", "host", "progress", "reason"]
    if not limits_cores:
        added += ["--cores", str(ALL_CORES)]
    return [*words[:end], *added, "--", *targets, *words[end + 1 :]]


def local_rules(texts: Iterable[str]) -> set[str]:
    """Return the names of the rules in these texts that are never submitted.

    Those are the rules with ``localrule: True``, and those without an action.
    """
    local = set()
    for text in texts:
        for rule in _RULE.split(text)[1:]:
            name, _, body = rule.partition(":")
            if _LOCAL.search(body) or not _ACTION.search(body):
                local.add(name)
    return local


class _Job:
    """A job of the plan, by the lines that state its properties."""

    def __init__(self, rule: str, properties: str) -> None:
        stated = dict(_PROPERTY.findall(properties))
        self.rule = rule
        self.inputs = set(_NOTE.sub("", stated.get("input", "")).split(", ")) - {""}
        self.outputs = set(_NOTE.sub("", stated.get("output", "")).split(", "))
        self.resources = {"threads": stated.get("threads", "1")}
        self.resources |= _RESOURCE.findall(stated.get("resources", ""))


def parse_plan(text: str, local: Collection[str], translations: int | None) -> DryRun:
    """Return the jobs that Snakemake's dry run prints.

    ``local`` are the rules that run here, ``translations`` is how many jobs with the resource of
    this name a group runs at a time; None: all.
    """
    plan = DryRun([], 0, 0)
    groups: list[tuple[str, list[_Job]]] = []
    for found in _PLANNED.finditer(text):
        rule = found["rule"]
        if found["group"]:
            groups.append((found["group"], []))
        elif found["message"]:
            plan.not_shown += 1
        elif found["indent"]:
            groups[-1][1].append(_Job(rule, found["properties"]))
        elif rule in local:
            plan.local += 1
        else:
            job = _Job(rule, found["properties"])
            plan.requests.append(Request(rule, (rule,), job.resources))
    for name, jobs in groups:
        plan.requests.append(_of_group(name, jobs, translations))
    return plan


def _of_group(name: str, jobs: Sequence[_Job], translations: int | None) -> Request:
    """Return what a group asks for, as Snakemake adds it up.

    Jobs that do not wait for each other run side by side, but for translations.
    """
    order = TopologicalSorter[int]()
    for index, job in enumerate(jobs):
        makers = [other for other, maker in enumerate(jobs) if job.inputs & maker.outputs]
        order.add(index, *makers)
    order.prepare()
    turns: list[list[Resources]] = []
    while order.is_active():
        ready = sorted(order.get_ready())
        order.done(*ready)
        side_by_side = defaultdict[int, list[Resources]](list)
        begun = 0
        for index in ready:
            resources = jobs[index].resources
            turn = 0
            if translations and "translations" in resources:
                turn = begun // translations
                begun += 1
            side_by_side[turn].append(resources)
        turns += side_by_side.values()
    names = {resource for job in jobs for resource in job.resources}
    rules = sorted({job.rule for job in jobs})
    return Request(
        f"group {name} ({', '.join(rules)})",
        tuple(rules),
        {resource: _total(resource, turns) for resource in names},
    )


def _total(resource: str, turns: Iterable[Iterable[Resources]]) -> str:
    """Return what a group asks for of a resource, which Snakemake adds up in this way.

    The numbers of jobs side by side are added, and the largest of such sums counts; of the times
    of jobs side by side the longest counts, and these are added. What is not known is left out.
    """
    of_turns = []
    for turn in turns:
        known = [job[resource] for job in turn if job.get(resource, _UNKNOWN) != _UNKNOWN]
        for value in known:
            if not value.isdecimal():
                return value  # a text: Snakemake refuses a group in which they differ
        if known:
            of_turns.append(list(map(int, known)))
    if not of_turns:
        return _UNKNOWN
    if resource == "runtime":
        return str(sum(map(max, of_turns)))
    return str(max(map(sum, of_turns)))


def gpus_in(gres: str) -> dict[str, int]:
    """Return the GPUs of each model in Slurm's words, such as `gpu:a100:4(S:0-1),gpu:v100:2`."""
    if gres == "gpu":
        return {"": 1}
    found = Counter[str]()
    for model, count in _GPUS.findall(gres):
        found[model] += int(count)
    return found
