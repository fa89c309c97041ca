"""What `snakemake --list` shows: each target and rule, with what it makes."""

import re

from tests.support.checkout import Checkout

PUBLIC = "download prepare align train decode evaluate speed tables figures paper report demo"


def test_every_rule_says_what_it_makes(checkout: Checkout) -> None:
    done = checkout.snakemake("--list").succeeded()
    listed = dict(re.findall(r"^(\w+)(?: \((.*)\))?$", done.said, re.MULTILINE))
    assert len(listed) > 60
    assert set(PUBLIC.split()) < listed.keys()
    assert [name for name, said in listed.items() if not said] == []
