"""What Linux says of running processes: their children, variables and listening sockets."""

from pathlib import Path

LISTEN = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000")
"""127.0.0.1 and ::1 as the kernel writes them."""


def children(parent: int) -> list[int]:
    """The processes that a process started."""
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def environment(process: int) -> dict[str, str]:
    """The variables that a process was started with."""
    entries = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def listening(process: int) -> tuple[int, int]:
    """The number of sockets at which a process listens on the loopback interface, and elsewhere."""
    links = [str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir()]
    own = {link.removeprefix("socket:[").rstrip("]") for link in links if "socket:" in link}
    near = far = 0
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{process}/net/{table}")
        rows = [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []
        for row in rows:
            if row[3] == LISTEN and row[9] in own:
                near += row[1].partition(":")[0] in LOOPBACK
                far += row[1].partition(":")[0] not in LOOPBACK
    return near, far
