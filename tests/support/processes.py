"""What Linux says of running processes: their children, variables and listening sockets."""

import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import psutil


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
    found = psutil.Process(process).net_connections("inet")
    places = [
        ip_address(one.laddr.ip) for one in found if one.status == psutil.CONN_LISTEN
    ]
    near = sum(place.is_loopback for place in places)
    return near, len(places) - near


def wait_for(is_so: Callable[[], bool], patience: float = 300) -> None:
    """Wait until something is so, for so many seconds at most."""
    deadline = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
