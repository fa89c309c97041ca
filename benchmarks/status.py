"""What a look at the status of a thousand trainings takes, beside reading all their files.

    python benchmarks/status.py [RUNS]

Half of them are finished, a quarter runs (its lock is held), the others were killed; each has five
logs of other jobs. Times are of the processor, the least of five looks, as the wall clock of a
machine at work says more of the others.
"""

import fcntl
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from convs2s.pipeline.status import status
from convs2s.pipeline.status_view import console, view

LINES = "".join(
    f"epoch {number}/40, update 100/200, 9,000 tokens/s\n" for number in range(40)
)
JOB_LOG = "2026-01-01 00:00:00, process 1 on here\nat work\ndone in 1.0 s\n"
JOBS = 5


def make(results: Path, runs: int, held: ExitStack) -> None:
    """Write the files of so many trainings and their jobs."""
    for number in range(runs):
        run = results / f"task{number % 10}/models/model{number % 20}/seed{number}"
        logs = (
            results
            / "logs"
            / run.relative_to(results).as_posix().replace("/models/", "/")
        )
        (run / "state/0123").mkdir(parents=True)
        logs.mkdir(parents=True)
        owner = f"process {number} on {os.uname().nodename}"
        finished, runs_now = number % 2 == 0, number % 4 == 1
        progress = {
            **{"owner": owner, "phase": "finished" if finished else "training"},
            **{
                "written": time.time(),
                "state": "0123",
                "epoch": 3,
                "epochs": 40,
                "batch": 100,
            },
            **{
                "batches": 200,
                "updates": 500,
                "loss": 3.2,
                "perplexity": 14.8,
                "best_epoch": 2,
            },
            **{"tokens_per_second": 9000, "seconds": 3600.0, "why": None},
        }
        (run / "state/progress.json").write_text(json.dumps(progress))
        (run / "state/lock").write_text("" if finished else f"{owner}\n")
        (run / "state/0123/last.safetensors").write_bytes(b"")
        (logs / "train.log").write_text(LINES)
        for job in range(JOBS):
            (logs / f"test.{job}.log").write_text(JOB_LOG)
        if finished:
            record = {
                "epochs": 40,
                "updates": 8000,
                "validation_perplexity": 9.1,
                "best_epoch": 38,
            }
            (run / "training.json").write_text(
                json.dumps({**record, "stop_reason": "the end"})
            )
        if runs_now:
            lock = held.enter_context((run / "state/lock").open())
            fcntl.flock(lock, fcntl.LOCK_EX)


def main() -> None:
    """Measure, and print one JSON object."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name, ExitStack() as held:
        results = Path(name)
        make(results, runs, held)
        files = [path for path in results.rglob("*") if path.is_file()]
        looks, reads, shown = [], [], []
        out = console()
        for _ in range(5):
            started = time.process_time()
            found = status(results)
            looks.append(time.process_time() - started)
            started = time.process_time()
            with out.capture():
                out.print(view(found, rows=50))
            shown.append(time.process_time() - started)
            started = time.process_time()
            for path in files:
                path.read_bytes()
            reads.append(time.process_time() - started)
        conditions = [one.condition for one in found.trainings]
        print(
            json.dumps(
                {
                    "runs": runs,
                    "files": len(files),
                    "seconds_of_a_look": round(min(looks), 3),
                    "seconds_of_a_screen": round(min(shown), 3),
                    "seconds_of_reading_all": round(min(reads), 3),
                    "ratio": round(min(looks) / min(reads), 2),
                    "running": conditions.count("running"),
                    "crashed": conditions.count("crashed"),
                    "finished": conditions.count("finished"),
                }
            )
        )


if __name__ == "__main__":
    main()
