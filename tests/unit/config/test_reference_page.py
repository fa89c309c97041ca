"""The pages that are made from the classes, which test_json_schema.py holds against them."""

from pathlib import Path

import yaml

from configuration import reference, template
from convs2s.config.messages import validated
from convs2s.config.options import Options
from tests.unit.conftest import Terminal


def test_the_template_states_the_defaults() -> None:
    stated = yaml.safe_load(template())
    assert stated == Options().model_dump(mode="json")
    assert validated(Options, stated, "config.yaml") == Options()


def test_each_key_is_a_row() -> None:
    rows = reference().splitlines()
    wanted = [
        "| `cores` | integer ≥ 1 and ≤ 1024 or null | `null` | CPU threads of one training ",
        "| `plots` | mapping |  | What the attention plots show.",
        "| `corpus.train[].source` | string | required | File of the source side: a path, a "
        "URL, or `opus:CORPUS/VERSION/LANGUAGES#LANGUAGE`.",
        "| `architecture.kind` | convs2s, lstm | `convs2s` | convs2s: ",
        "| `architecture.cells` | integer ≥ 1 and ≤ 65536 | `1000` | lstm: Memory cells",
        "| `length_penalty` | number ≥ 0 and ≤ 50 or mapping | `1.0` | Exponent alpha",
        "| `length_penalty.tuned_on` | string | required | ",
        "| `growth` | mapping | required | Bytes of text for each byte of a compressed file. "
        "Keys as in `line_bytes`.",
    ]
    assert [
        start for start in wanted if not any(row.startswith(start) for row in rows)
    ] == []


def test_a_tasks_name_is_no_key() -> None:
    assert "`name`" not in reference()


def test_the_page_of_tasks_lists_all_of_them(root: Path, run: Terminal) -> None:
    page = (root / "docs/tasks.md").read_text(encoding="utf-8")
    listed = page.partition("<!-- tasks: begin -->\n")[2].partition(
        "<!-- tasks: end -->"
    )[0]
    assert listed == run("config", "--tasks")
    assert listed.count("\n") == 2 + len(list((root / "config/tasks").glob("*.yaml")))
