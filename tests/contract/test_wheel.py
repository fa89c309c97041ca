"""The wheel alone: what a user has who copies it and a model file to another machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s import __version__
from convs2s.cli.main import EXTRAS
from tests.support.bare_python import closure, run_bare
from tests.support.wheel import REPOSITORY_URL, Release, build

DEMO = (
    "from pathlib import Path; from convs2s.demo.corpus import write_demo_corpus; "
    "write_demo_corpus(Path())"
)


@pytest.fixture(scope="module")
def release(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Release:
    return build(root, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def python(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel and what it requires, and nothing else."""
    return release.install(tmp_path_factory.mktemp("wheel") / "environment")


def test_the_wheel_does_not_need_the_workflow(release: Release) -> None:
    packages = closure(release.requirements())
    assert {"torch", "sacremoses", "subword-nmt", "pydantic"} <= packages
    assert not packages & {"snakemake", "pytest"}


def test_the_wheel_has_every_file_of_the_package(root: Path, release: Release) -> None:
    source = root / "src"
    files = (path for path in (source / "convs2s").rglob("*") if path.is_file())
    stated = {str(path.relative_to(source)) for path in files if path.suffix != ".pyc"}
    assert stated <= release.members()
    assert stated <= {name.removeprefix("src/") for name in release.source_members()}
    assert "LICENSE" in release.source_members()


def test_the_wheel_says_whose_it_is_and_its_links_have_addresses(
    release: Release,
) -> None:
    stated = release.metadata()
    assert stated["Version"] == __version__
    assert release.wheel.name == f"convs2s-{__version__}-py3-none-any.whl"
    assert release.sdist.name == f"convs2s-{__version__}.tar.gz"
    links = dict(url.split(", ") for url in stated.get_all("Project-URL", []))
    assert links["Source"] == REPOSITORY_URL
    assert stated["License-Expression"] == "MIT"
    assert stated["Author"]
    assert "Typing :: Typed" in stated.get_all("Classifier", [])
    read = re.findall(r"\]\(([^)]+)\)", str(stated.get_payload()))
    assert f"{REPOSITORY_URL}/blob/v{stated['Version']}/docs/install.md" in read
    assert f"{REPOSITORY_URL}/raw/v{stated['Version']}/docs/images/rules.svg" in read
    assert [link for link in read if not link.startswith(("https://", "#"))] == []


def test_a_model_file_and_the_wheel_translate(
    python: Path, model: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "model.safetensors"
    copied.write_bytes(model.read_bytes())
    command = str(python.with_name("convs2s"))
    asked = ["translate", str(copied), "--threads", "1", "--minimum-length", "3"]
    done = run_bare(python, command, *asked, folder=tmp_path, text="w1 w2\n\nw3\n")
    assert done.returncode == 0, done.stderr
    here = [sys.executable, "-m", "convs2s", *asked]
    expected = subprocess.check_output(here, input="w1 w2\n\nw3\n", text=True)
    assert done.stdout.split()
    assert done.stdout == expected
    card = run_bare(python, command, "card", str(copied), folder=tmp_path)
    assert "- seed: 1\n" in card.stdout


@pytest.mark.parametrize(
    ("asked", "module", "extra"),
    [
        ("results ledger.jsonl --scale multi30k --output page.md", "pandas", "report"),
        ("status .", "rich", "train"),
        ("serve model.safetensors", "uvicorn", "serve"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(
    python: Path, tmp_path: Path, asked: str, module: str, extra: str
) -> None:
    command = str(python.with_name("convs2s"))
    done = run_bare(python, command, *asked.split(), folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"convs2s: error: {module} is not installed: ")
    assert f"pip install 'convs2s[{extra}]'" in done.stderr


def test_extras_bring_the_modules_that_commands_name(release: Release) -> None:
    required = release.metadata().get_all("Requires-Dist", [])
    for extra, modules in EXTRAS.items():
        brought = " ".join(
            line for line in required if line.endswith(f'extra == "{extra}"')
        )
        assert [name for name in modules if name not in brought.replace("-", "_")] == []


@pytest.mark.parametrize(
    ("command", "made", "lines"),
    [("mirror m", "m/SHA256SUMS", 40), (f"-c {DEMO}", "train.en", 11_999)],
)
def test_the_wheel_has_the_data_of_the_package(
    python: Path, tmp_path: Path, command: str, made: str, lines: int
) -> None:
    program = [] if command[0] == "-" else [str(python.with_name("convs2s"))]
    done = run_bare(python, *program, *command.split(" ", 1), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / made).read_text("utf-8").count("\n") > lines
