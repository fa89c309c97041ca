"""Changes of a folder in which the workflow has run."""

from typing import Any

from tests.support.checkout import Checkout


def override(checkout: Checkout, kind: str, name: str, **stated: Any) -> None:
    """Add to what the first run's options override."""
    options = checkout.options()
    entry = options["overrides"][kind].setdefault(name, {})
    for key, value in stated.items():
        entry[key] = entry.get(key, {}) | value if isinstance(value, dict) else value
    checkout.configure(options)


def empty_records(checkout: Checkout) -> None:
    """Leave Snakemake's records as a power cut leaves files that were not synced."""
    for record in (checkout / ".snakemake/metadata").iterdir():
        record.write_bytes(b"")
