"""The picture of README.md: the rules between the archives and the tables, by stage.

    python tools/rule_picture.py > docs/images/rules.svg

A stage is a file of rules/; it stands below those that it takes anything of. Arrows that follow
from others are left out.
"""

import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ["results/wmt14_en_de_word/bleu.txt", "paper"]
"""A headline number, and all tables and figures."""

WIDTH, GAP, LINE = 860, 26, 17  # pixels: of the picture, between boxes, and of a line of text
LETTER = 7.2  # pixels: of a letter of the steps, about

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
        for rule in re.findall(r"^(?:use )?rule (?:\w+ as )?(\w+)", path.read_text("utf-8"), re.M)
    }
    made = [arrow for arrow in arrows if stage_of[arrow[1]] != "targets"]  # which make nothing
    steps: dict[str, set[str]] = {}
    for rule in (rule for arrow in made for rule in arrow):
        steps.setdefault(stage_of[rule], set()).add(rule.replace("_", " "))
    after: Followers = {
        stage: {stage_of[second] for first, second in made if stage_of[first] == stage} - {stage}
        for stage in steps
    }
    rows = list(in_rows(after))
    boxes: dict[str, tuple[float, float, float, list[str]]] = {}
    top = float(GAP)
    for row in rows:
        width = (WIDTH - GAP * (len(row) + 1)) / len(row)
        lines = {
            stage: textwrap.wrap(", ".join(sorted(steps[stage])), int(width / LETTER))
            for stage in row
        }
        for place, stage in enumerate(row):
            boxes[stage] = (GAP + place * (width + GAP), top, width, lines[stage])
        top += LINE * (max(map(len, lines.values())) + 2) + GAP
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield (
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#444"/></marker>'
    )
    for stage in (stage for row in rows for stage in row):
        left, above, width, lines_of_stage = boxes[stage]
        bottom = above + LINE * (len(lines_of_stage) + 1.6)
        yield (
            f'<rect x="{left:.0f}" y="{above:.0f}" width="{width:.0f}" '
            f'height="{bottom - above:.0f}" rx="6" fill="#eef4fa" stroke="#0072b2"/>'
        )
        for number, text in enumerate([stage, *lines_of_stage], start=1):
            weight = ' font-weight="bold"' if number == 1 else ""
            yield f'<text x="{left + 10:.0f}" y="{above + LINE * number:.0f}"{weight}>{text}</text>'
        farther = {far for near in after[stage] for far in reached(near, after) - {near}}
        for near in sorted(after[stage] - farther):
            x, y, across, _ = boxes[near]
            yield (
                f'<line x1="{left + width / 2:.0f}" y1="{bottom:.0f}" x2="{x + across / 2:.0f}" '
                f'y2="{y:.0f}" stroke="#444" marker-end="url(#tip)"/>'
            )
    yield "</svg>"


def in_rows(after: Followers) -> Iterator[list[str]]:
    """Yield the stages in rows: each stands below all that it takes something of."""
    depth = {
        stage: max((len(path) for path in paths_to(stage, after)), default=0) for stage in after
    }
    for number in count():
        row = sorted(stage for stage in after if depth[stage] == number)
        if not row:
            return
        yield row


def paths_to(stage: str, after: Followers) -> Iterator[list[str]]:
    """Yield every way that leads to a stage, without the stage itself."""
    for before in sorted(after):
        if stage in after[before]:
            yield [before]
            yield from ([*path, before] for path in paths_to(before, after))


def reached(stage: str, after: Followers) -> set[str]:
    """Return a stage and all that follow it."""
    return {stage}.union(*(reached(follower, after) for follower in after[stage]))


if __name__ == "__main__":
    main()
