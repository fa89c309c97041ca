"""Choose the network interface by which workers on several machines reach each other.

By default, gloo uses the interface whose address the machine's own name resolves to. On Debian,
/etc/hosts gives this name the address 127.0.1.1, which no other machine can reach. So each worker
chooses the interface from which it reaches the first machine. The first machine cannot find out
which of its own interfaces the others reach, so they tell it the address that they use.
"""

import fcntl
import ipaddress
import os
import socket
import struct

from torch._C._distributed_c10d import Store

NAMES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
"""The environment variables that tell gloo and NCCL which interface to use."""

_KNOWN = "convs2s/address of the first machine/"
"""Prefix of a worker's key for the first machine's address; the worker's rank follows."""

_SIOCGIFADDR = 0x8915  # netdevice(7): ask for the address of an interface


def choose_interface(store: Store) -> None:
    """Set each variable of ``NAMES`` to the interface towards the first machine.

    A variable that is set already keeps its value. MASTER_ADDR names the first machine. If every
    worker finds no IPv4 address for it, or only a loopback address, as is usual on a single
    machine, nothing is set.

    Every worker must call this with a store that all of them share; it waits for the others.

    Raises:
        RuntimeError: A worker did not call this within the timeout of the store.
    """
    try:
        address = socket.gethostbyname(os.environ["MASTER_ADDR"])
    except OSError:
        address = ""
    store.set(_KNOWN + os.environ["RANK"], address)
    reachable = []  # addresses by which workers on other machines reach the first one
    for worker in range(int(os.environ["WORLD_SIZE"])):
        known = store.get(f"{_KNOWN}{worker}").decode()
        if known and not ipaddress.ip_address(known).is_loopback:
            reachable.append(known)
    if not reachable:
        return
    if address not in reachable:
        # Either this is the first machine, where its name is loopback, or the name has no IPv4
        # address here.
        address = reachable[0]
    interface = interface_of(local_address(address))
    if interface is not None:
        for name in NAMES:
            os.environ.setdefault(name, interface)


def local_address(address: str) -> str:
    """Return the address from which this machine sends to ``address``."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.connect((address, 9))  # any port: this sends nothing
        found: str = datagrams.getsockname()[0]
    return found


def interface_of(address: str) -> str | None:
    """Return the name of the interface with this IPv4 address, or None. Works only on Linux."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(datagrams, _SIOCGIFADDR, request)
            except OSError:  # the interface has no address
                continue
            # struct ifreq: 16 bytes of name, then a sockaddr_in with the address in bytes 4 to 7.
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None
