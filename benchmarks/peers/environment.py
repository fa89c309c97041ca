"""An environment for each peer, so that it has the packages that suit it and none of ours."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ENVIRONMENTS = Path(__file__).resolve().parents[2] / "build" / "peers"


def enter(
    name: str,
    requirements: tuple[str, ...],
    *,
    first: tuple[str, ...] = (),
    torch: bool = False,
) -> None:
    """Go on as the same process in the peer's own Python; make its environment if need be.

    Args:
        name: of the peer, and of its environment's folder.
        requirements: pinned packages, all of them: pip looks for no dependencies.
        first: packages that the others are built or installed with.
        torch: whether it finds torch, and what torch needs, among this project's packages, so
            that both sides compute with the same build.

    Raises:
        SystemExit: pip could not install it; one line says where its log is.
    """
    folder = ENVIRONMENTS / name
    if Path(sys.prefix) == folder:
        return
    packages = sysconfig.get_path("purelib") if torch else ""
    stated = "\n".join((sys.version, *first, *requirements, packages))
    stamp = folder / "installed.txt"
    if not stamp.is_file() or stamp.read_text("utf-8") != stated:
        _make(folder, [first, requirements])
        if torch:
            version = f"python{sys.version_info.major}.{sys.version_info.minor}"
            path = folder / "lib" / version / "site-packages" / "zz_this_project.pth"
            path.write_text(packages + "\n", "utf-8")
        stamp.write_text(stated, "utf-8")
    python = str(folder / "bin" / "python")
    # For sample.py.
    own = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    os.execve(python, [python, *sys.argv], own)


def _make(folder: Path, steps: list[tuple[str, ...]]) -> None:
    """Make the environment anew; what pip says goes to a log beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.with_suffix(".log")
    print(f"{folder.name}: installing into {folder}", file=sys.stderr, flush=True)
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--no-deps"]
    install += os.environ.get("PIP_FLAGS", "").split()
    with log.open("w", encoding="utf-8") as stream:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            *([*install, *step] for step in steps if step),
        ):
            if subprocess.run(
                command, stdout=stream, stderr=stream, check=False
            ).returncode:
                sys.exit(
                    f"{folder.name} could not be installed: see build/peers/{log.name}"
                )
