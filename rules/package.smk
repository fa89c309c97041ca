"""This checkout's package, and the process that runs the workflow; before the configuration is read."""

import sys
from pathlib import Path

from snakemake.utils import available_cpu_count

ROOT = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(ROOT / "src"))  # installed or not

from convs2s.config.load import check_option_files
from convs2s.pipeline.process import (
    failures_in_one_line,
    provide_environment,
    release_stale_locks,
)

provide_environment()
this_process_is_alive = release_stale_locks(Path(".snakemake"))

with failures_in_one_line():
    check_option_files(Path.cwd())  # Snakemake's own message would not name the file

# All cores of this machine, where no number is asked for. `cores: all` in profiles/default would do,
# but Snakemake reads that profile beside `--profile profiles/slurm` too, and would cut the threads of
# a cluster's jobs to the cores of this machine. A run on a cluster always has `nodes` (--jobs).
if workflow.resource_settings.cores is None and workflow.resource_settings.nodes is None:
    workflow.resource_settings.cores = available_cpu_count()
    workflow.register_resource("_cores", workflow.resource_settings.cores)
