"""What ``make`` installs and where, by stand-ins for Python, pip and uv: nothing is fetched."""

import os
import platform
import shutil
import subprocess
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

OUTER = ("PIP_", "MAKE", "MFLAGS", "TORCH", "EXTRAS")
"""How the variables begin that ``make test`` itself and its caller hand down."""

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux", reason="pip's torch has no CUDA here"
)


def make(
    root: Path, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    stand_in = folder / "python"
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    variables = {
        name: text for name, text in os.environ.items() if not name.startswith(OUTER)
    }
    stated = [f"VENV={folder}/venv", f"PYTHON={stand_in}", *arguments]
    return subprocess.run(
        ["make", f"{folder}/venv/.installed", *stated],
        cwd=root,
        env={**variables, "INSTALLS": str(folder / "installs"), "PIP_SETTINGS": ""}
        | environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def installs(folder: Path) -> list[str]:
    """Return what was asked of pip and uv, in order."""
    return (folder / "installs").read_text("utf-8").splitlines()


def test_torch_without_cuda_comes_first(root: Path, tmp_path: Path) -> None:
    done = make(root, tmp_path, "TORCH=cpu")
    assert done.returncode == 0, done.stderr
    uv, torch, package = installs(tmp_path)
    assert uv == "-m pip install --quiet -c constraints.txt uv"
    assert torch.endswith("--torch-backend cpu -c constraints.txt torch")
    assert package == "-m pip install --quiet -c constraints.txt -e .[workflow,dev]"
    installed = tmp_path / "venv/.installed"
    # An install that was cut short is started over.
    installed.unlink()
    assert make(root, tmp_path, "TORCH=cuda").returncode == 0
    assert installed.is_file()
    assert len(installs(tmp_path)) == 4


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        ("TORCH=cuda EXTRAS=own", ""),
        ("TORCH=cpu EXTRAS=own PIP_FLAGS=--pre", ""),
        ("TORCH=cpu EXTRAS=own", "global.index-url='https://example.org/simple'"),
        ("TORCH=cpu EXTRAS=own", ":env:.find-links='/opt/wheels'"),
    ],
)
def test_pip_alone_is_asked_where_cuda_or_another_place_is_named(
    root: Path, tmp_path: Path, arguments: str, settings: str
) -> None:
    done = make(root, tmp_path, *arguments.split(), PIP_SETTINGS=settings)
    assert done.returncode == 0, done.stderr
    (package,) = installs(tmp_path)
    assert package.endswith("-e .[own]")


def test_pip_installs_what_it_has_where_uv_cannot_fetch_or_keep(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    cache = f"{tmp_path}/file"
    done = make(root, tmp_path, "TORCH=cpu", UV_FAILS="yes", XDG_CACHE_HOME=cache)
    assert done.returncode == 0, done.stderr
    assert "make: no build of torch without CUDA was found" in done.stderr
    assert installs(tmp_path)[1].startswith("uv pip install --no-cache ")
    assert installs(tmp_path)[-1].endswith("-e .[workflow,dev]")


@pytest.mark.parametrize("driver", [True, False])
def test_a_driver_decides_where_nothing_is_said(
    root: Path, tmp_path: Path, driver: bool
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in PROGRAMS.split():
        (programs / name).symlink_to(str(shutil.which(name)))
    if driver:
        (programs / "nvidia-smi").symlink_to("/bin/true")
    done = make(root, tmp_path, PATH=str(programs))
    assert done.returncode == 0, done.stderr
    assert (len(installs(tmp_path)) == 1) == driver


def test_another_torch_is_refused(root: Path, tmp_path: Path) -> None:
    done = make(root, tmp_path, "TORCH=gpu")
    assert done.returncode != 0
    assert "TORCH=gpu: expected cpu or cuda" in done.stderr


def test_an_environment_made_by_hand_is_left_alone(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "venv/bin/python"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    done = make(root, tmp_path, "TORCH=cuda")
    assert done.returncode != 0
    assert f"make: {tmp_path}/venv is there, and make has not made it" in done.stderr
    assert own.read_text() == "mine"
    assert not (tmp_path / "installs").exists()


def test_an_environment_that_was_cut_short_is_made_anew(
    root: Path, tmp_path: Path
) -> None:
    assert make(root, tmp_path, "TORCH=cuda", VENV_FAILS="1").returncode != 0
    assert make(root, tmp_path, "TORCH=cuda").returncode == 0
    assert (tmp_path / "venv/.installed").is_file()


def test_clean_keeps_an_environment_made_by_hand(root: Path, tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    command = ["make", "-f", str(root / "Makefile"), "clean", "VENV=venv"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True
    )
    assert "venv is kept: make has not made it" in done.stdout
    assert (tmp_path / "venv").is_dir()
    (tmp_path / "venv/.made_by_make").touch()
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert not (tmp_path / "venv").exists()
