"""Changes of a folder in which the workflow has run."""

from convs2s.config.load import merged
from tests.support.checkout import Checkout


def override(checkout: Checkout, kind: str, name: str, **stated: object) -> None:
    """Add to what the first run's options override."""
    changes = {"overrides": {kind: {name: stated}}}
    checkout.configure(merged(checkout.options(), changes))


def empty_records(checkout: Checkout) -> None:
    """Leave Snakemake's records as a power cut leaves files that were not synced."""
    for record in (checkout / ".snakemake/metadata").iterdir():
        record.write_bytes(b"")
