"""A few tables of the papers' whose rows are on a user's own pair."""

from typing import Any

import yaml

from tests.support.checkout import Checkout

OURS = {
    "task": "mine_en_nl",
    "model": "small_plateau",
    "runs": ["seed1"],
    "testset": "test",
}
CLAIM = {
    "says": "a beam of five beats none",
    "source": "this test",
    "comparisons": [
        {
            "better": [{"table": "table1", "group": "g", "row": "beam5"}],
            "worse": [{"table": "table1", "group": "g", "row": "greedy"}],
        }
    ],
}
ROWS = {
    "table1": ("beam5", "greedy"),
    "table4": ("beam5",),
    "table3": (),
    "figure3": (),
}


def write_paper(checkout: Checkout, **ours: Any) -> None:
    """Leave a few tables, whose rows are on the own pair; ``ours`` changes those of table 1."""
    tables = yaml.safe_load((checkout / "config/paper.yaml").read_text("utf-8"))
    cited = {"group": "g", "system": "another", "kind": "cited"}
    written = {}
    for name, decodings in ROWS.items():
        row = {"group": "g", "kind": "ours"}
        rows = [row | {"system": one, "decoding": one} for one in decodings]
        common = OURS | ours if name == "table1" else OURS
        if not decodings:
            common, rows = {}, [cited]
        written[name] = tables[name] | {"ours": common, "rows": rows}
    checkout.write("config/claims.yaml", yaml.safe_dump({"five_beats_greedy": CLAIM}))
    checkout.write("config/paper.yaml", yaml.safe_dump(written, sort_keys=False))
