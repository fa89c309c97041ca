"""What ``make`` installs and where, by stand-ins for Python, pip and uv: nothing is fetched."""

import os
import platform
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

WITHOUT_CUDA = "--torch-backend cpu -c constraints.txt torch"

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
    assert torch.endswith(WITHOUT_CUDA)
    assert package == "-m pip install --quiet -c constraints.txt -e .[workflow,dev]"
    assert (tmp_path / "venv/.installed").is_file()


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (["TORCH=cuda"], ""),
        (["TORCH=cpu", "PIP_FLAGS=--pre"], ""),
        (["TORCH=cpu"], "global.index-url='https://example.org/simple'"),
        (["TORCH=cpu"], ":env:.find-links='/opt/wheels'"),
    ],
)
def test_pip_alone_is_asked_where_cuda_or_another_place_is_named(
    root: Path, tmp_path: Path, arguments: list[str], settings: str
) -> None:
    done = make(root, tmp_path, *arguments, PIP_SETTINGS=settings)
    assert done.returncode == 0, done.stderr
    (package,) = installs(tmp_path)
    assert package.endswith("-e .[workflow,dev]")


def test_pip_installs_what_it_has_where_uv_cannot_fetch(
    root: Path, tmp_path: Path
) -> None:
    done = make(root, tmp_path, "TORCH=cpu", UV_FAILS="yes")
    assert done.returncode == 0, done.stderr
    assert "make: no build of torch without CUDA was found" in done.stderr
    assert installs(tmp_path)[-1].endswith("-e .[workflow,dev]")


@pytest.mark.parametrize("driver", [True, False])
def test_a_driver_decides_where_nothing_is_said(
    root: Path, tmp_path: Path, driver: bool
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in (
        "make",
        "sh",
        "bash",
        "uname",
        "grep",
        "basename",
        "mkdir",
        "cp",
        "rm",
        "touch",
    ):
        place = subprocess.check_output(["which", name], text=True).strip()
        (programs / name).symlink_to(place)
    if driver:
        (programs / "nvidia-smi").symlink_to("/bin/true")
    done = make(root, tmp_path, PATH=str(programs))
    assert done.returncode == 0, done.stderr
    assert (len(installs(tmp_path)) == 1) == driver


def test_another_torch_is_refused(root: Path, tmp_path: Path) -> None:
    done = make(root, tmp_path, "TORCH=gpu")
    assert done.returncode != 0
    assert "TORCH=gpu: expected cpu or cuda" in done.stderr


def test_extras_are_the_callers(root: Path, tmp_path: Path) -> None:
    make(root, tmp_path, "TORCH=cuda", "EXTRAS=workflow")
    assert installs(tmp_path)[-1].endswith("-e .[workflow]")


def test_an_environment_made_by_hand_is_left_alone(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "venv/bin/python"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    done = make(root, tmp_path, "TORCH=cuda")
    assert done.returncode != 0
    assert (
        f"make: {tmp_path}/venv is there, and make has not made it: move it away"
        in done.stderr
    )
    assert own.read_text() == "mine"
    assert not (tmp_path / "installs").exists()


def test_an_install_that_was_cut_short_is_started_over(
    root: Path, tmp_path: Path
) -> None:
    make(root, tmp_path, "TORCH=cuda")
    installed = tmp_path / "venv/.installed"
    installed.unlink()
    assert make(root, tmp_path, "TORCH=cuda").returncode == 0
    assert installed.is_file()
    assert len(installs(tmp_path)) == 2


def test_so_is_one_that_was_cut_short_while_its_environment_was_made(
    root: Path, tmp_path: Path
) -> None:
    assert make(root, tmp_path, "TORCH=cuda", VENV_FAILS="1").returncode != 0
    assert make(root, tmp_path, "TORCH=cuda").returncode == 0
    assert (tmp_path / "venv/.installed").is_file()


def test_where_uv_may_keep_nothing_it_keeps_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (
        make(root, tmp_path, "TORCH=cpu", XDG_CACHE_HOME=f"{tmp_path}/file").returncode
        == 0
    )
    assert installs(tmp_path)[1].startswith("uv pip install --no-cache ")


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
