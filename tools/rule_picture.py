"""The picture of README.md: the rules between the archives and the tables, by stage.

    python tools/rule_picture.py > docs/images/rules.svg

A stage is a file of rules/; it stands to the right of those that it takes anything of. Arrows that
follow from others are left out.
"""

import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ["results/wmt14_en_de_word/bleu.txt", "paper"]
"""A headline number, and all tables and figures."""

# pixels: of the picture, between boxes, and of a line of text.
WIDTH, GAP, LINE = 980, 16, 13
LETTER = 5.2  # pixels: of a letter of the steps, about
STYLE = """<style>
  .ground { fill: #ffffff; } .box { fill: #eef4fa; stroke: #0072b2; }
  text { fill: #1f2430; } line { stroke: #444; } .tip { fill: #444; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1e2129; } .box { fill: #22304a; stroke: #56b4e9; }
    text { fill: #e6e9f0; } line { stroke: #a8b0c2; } .tip { fill: #a8b0c2; }
  }
</style>"""

Followers = Mapping[str, set[str]]  # stage -> those that take something of it


def main() -> None:
    """Print the picture."""
    print("\n".join(picture(rule_graph())))


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
    return sorted((names[first], names[second]) for first, second in arrows)


def picture(arrows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the stages' picture as SVG."""
    stage_of = {
        rule: path.stem
        for path in sorted((ROOT / "rules").glob("*.smk"))
        for rule in re.findall(
            r"^(?:use )?rule (?:\w+ as )?(\w+)", path.read_text("utf-8"), re.M
        )
    }
    # Which make nothing.
    made = [arrow for arrow in arrows if stage_of[arrow[1]] != "targets"]
    steps: dict[str, set[str]] = {}
    for rule in (rule for arrow in made for rule in arrow):
        steps.setdefault(stage_of[rule], set()).add(rule.replace("_", " "))
    after: Followers = {
        stage: {stage_of[second] for first, second in made if stage_of[first] == stage}
        - {stage}
        for stage in steps
    }
    columns = list(in_columns(after))
    width = (WIDTH - GAP * (len(columns) + 1)) / len(columns)
    lines = {
        stage: textwrap.wrap(", ".join(sorted(names)), int((width - 8) / LETTER))
        for stage, names in steps.items()
    }
    heights = {stage: LINE * (len(text) + 1.9) for stage, text in lines.items()}
    tall = max(sum(heights[one] + GAP for one in column) for column in columns) + GAP
    boxes: dict[str, tuple[float, float]] = {}  # the upper left corners
    for place, column in enumerate(columns):
        above = (tall - sum(heights[stage] + GAP for stage in column) + GAP) / 2
        for stage in column:
            boxes[stage] = GAP + place * (width + GAP), above
            above += heights[stage] + GAP
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="10.5">'
    )
    yield STYLE
    yield '<rect class="ground" width="100%" height="100%" rx="8"/>'
    yield (
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker>'
    )
    for stage in (stage for column in columns for stage in column):
        left, above = boxes[stage]
        yield (
            f'<rect class="box" x="{left:.0f}" y="{above:.0f}" width="{width:.0f}" '
            f'height="{heights[stage]:.0f}" rx="5"/>'
        )
        for number, text in enumerate([stage, *lines[stage]], start=1):
            weight = ' font-weight="bold"' if number == 1 else ""
            y = above + LINE * (number + 0.2)
            yield f'<text x="{left + 6:.0f}" y="{y:.0f}"{weight}>{text}</text>'
        farther = {
            far for near in after[stage] for far in reached(near, after) - {near}
        }
        for near in sorted(after[stage] - farther):
            x, y = boxes[near]
            yield (
                f'<line x1="{left + width:.0f}" y1="{above + heights[stage] / 2:.0f}" '
                f'x2="{x:.0f}" y2="{y + heights[near] / 2:.0f}" marker-end="url(#tip)"/>'
            )
    yield "</svg>"


def in_columns(after: Followers) -> Iterator[list[str]]:
    """Yield the stages in columns: each is to the right of all that it takes something of."""
    sorter = TopologicalSorter(
        {one: {near for near in after if one in after[near]} for one in after}
    )
    sorter.prepare()
    while sorter.is_active():
        column = sorter.get_ready()
        sorter.done(*column)
        yield sorted(column)


def reached(stage: str, after: Followers) -> set[str]:
    """Return a stage and all that follow it."""
    return {stage}.union(*(reached(follower, after) for follower in after[stage]))


if __name__ == "__main__":
    main()
