"""What of the operating system a test needs."""

import sys

import pytest

READS_PROC = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
