"""Tables of runs that are partly there: what a change runs again, what a published ledger saves.

The tables are two small ones on the user's own pair, whose model and scores are there.
"""

import json
import re
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import own_pair
from tests.support.checkout import Checkout, Done
from tests.support.loopback import LoopbackServer, Served

RUN = "results/mine_en_nl/models/small/seed1"
LEDGER = "results/paper/ledger.jsonl"
TABLE1 = "results/paper/table1.md"
LEDGER_TO_REPORT = {
    "write_ledger": 1,
    "write_claims": 1,
    "write_costs": 1,
    "write_report": 1,
}


def configure(checkout: Checkout, **overrides: Any) -> None:
    """Add to what the first run's options override."""
    options = yaml.safe_load((checkout / "config.local.yaml").read_text("utf-8"))
    for kind, entries in overrides.items():
        options["overrides"][kind] |= entries
    checkout.configure(options)


@pytest.fixture(scope="module")
def run(
    first_run: tuple[Checkout, Done], tmp_path_factory: pytest.TempPathFactory
) -> Checkout:
    """The folder after ``snakemake paper``."""
    checkout = first_run[0].copy(tmp_path_factory.mktemp("paper"))
    own_pair.write_paper(checkout)
    done = checkout.snakemake("paper").succeeded()
    assert "train_model" not in done.planned
    return checkout


@pytest.fixture
def paper(run: Checkout, tmp_path: Path) -> Checkout:
    return run.copy(tmp_path)


def planned(checkout: Checkout, *arguments: str) -> dict[str, int]:
    return checkout.snakemake("--dry-run", "paper", *arguments).succeeded().planned


def test_a_deleted_model_is_made_again_with_what_rests_on_it(paper: Checkout) -> None:
    (paper / f"{RUN}/model.safetensors").unlink()
    scores = {"decode_test_set": 2, "evaluate_bleu": 2}
    shown = {"write_table": 2, **LEDGER_TO_REPORT, "plot_learning_curve": 1}
    assert planned(paper) == {"train_model": 1, **scores, **shown, "paper": 1}


def test_after_a_kill_tables_and_report_train_nothing(paper: Checkout) -> None:
    """The history of a training that was killed is there, and marked as incomplete."""
    for name in ("model.safetensors", "training.json"):
        (paper / f"{RUN}/{name}").unlink()
    history = f"{RUN}/history.jsonl"
    paper.write(
        f".snakemake/incomplete/{urlsafe_b64encode(history.encode()).decode()}", ""
    )
    for path in (paper / RUN).glob("test.*"):
        path.unlink()
    done = paper.snakemake(
        "--dry-run", "tables", "results/paper/report.html"
    ).succeeded()
    assert "train_model" not in done.planned
    assert "write_costs" in done.planned


def test_another_beam_decodes_again_what_has_it(paper: Checkout) -> None:
    configure(paper, decodings={"greedy": {"beam": 2}})
    scores = {"decode_test_set": 1, "evaluate_bleu": 1}
    assert planned(paper) == {
        **scores,
        "write_table": 1,
        **LEDGER_TO_REPORT,
        "paper": 1,
    }


def test_another_seed_is_trained_alone(paper: Checkout) -> None:
    own_pair.write_paper(paper, runs=["seed1", "seed2"])
    made = {
        "train_model": 1,
        "decode_test_set": 2,
        "evaluate_bleu": 2,
        "plot_learning_curve": 1,
    }
    assert planned(paper) == {**made, "write_table": 1, **LEDGER_TO_REPORT, "paper": 1}


def test_a_published_ledger_saves_all_of_it(
    paper: Checkout, server: LoopbackServer
) -> None:
    (paper / LEDGER).rename(paper / "their.jsonl")
    for place in ("paper", "mine_en_nl", "logs"):
        (paper / "results" / place).rename(paper / f"{place}.before")
    published = ("--config", "published=their.jsonl")
    tables = {"write_table": 3, "write_figure_table": 1}
    assert planned(paper, *published) == {**tables, **LEDGER_TO_REPORT, "paper": 1}
    paper.snakemake(TABLE1, *published).succeeded()
    table = (paper / TABLE1).read_text("utf-8")
    before = (paper / "paper.before/table1.md").read_text("utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| g | ")]
    assert len(rows) == 2
    assert all(row.endswith(" † |") for row in rows)
    assert "runs: 1 of 1; test set: mine_en_nl test (20 lines); " in table
    assert "† from the published ledger their.jsonl" in table
    assert "†" not in before
    # From a server, too.
    served = server.serve("/their.jsonl", Served((paper / "their.jsonl").read_bytes()))
    paper.snakemake("--dry-run", TABLE1, "--config", f"published={served}").succeeded()
    # A planted line: another score under an honest fingerprint's inputs needs another fingerprint.
    first, *others = (paper / "their.jsonl").read_text("utf-8").splitlines()
    planted = json.dumps(json.loads(first) | {"fingerprint": "0a" * 32})
    paper.write("their.jsonl", "\n".join([*others, planted]))
    refused = paper.snakemake("--dry-run", "paper", *published)
    assert refused.code == 1
    (error,) = refused.errors
    assert error.startswith(
        "error: their.jsonl:3: the inputs of this run do not give its finger"
    )


def test_a_figure_that_no_model_here_makes_is_refused(
    checkout: Checkout, root: Path
) -> None:
    published = root / "docs/results/multi30k.ledger.jsonl"
    options = ["--config", "scale=multi30k", f"published={published}", "--"]
    for name in ("figure3", "lstm_figure3"):
        refused = checkout.snakemake(
            "-n", *options, f"results/scales/multi30k/paper/{name}.svg"
        )
        (error,) = refused.errors
        assert error.startswith(
            f"error: {name}.svg: no model of this run makes what it shows: it "
        )


def test_from_the_published_ledger_tables_train_nothing_and_depths_are_drawn(
    checkout: Checkout, root: Path
) -> None:
    """The ledger lacks some runs, which `paper` makes."""
    published = root / "docs/results/multi30k.ledger.jsonl"
    options = ["--config", "scale=multi30k", f"published={published}", "--"]
    tables = checkout.snakemake("-n", *options, "tables").succeeded().planned
    assert tables["write_table"] > 10
    costly = {"download_file", "align_words", "train_model", "decode_test_set"}
    assert not costly & {*tables}
    whole = checkout.snakemake("-n", *options, "paper").succeeded().planned
    assert whole["plot_bleu_by_layers"] == 1
    assert min(whole[rule] for rule in costly) > 0


def test_a_failed_training_leaves_its_cell_with_the_reason(paper: Checkout) -> None:
    short = own_pair.TINY["architecture"] | {"positions": {"maximum": 4}}
    configure(paper, models={"demo": own_pair.TINY | {"architecture": short}})
    failing = {"system": "short", "decoding": "beam5", "model": "demo"}
    own_pair.write_paper(paper, further=(failing,))
    done = paper.snakemake("paper", "--keep-going")
    assert done.code == 1, done.said
    paper.snakemake("tables").succeeded()
    rows = (paper / TABLE1).read_text("utf-8").splitlines()
    (row,) = [line for line in rows if line.startswith("| g | short ")]
    assert "| failed: " in row
    assert "positions" in row
    assert "runs: 1 of 1;" in "\n".join(rows)  # of the others
    command = re.search(
        r"^\[\d+\] to run it: `snakemake (.*)`$", "\n".join(rows), re.MULTILINE
    )
    assert command
    asked = paper.shell(f"snakemake --dry-run {command[1]}")
    assert asked.planned["train_model"] == 1, asked.said
