"""The budget of a run, as printed before it starts."""

from convs2s.pipeline.status import status
from tests.support.checkout import Checkout

PREFLIGHT = "snakemake preflight --config scale=demo 'tasks=[demo_en_fr]'"


def test_the_budget_of_the_demo(checkout: Checkout) -> None:
    done = checkout.snakemake("preflight", "--config", "scale=demo").succeeded()
    assert "trainings of each table and figure" in done.said
    rows = [line.split() for line in done.said.splitlines()]
    assert [row for row in rows if row[:1] == ["table1"] and row[-1] == "10,416.0"]
    assert "in all, at scale demo" in done.said
    assert done.planned == {"preflight": 1}
    assert checkout.files("results") == []


def test_a_run_without_its_licensed_text_is_refused(checkout: Checkout) -> None:
    done = checkout.snakemake("preflight", "--config", "tasks=[gigaword]")
    assert done.code == 1
    (error,) = done.errors
    assert error.startswith(
        "error: this run cannot fit: gigaword needs data/gigaword/train."
    )
    assert (
        (checkout / "results/logs/preflight.log")
        .read_text("utf-8")
        .endswith(f"{error}\n")
    )
    (crashed,) = status(checkout / "results").jobs
    assert (crashed.name, crashed.condition) == ("preflight", "crashed")
    assert "summarization, 3 trainings: 36.0 GPU-hours" in done.said
    assert "Traceback" not in done.said


def test_a_reader_may_leave(checkout: Checkout) -> None:
    command = f"{PREFLIGHT} 2> said.txt | true"
    done = checkout.shell(f"set -o pipefail; {command}")
    assert done.code == 0, (checkout / "said.txt").read_text("utf-8")
