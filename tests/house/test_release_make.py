"""What ``make`` installs and where, by stand-ins for Python, pip and uv: nothing is fetched."""

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# Makes an environment whose programs are this one, tells pip's settings, writes down all else.
_STAND_IN = """#!/bin/sh
case "$(basename "$0") $*" in
    *"-m venv "*)
        mkdir -p "$3/bin"; cp "$0" "$3/bin/uv"; [ -z "$VENV_FAILS" ] || exit 1
        cp "$0" "$3/bin/python" ;;
    *"-m pip config list") echo "$PIP_SETTINGS" ;;
    *" -c import"*) ;;
    uv*) echo "uv $*" >> "$INSTALLS"; [ -z "$UV_FAILS" ] ;;
    *) echo "$*" >> "$INSTALLS" ;;
esac
"""

PROGRAMS = "make sh bash uname grep basename mkdir cp rm touch"

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux", reason="pip's torch has no CUDA here"
)


Make = Callable[..., tuple[list[str], str]]


def inherited() -> dict[str, str]:
    """The environment without what `make test` itself and its caller hand down."""
    outer = ("PIP_", "MAKE", "MFLAGS", "TORCH", "EXTRAS")
    return {
        name: text for name, text in os.environ.items() if not name.startswith(outer)
    }


@pytest.fixture
def make(root: Path, tmp_path: Path) -> Make:
    """Run make; return what was asked of pip and uv so far, in order, and the errors."""
    stand_in = tmp_path / "python"
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    installs = tmp_path / "installs"
    installs.touch()

    def run(
        *arguments: str, fails: bool = False, **environment: str
    ) -> tuple[list[str], str]:
        own = {"INSTALLS": str(installs), "PIP_SETTINGS": ""}
        stated = [f"VENV={tmp_path}/venv", f"PYTHON={stand_in}", *arguments]
        done = subprocess.run(
            ["make", f"{tmp_path}/venv/.installed", *stated],
            cwd=root,
            env=inherited() | own | environment,
            capture_output=True,
            text=True,
        )
        assert bool(done.returncode) == fails, done.stderr
        assert (tmp_path / "venv/.installed").is_file() != fails
        return installs.read_text().splitlines(), done.stderr

    return run


def test_torch_without_cuda_comes_first_and_an_install_cut_short_starts_over(
    make: Make, tmp_path: Path
) -> None:
    make("TORCH=cpu", fails=True, VENV_FAILS="1")
    (uv, torch, package), _ = make("TORCH=cpu")
    assert uv == "-m pip install --quiet -c constraints.txt uv"
    assert torch.endswith("--torch-backend cpu -c constraints.txt torch")
    assert package == "-m pip install --quiet -c constraints.txt -e .[workflow,dev]"
    (tmp_path / "venv/.installed").unlink()
    assert len(make("TORCH=cuda")[0]) == 4


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("TORCH=cuda EXTRAS=own", ""),
        ("TORCH=cpu EXTRAS=own PIP_FLAGS=--pre", ""),
        ("TORCH=cpu EXTRAS=own", ":env:.find-links='/opt/wheels'"),
    ],
)
def test_pip_alone_is_asked_where_cuda_or_another_place_is_named(
    make: Make, arguments: str, settings: str
) -> None:
    (package,), _ = make(*arguments.split(), PIP_SETTINGS=settings)
    assert package.endswith("-e .[own]")


def test_pip_installs_what_it_has_where_uv_cannot_fetch_or_keep(
    make: Make, tmp_path: Path
) -> None:
    cache = f"{tmp_path}/python/cache"  # below a file
    installs, said = make("TORCH=cpu", UV_FAILS="yes", XDG_CACHE_HOME=cache)
    assert "make: no build of torch without CUDA was found" in said
    assert installs[1].startswith("uv pip install --no-cache ")
    assert installs[-1].endswith("-e .[workflow,dev]")


@pytest.mark.parametrize("driver", [True, False])
def test_a_driver_decides_where_nothing_is_said(
    make: Make, tmp_path: Path, driver: bool
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS.split():
        (programs / name).symlink_to(str(shutil.which(name)))
    if driver:
        (programs / "nvidia-smi").symlink_to("/bin/true")
    installs, _ = make(PATH=str(programs))
    assert (len(installs) == 1) == driver


def test_what_cannot_be_installed_is_said(make: Make, tmp_path: Path) -> None:
    assert "TORCH=gpu: expected cpu or cuda" in make("TORCH=gpu", fails=True)[1]
    own = tmp_path / "venv/bin/python"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    installs, said = make("TORCH=cuda", fails=True)
    assert f"make: {tmp_path}/venv is there, and make has not made it" in said
    assert own.read_text() == "mine"
    assert installs == []


def test_the_environments_programs_are_found_in_a_folder_of_any_name(
    root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / '{task} 50% #1, it\'s $HOME "a" `b` \\c'
    program = folder / ".venv/bin/snakemake"
    program.parent.mkdir(parents=True)
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / file, folder)
    program.write_text('#!/bin/sh\necho "this one: $*"; exit 1\n')
    program.chmod(0o755)
    (folder / ".venv/.installed").touch()
    done = subprocess.run(
        ["make", "demo"], cwd=folder, env=inherited(), capture_output=True, text=True
    )
    assert done.stdout.startswith("this one: demo\n"), done.stderr


def test_clean_keeps_an_environment_made_by_hand(root: Path, tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    command = ["make", "-f", str(root / "Makefile"), "clean", "VENV=venv"]
    said = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert "venv is kept: make has not made it" in said
    assert (tmp_path / "venv").is_dir()
    (tmp_path / "venv/.made_by_make").touch()
    subprocess.check_output(command, cwd=tmp_path)
    assert not (tmp_path / "venv").exists()
