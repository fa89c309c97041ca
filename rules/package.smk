"""The folder of the workflow and its Python package, found before any module of it is imported."""

import os
import runpy
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

# The version of the package that these rules need. A test compares it with the package here.
PACKAGE_VERSION = "0.1.0"

# The folder of the workflow. From a git source Snakemake fetches only rules and scripts. The
# package must then be installed, and config/ must be in the folder of the run
# (docs/own_workflow.md).
ROOT = Path(str(workflow.current_basedir)).parent
IS_FROM_GIT = not ROOT.is_dir()
if (ROOT / "src/convs2s").is_dir():
    sys.path.insert(0, str(ROOT / "src"))


def require_package():
    """Exit with a message in one line if something is missing or has another version.

    These are the package, Snakemake, and the folder config/ of a workflow from git.
    """
    # A folder `convs2s` that is not a package, such as one with a clone, has no origin.
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

# Whether another workflow uses this one as a module.
IS_MODULE = Path(workflow.basedir).resolve() not in (ROOT.resolve(), ROOT.resolve() / "workflow")
