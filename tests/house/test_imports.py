"""Which part of the package may know of which: docs/structure.md states this order."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

from tests.house.package import import_graph, modules, reachable

LAYERS = (
    "errors",
    "files",
    "config",
    "layout pipeline.living",
    "pipeline.made pipeline.tries",
    "pipeline.job",
    "text scoring download manifest devices",
    "data",
    "models",
    "model_file",
    "decoding",
    "training",
    "demo pages",
    "paper interop mirror publish api documents",
    "costs",
    "pipeline serving",
    "cli",
    "__main__",
)
"""From the bottom up: a part imports those of its own layer's name, and of the layers below."""

LEVELS = {part: level for level, parts in enumerate(LAYERS) for part in parts.split()}

RUN_A_NETWORK = {
    "attend_to_example",
    "import_released",
    "list_n_best",
    "measure_perplexity",
    "plot_attention",
    "project_phrases",
    "score_n_best",
    "take_codes",  # out of a model file, as the next
    "take_vocabulary",
}


def part_of(module: str) -> str:
    """Return the part of the package that a module belongs to, by the names of ``LAYERS``."""
    inside = f"{module.removeprefix('convs2s').removeprefix('.')}."
    fitting = [part for part in LEVELS if inside.startswith(f"{part}.")]
    return max(fitting, key=len, default="errors")


def test_imports_point_one_way_and_what_runs_a_job_imports_next_to_nothing(
    root: Path,
) -> None:
    graph = import_graph(root)
    for module, imported in graph.items():
        mine = part_of(module)
        for theirs in map(part_of, imported):
            assert mine == theirs or LEVELS[theirs] < LEVELS[mine], (module, theirs)
    TopologicalSorter(graph).prepare()  # an error names the circle
    job = {f"convs2s.pipeline.{part}" for part in ("job", "living", "made", "tries")}
    files = {f"convs2s.files.{part}" for part in ("checksums", "locks", "notes")}
    used = {"convs2s.errors", *files}
    assert reachable(graph, "convs2s.pipeline.job") == job | used


PREPARATION = re.compile(r"convs2s\.(?:config|text|scoring|download|demo|data)\.")
STATEMENT = re.compile(r"^from convs2s\S* import (?:\([^)]*\)|[^\n(]*)", re.MULTILINE)


def imports_of(files: Iterable[Path]) -> list[str]:
    return [one for path in files for one in STATEMENT.findall(path.read_text("utf-8"))]


# Each list of statements loads none of its libraries; a line for each that does.
LOADED = """
import json, sys
for statements, libraries in json.load(sys.stdin):
    for statement in statements:
        exec(statement)
        loaded = sys.modules.keys() & set(libraries)
        if loaded:
            print(statement, loaded)
"""


def test_plans_and_jobs_without_a_network_load_no_torch(root: Path) -> None:
    plans = imports_of(root.glob("rules/*.smk"))
    scripts = (root / "workflow/scripts").glob("*.py")
    jobs = imports_of(path for path in scripts if path.stem not in RUN_A_NETWORK)
    names = [name for name in modules(root) if PREPARATION.match(name)]
    others = ("pipeline.status_view", "api.translator", "serving.server")
    names += [f"convs2s.{name}" for name in others]
    assert min(map(len, (plans, jobs, names))) > 10
    without_torch = jobs + [f"import {name}" for name in names]
    checks = [
        (plans, ["torch", "numpy", "zstandard", "xopen"]),
        (without_torch, ["torch"]),
    ]
    command = [sys.executable, "-c", LOADED]
    said = subprocess.check_output(
        command, cwd=root, input=json.dumps(checks), text=True
    )
    assert said == ""


def test_only_what_builds_a_network_asks_which_it_is(root: Path) -> None:
    """Its class says what else is asked of it (docs/models.md)."""
    question = re.compile(
        r"""kind [!=]= ["'](?:lstm|convs2s)|isinstance\([^)]*(?:Lstm|ConvS2S)\w*\)"""
    )
    sources = [*modules(root).values(), *root.glob("rules/*.smk")]
    asking = {path.name for path in sources if question.search(path.read_text("utf-8"))}
    assert asking == {"build.py", "recorded_ensemble.py"}
