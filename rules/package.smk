"""The workflow's folder and its package, before anything of it is imported."""

import os
import runpy
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

# The version of the package that these rules are written for: its own, which a test compares.
PACKAGE_VERSION = "0.1.0"

# The folder of the workflow. From a git source Snakemake fetches rules and scripts alone: the
# package is then the one that is installed, and config/ is in the folder of the run
# (docs/own_workflow.md).
ROOT = Path(str(workflow.current_basedir)).parent
IS_FROM_GIT = not ROOT.is_dir()
if (ROOT / "src/convs2s").is_dir():
    sys.path.insert(0, str(ROOT / "src"))


def require_package():
    """End with one line where the package is missing, or it or Snakemake has another version."""
    # A folder of that name that is no package, such as a clone's, has no origin.
    file = getattr(find_spec("convs2s"), "origin", None)
    version = runpy.run_path(file)["__version__"] if file else None
    if version != PACKAGE_VERSION:
        found = f"{Path(file).parent} is {version}" if file else f"there is none in {ROOT / 'src'}"
        sys.exit(
            f"error: this workflow needs the Python package convs2s {PACKAGE_VERSION}, but {found}: "
            "install that version"
        )
    if int(version_of("snakemake").partition(".")[0]) > 9:
        sys.exit(f"error: this workflow needs Snakemake 9, not {version_of('snakemake')}")
    if IS_FROM_GIT and not Path("config/scales").is_dir():
        sys.exit(
            "error: this workflow is read from git, which brings no settings: copy its folder "
            "config/ here, as snakedeploy does (docs/own_workflow.md)"
        )


require_package()

# Whether another workflow includes this one.
IS_MODULE = Path(workflow.basedir).resolve() not in (ROOT.resolve(), ROOT.resolve() / "workflow")
