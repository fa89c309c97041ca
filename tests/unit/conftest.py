"""Goes once no test of tests/unit imports from it."""

from tests.conftest import Terminal as Terminal
