"""The workflow's files, its package, and the process that runs it; before the configuration is read.

The workflow is the main one, or a module of another: from a folder, or from a git repository.
"""

import gc
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

from snakemake.jobs import Job
from snakemake.persistence import PersistenceBase
from snakemake.utils import available_cpu_count

# A plan of a thousand jobs is millions of objects that all stay: looking among them for garbage as
# often as Python does by default takes a quarter of the time.
gc.freeze()
gc.set_threshold(200_000, 50, 1000)

# The version of the package that these rules are written for: its own, which a test compares.
PACKAGE_VERSION = "0.1.0"


include: "from_git.smk"


if IS_FROM_GIT:
    ROOT = folder_from_git(workflow.current_basedir)
else:
    ROOT = Path(str(workflow.current_basedir)).parent
IS_MODULE = Path(workflow.basedir).resolve() not in (ROOT.resolve(), ROOT.resolve() / "workflow")


def require_package():
    """End with one line where an import would find no package, or one of another version."""
    # A folder of that name that is no package, such as a clone's, has no origin.
    file = getattr(find_spec("convs2s"), "origin", None)
    version = runpy.run_path(file)["__version__"] if file else None
    if version != PACKAGE_VERSION:
        need = f"error: this workflow needs the Python package convs2s {PACKAGE_VERSION}"
        place = (
            f"but {Path(file).parent} is {version}" if file else f"in {ROOT / 'src'} or installed"
        )
        sys.exit(f"{need}, {place}: install it, or deploy all of that version's repository")


# Jobs run the workflow's own package; the user's `convs2s translate` the one that is installed.
if IS_FROM_GIT and getattr(find_spec("convs2s"), "origin", None):
    require_package()
if (ROOT / "src/convs2s").is_dir():
    sys.path.insert(0, str(ROOT / "src"))
require_package()

from convs2s.config.load import check_option_files
from convs2s.config.yaml_file import option_files
from convs2s.pipeline.executors import count_tries, keep_unanswered_jobs, record_no_failures
from convs2s.pipeline.process import (
    failures_in_one_line,
    package_alone,
    provide_environment,
    release_stale_locks,
)
from convs2s.pipeline.terminal import DEAF_TO_INTERRUPTS, outlive_reader, shorten_messages

outlive_reader(logger)
record_no_failures(Job, PersistenceBase)

if not IS_MODULE:  # what another workflow locks and configures is its own affair
    with failures_in_one_line():
        this_process_is_alive = release_stale_locks(Path(".snakemake"))
        check_option_files(Path.cwd())  # Snakemake's own message would not name the file
provide_environment(package_alone(Path(".snakemake/convs2s/installed")))

# All cores of this machine, where no number is asked for. `cores: all` in profiles/default would do,
# but Snakemake reads that profile beside `--profile profiles/slurm` too, and would cut the threads of
# a cluster's jobs to the cores of this machine. A run on a cluster always has `nodes` (--jobs).
if workflow.resource_settings.cores is None and workflow.resource_settings.nodes is None:
    workflow.resource_settings.cores = available_cpu_count()
    workflow.register_resource("_cores", workflow.resource_settings.cores)


onstart:
    shorten_messages(logger)
    shell.prefix(DEAF_TO_INTERRUPTS)
    count_tries(workflow.scheduler, "train_model")
    keep_unanswered_jobs()
    # Notes of local copies outlive them, and another machine may have stored other files since.
    for note in workflow.storage_settings.local_storage_prefix.rglob(".*.sha256"):
        note.unlink()
