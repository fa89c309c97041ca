"""The miniature mirror in a checkout, as if an earlier run had generated it there."""

import shutil
from pathlib import Path

from tests.support.checkout import Checkout

RESULTS = "results/scales/mirror"
DEVICE = {"scale": "mirror", "device": "cpu", "cores": 1}
"""What a run at the scale states in config.local.yaml."""


def add_mirror(mirror: Path, checkout: Checkout) -> Checkout:
    """Copy the mirror to where the workflow writes its own, with the licensed text beside it."""
    shutil.copytree(mirror, checkout / f"{RESULTS}/archives")
    shutil.copytree(mirror / "data", checkout / "data")
    return checkout
