"""What a process measures of its own work. It needs the standard library alone."""

import json
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path


def sample(work: Callable[[], int], **stated: object) -> None:
    """Do the work and print what it took, as one JSON object.

    The object holds ``count``, what ``work`` returns; ``processor_seconds`` of all threads and of
    children that have ended; ``wall_seconds``; ``peak_bytes``, the most memory that this process
    ever held; and what is ``stated``.
    """
    wall, processor = time.perf_counter(), processor_seconds()
    count = work()
    figures = {
        "count": count,
        "processor_seconds": processor_seconds() - processor,
        "wall_seconds": time.perf_counter() - wall,
        "peak_bytes": memory_of("self", "VmHWM"),
    }
    print(json.dumps(figures | stated))


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(one.ru_utime + one.ru_stime for one in used)


def memory_of(process: int | str, kind: str) -> int:
    """Return bytes of a process, as Linux counts them: VmRSS now, VmHWM at their peak.

    As a peak, getrusage counts the parent's, too.
    """
    status = Path(f"/proc/{process}/status").read_text("ascii")
    return int(re.findall(rf"{kind}:\s+(\d+) kB", status)[0]) * 1024
