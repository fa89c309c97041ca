"""The jobs of a run and the resources that each requests, parsed from Snakemake's dry run.

The dry run does not print which rules are local, so `local_rules` reads the files of the rules.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

ALL_CORES = 999_999
"""The value of ``--cores`` in the dry run, and so the threads of a job that takes all cores.

Without ``--cores`` Snakemake would plan every job with one thread.
"""

_UNKNOWN = "<TBD>"  # Snakemake's word for a resource that it does not know yet

# These match lines in the files of rules.
# The words before the name of a rule, at which `local_rules` splits the text.
_RULE = re.compile(r"^ *(?:rule|checkpoint) (?=\w+:$)", re.MULTILINE)
_LOCAL = re.compile(r"^ +localrule: True$", re.MULTILINE)
_ACTION = re.compile(r"^ +(?:script|shell|run):", re.MULTILINE)

# This matches one of these parts of the plan that Snakemake prints:
# - the first line of a group of jobs;
# - a job with its properties, indented if the job is in a group;
# - the message of a rule, which Snakemake prints in place of the job.
_PLANNED = re.compile(
    r"^(?:\[.*\] Group job (?P<group>.+) \(jobs in .*\):$"
    r"|(?P<indent> *)(?:local)?(?:rule|checkpoint) (?P<rule>\S+):(?P<properties>(?:\n +\w+: .*)*)$"
    r"|(?P<message> *Job \d+: ))",
    re.MULTILINE,
)
_PROPERTY = re.compile(r"(\w+): (.*)")
# NAME=VALUE, up to the next NAME= or the end. A value may contain commas.
_RESOURCE = re.compile(r"([A-Za-z_]\w*)=(.*?)(?:, (?=[A-Za-z_]\w*=)|$)")
_NOTE = re.compile(r" \([^,]*\)")  # a note after a path, such as `(update)`
_GPUS = re.compile(r"\bgpu(?::([^:,()]+))?:(\d+)")  # gpu:MODEL:NUMBER or gpu:NUMBER

Resources = Mapping[str, str]
"""Name of a resource -> its value as text, ``<TBD>`` if Snakemake does not know it yet."""


@dataclass(frozen=True)
class Request:
    """One submission to a cluster: a job or a group of jobs, with its resources."""

    name: str
    rule: str
    """The rule whose options change the request; "RULE" for a group with jobs of several rules."""
    resources: Resources

    def number(self, resource: str) -> int | None:
        """Return a resource as a number; None if it is not stated, not known or not a number."""
        value = self.resources.get(resource, "")
        return int(value) if re.fullmatch(r"-?\d+", value) else None

    @property
    def nodes(self) -> int:
        """The number of nodes that the request runs on; one if none is stated."""
        return self.number("nodes") or 1

    @property
    def gpus(self) -> int:
        """The number of GPUs on all nodes together.

        It is the resource ``gpu``, or else the GPUs in ``gres`` times the number of nodes.
        """
        gpus_per_node = sum(gpus_in(self.resources.get("gres", "")).values())
        return self.number("gpu") or self.nodes * gpus_per_node


@dataclass
class DryRun:
    """The jobs of a dry run."""

    requests: list[Request]
    local: int
    """The number of jobs of local rules, which are not submitted."""
    not_shown: int
    """The number of jobs for which Snakemake prints the message of their rule, not a request."""


def dry_run(
    command: Sequence[str],
    asked: str,
    targets: Sequence[str],
    *,
    limits_cores: bool,
) -> list[str]:
    """Return the command line of a dry run, made from that of the present run.

    Args:
        command: the command line of the present run.
        asked: the target of the present run, which the targets of the dry run replace.
        targets: the targets of the dry run.
        limits_cores: whether the command line or a profile states a number of cores already.
    """
    words = [word for word in command if word != asked]
    # The options end at "--", and targets follow.
    end = words.index("--") if "--" in words else len(words)
    added = ["--dry-run", "--nolock", "--nocolor"]
    added += ["--quiet", "host", "progress", "reason"]
    if not limits_cores:
        added += ["--cores", str(ALL_CORES)]
    return [*words[:end], *added, "--", *targets, *words[end + 1 :]]


def local_rules(texts: Iterable[str]) -> set[str]:
    """Return the names of the rules that are never submitted, from the texts of rule files.

    These are the rules with ``localrule: True``, and the rules without an action.
    """
    local = set()
    for text in texts:
        for rule in _RULE.split(text)[1:]:
            name, _, body = rule.partition(":")
            if _LOCAL.search(body) or not _ACTION.search(body):
                local.add(name)
    return local


class _Job:
    """A job of the plan, parsed from the lines with its properties."""

    def __init__(self, rule: str, properties: str) -> None:
        values = dict(_PROPERTY.findall(properties))
        self.rule = rule
        # If a job has no inputs or no outputs, the split returns an empty text. It is removed from
        # the inputs. Otherwise a job without inputs would seem to need a job without outputs.
        self.inputs = set(_NOTE.sub("", values.get("input", "")).split(", ")) - {""}
        self.outputs = set(_NOTE.sub("", values.get("output", "")).split(", "))
        self.resources = {"threads": values.get("threads", "1")}
        self.resources |= _RESOURCE.findall(values.get("resources", ""))


def parse_plan(
    text: str,
    local: Collection[str],
    translations: int | None,
) -> DryRun:
    """Parse the jobs that Snakemake's dry run prints.

    Args:
        text: the standard output of the dry run.
        local: the rules whose jobs run on this machine and are not submitted.
        translations: the number of jobs with the resource ``translations`` that a group runs at a
            time; None if there is no limit.
    """
    plan = DryRun([], 0, 0)
    groups: list[tuple[str, list[_Job]]] = []
    for found in _PLANNED.finditer(text):
        rule = found["rule"]
        if found["group"]:
            groups.append((found["group"], []))
        elif found["message"]:
            plan.not_shown += 1
        elif found["indent"]:  # a job of the last group
            _, jobs_of_group = groups[-1]
            jobs_of_group.append(_Job(rule, found["properties"]))
        elif rule in local:
            plan.local += 1
        else:
            job = _Job(rule, found["properties"])
            plan.requests.append(Request(rule, rule, job.resources))
    for name, jobs in groups:
        plan.requests.append(_group_request(name, jobs, translations))
    return plan


def _group_request(
    name: str,
    jobs: Sequence[_Job],
    translations: int | None,
) -> Request:
    """Return the request of a group, with its resources added up as Snakemake does it.

    Snakemake runs the jobs of a group in turns. A turn has all jobs whose inputs exist after the
    turns before, but at most ``translations`` jobs with the resource ``translations``.
    """
    order = TopologicalSorter[int]()  # of the jobs, by their index
    for index, job in enumerate(jobs):
        makers = [
            other for other, maker in enumerate(jobs) if job.inputs & maker.outputs
        ]
        order.add(index, *makers)
    order.prepare()
    turns: list[list[Resources]] = []  # the resources of the jobs of each turn
    while order.is_active():
        ready = sorted(order.get_ready())
        order.done(*ready)
        # Ready jobs with the resource ``translations`` are spread over as many turns as they need.
        # All other ready jobs are in the first of these turns.
        new_turns = defaultdict[int, list[Resources]](list)
        translations_before = 0
        for index in ready:
            resources = jobs[index].resources
            turn = 0
            if translations and "translations" in resources:
                turn = translations_before // translations
                translations_before += 1
            new_turns[turn].append(resources)
        turns += new_turns.values()
    names = {resource for job in jobs for resource in job.resources}
    rules = sorted({job.rule for job in jobs})
    return Request(
        f"group {name} ({', '.join(rules)})",
        rules[0] if len(rules) == 1 else "RULE",
        {resource: _total(resource, turns) for resource in names},
    )


def _total(resource: str, turns: Iterable[Iterable[Resources]]) -> str:
    """Return the value of a resource that Snakemake requests for a group.

    The numbers within a turn are added up, and the largest of these sums is requested. ``runtime``
    is the sum of the longest times of the turns. Values that are not known yet are left out.
    """
    numbers_of_turns = []
    for turn in turns:
        values = [resources.get(resource, _UNKNOWN) for resources in turn]
        known = [value for value in values if value != _UNKNOWN]
        for value in known:
            if not value.isdecimal():
                # This is a text. Snakemake refuses groups whose jobs have different texts.
                return value
        if known:
            numbers_of_turns.append(list(map(int, known)))
    if not numbers_of_turns:
        return _UNKNOWN
    if resource == "runtime":
        return str(sum(map(max, numbers_of_turns)))
    return str(max(map(sum, numbers_of_turns)))


def gpus_in(gres: str) -> dict[str, int]:
    """Parse Slurm's text of GPUs, such as `gpu:a100:4(S:0-1),gpu:v100:2`.

    Return model -> number of GPUs. The model is empty if the text does not name it.
    """
    if gres == "gpu":  # neither a model nor a number: one GPU
        return {"": 1}
    found = Counter[str]()
    for model, count in _GPUS.findall(gres):
        found[model] += int(count)
    return found
