"""This checkout's package, and the process that runs the workflow; before the configuration is read."""

import sys
from pathlib import Path

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
