"""User names and passwords in the addresses of mirrors: sent to the mirror, shown to nobody."""

import base64
import re
from urllib.parse import unquote

_IN_ADDRESS = re.compile(r"(?<=://)[^/?#]*@")


def without_credentials(address: str) -> str:
    """Return an address without the ``USER:PASSWORD@`` before its host, for messages and files."""
    return _IN_ADDRESS.sub("", address)


def authorization(address: str) -> dict[str, str]:
    """Return the header that an address's credentials make; none where it has none."""
    found = _IN_ADDRESS.search(address)
    if not found:
        return {}
    token = base64.b64encode(unquote(found[0].removesuffix("@")).encode()).decode()
    return {"Authorization": f"Basic {token}"}
