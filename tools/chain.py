"""The picture of README.md: the rules between the archives and a table, by stage.

    python tools/chain.py      # prints the Mermaid diagram

A stage is a file of rules/. Arrows that follow from others are left out.
"""

import re
import subprocess
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ["results/wmt14_en_de_word/bleu.txt", "paper"]
"""A headline number, and all tables and figures."""


def main() -> None:
    """Print the diagram."""
    print(diagram(rule_graph()))


def rule_graph() -> list[tuple[str, str]]:
    """Return the pairs of rules of which the second takes what the first makes."""
    shown = subprocess.run(
        ["snakemake", "--rulegraph", "mermaid-js", "--quiet", "all", "--", *TARGETS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", shown, re.MULTILINE))
    arrows = re.findall(r"^\s*(id\d+) --> (id\d+)$", shown, re.MULTILINE)
    return [(names[first], names[second]) for first, second in arrows]


def diagram(arrows: list[tuple[str, str]]) -> str:
    """Return the arrows between rules as a diagram of their stages."""
    stage_of = {
        rule: path.stem
        for path in sorted((ROOT / "rules").glob("*.smk"))
        for rule in re.findall(r"^(?:use )?rule (?:\w+ as )?(\w+)", path.read_text("utf-8"), re.M)
    }
    rules: dict[str, set[str]] = {}
    arrows = [arrow for arrow in arrows if stage_of[arrow[1]] != "targets"]  # which make nothing
    for rule in (rule for arrow in arrows for rule in arrow):
        rules.setdefault(stage_of[rule], set()).add(rule)
    after: dict[str, set[str]] = {stage: set() for stage in rules}
    for first, second in arrows:
        if stage_of[first] != stage_of[second]:
            after[stage_of[first]].add(stage_of[second])
    # From the last stage back, so that the order depends on nothing but the graph.
    followers = {stage: sorted(after[stage]) for stage in sorted(after)}
    stages = list(TopologicalSorter(followers).static_order())
    lines = ["flowchart LR"]
    for stage in reversed(stages):
        steps = "<br>".join(name.replace("_", " ") for name in sorted(rules[stage]))
        lines.append(f'    {stage}["<b>{stage}</b><br>{steps}"]')
    for stage in reversed(stages):
        farther = {far for near in after[stage] for far in reached(near, after) - {near}}
        lines += [f"    {stage} --> {near}" for near in sorted(after[stage] - farther)]
    return "\n".join(lines)


def reached(stage: str, after: Mapping[str, set[str]]) -> set[str]:
    """Return a stage and all that follow it."""
    return {stage}.union(*(reached(follower, after) for follower in after[stage]))


if __name__ == "__main__":
    main()
