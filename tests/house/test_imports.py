"""Which part of the package may know of which: docs/structure.md states this order."""

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.package import import_graph, modules, reachable

LAYERS = (
    ("errors",),
    ("files",),
    ("config",),
    ("layout", "pipeline.living"),
    ("pipeline.tries",),
    ("pipeline.job",),
    ("text", "scoring", "download", "demo", "manifest", "devices", "pages"),
    ("data",),
    ("models",),
    ("model_file",),
    ("decoding",),
    ("training",),
    ("paper", "interop", "mirror", "publish", "api"),
    ("costs",),
    ("pipeline", "serving"),
    ("cli",),
    ("__main__",),
)
"""From the bottom up: a part imports those of its own layer's name, and of the layers below."""

CORE = {
    "config",
    "data",
    "decoding",
    "download",
    "files",
    "models",
    "scoring",
    "text",
    "training",
}
ROOMS = {
    "api",
    "cli",
    "costs",
    "demo",
    "interop",
    "mirror",
    "pages",
    "paper",
    "publish",
    "serving",
}

MOST_ROOT_MODULES = 7

RUN_A_NETWORK = {
    "attend_to_example.py",
    "decode_test_set.py",
    "import_released.py",
    "list_n_best.py",
    "measure_perplexity.py",
    "plot_attention.py",
    "project_phrases.py",
    "score_n_best.py",
    "take_codes.py",  # out of a model file, as the next
    "take_vocabulary.py",
    "time_decoding.py",
}


def part_of(module: str) -> str:
    """Return the part of the package that a module belongs to, by the names of ``LAYERS``."""
    inside = module.removeprefix("convs2s").removeprefix(".")
    named = [name for layer in LAYERS for name in layer]
    fitting = [
        name for name in named if inside == name or inside.startswith(f"{name}.")
    ]
    return max(fitting, key=len, default="")


def room_of(module: str) -> str:
    """Return the folder below the package that a module belongs to, or its own name."""
    return module.removeprefix("convs2s").removeprefix(".").partition(".")[0]


@pytest.fixture(scope="module")
def graph(root: Path) -> dict[str, set[str]]:
    return import_graph(root)


def test_imports_point_one_way(graph: dict[str, set[str]]) -> None:
    level = {name: number for number, layer in enumerate(LAYERS) for name in layer} | {
        "": 0
    }
    for module, imported in graph.items():
        for other in imported:
            mine, theirs = part_of(module), part_of(other)
            assert mine == theirs or level[theirs] < level[mine], (
                f"{module} imports {other}"
            )


def test_the_core_imports_no_room(graph: dict[str, set[str]]) -> None:
    """From an archive to a score nothing is needed of what stands around it."""
    for module, imported in graph.items():
        if room_of(module) in CORE:
            assert not {other for other in imported if room_of(other) in ROOMS}, module


def test_nothing_imports_itself(graph: dict[str, set[str]]) -> None:
    TopologicalSorter(graph).prepare()  # an error names the circle


def test_the_root_of_the_package_is_small(root: Path) -> None:
    found = sorted(path.name for path in (root / "src/convs2s").glob("*.py"))
    assert len(found) <= MOST_ROOT_MODULES, found


def test_every_package_says_what_it_is_and_no_more(root: Path) -> None:
    for path in (root / "src/convs2s").rglob("*/__init__.py"):
        assert re.fullmatch(r'""".+?"""\n', path.read_text("utf-8"), re.DOTALL), path


def test_package_knows_nothing_of_snakemake(root: Path) -> None:
    for path in modules(root).values():
        assert not re.search(
            r"^\s*(import|from) snakemake\b", path.read_text("utf-8"), re.M
        ), path


def test_preparation_and_status_load_without_torch(root: Path) -> None:
    packages = ("config", "text", "scoring", "download", "demo", "data")
    prefixes = tuple(f"convs2s.{package}." for package in packages)
    names = [name for name in modules(root) if name.startswith(prefixes)]
    names.append("convs2s.pipeline.status_view")
    assert first_to_load(root, ["torch"], [f"import {name}" for name in names]) == ""


STATEMENT = re.compile(r"^from convs2s\S* import (?:\([^)]*\)|[^\n(]*)", re.MULTILINE)


def test_planning_loads_no_library_of_the_jobs(root: Path) -> None:
    texts = [path.read_text("utf-8") for path in root.glob("rules/*.smk")]
    lines = [line for text in texts for line in STATEMENT.findall(text)]
    assert first_to_load(root, ["torch", "numpy", "zstandard", "xopen"], lines) == ""


def test_jobs_without_a_network_load_no_torch(root: Path) -> None:
    scripts = (root / "workflow/scripts").glob("*.py")
    texts = [
        path.read_text("utf-8") for path in scripts if path.name not in RUN_A_NETWORK
    ]
    lines = [line for text in texts for line in STATEMENT.findall(text)]
    assert len(lines) > 30
    assert first_to_load(root, ["torch"], lines) == ""


def first_to_load(root: Path, libraries: list[str], statements: list[str]) -> str:
    """Return the first of these statements that has a new process load a library, and which."""
    program = f"""
import sys
for statement in {statements!r}:
    exec(statement)
    loaded = sys.modules.keys() & {libraries!r}
    if loaded:
        print(statement, loaded)
        break
"""
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=True
    ).stdout


def test_only_what_builds_a_network_asks_which_it_is(root: Path) -> None:
    """Its class says what else is asked of it (docs/models.md)."""
    question = re.compile(
        r"""kind [!=]= ["'](?:lstm|convs2s)|isinstance\([^)]*(?:Lstm|ConvS2S)\w*\)"""
    )
    sources = [*root.glob("src/convs2s/**/*.py"), *root.glob("rules/*.smk")]
    asking = {path.name for path in sources if question.search(path.read_text("utf-8"))}
    assert asking == {"build.py", "recorded_ensemble.py"}


def test_job_wrappers_import_next_to_nothing(graph: dict[str, set[str]]) -> None:
    assert reachable(graph, "convs2s.pipeline.job") == {
        "convs2s.pipeline.job",
        "convs2s.pipeline.living",
        "convs2s.pipeline.tries",
        "convs2s.files.checksums",
        "convs2s.files.locks",
        "convs2s.errors",
    }
