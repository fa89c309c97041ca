"""Every path that a table asks for can be made, at every scale, and a table alone makes none."""

import re
from collections import Counter
from pathlib import Path

import pytest

from convs2s.config.load import load
from tests.support.cells import cells
from tests.support.checkout import Checkout, Done

# What a licence keeps from being downloaded: users put these files there themselves.
LICENSED = [
    *(
        f"gigaword/{name.format(side)}.txt"
        for name in ("train.{}", "valid.{}.filter", "test.{}")
        for side in ("article", "title")
    ),
    "duc2004/input.txt",
    *(f"duc2004/references/task1_ref{number}.txt" for number in range(4)),
    "wmt14_en_fr/newstest2014.1000best.gz",
]
OTHERS = [
    "lstm_table1",
    "lstm_table2",
    "lstm_figure2",
    "lstm_figure3",
    "lstm_text",
    "further_rows",
]


def planned(checkout: Checkout, *arguments: str) -> Done:
    """What a dry run says that succeeds; without the reasons for its jobs."""
    return checkout.snakemake("--dry-run", "--quiet=reason", *arguments).succeeded()


def cell_paths(folder: Path, scale: str) -> list[str]:
    """The files that the tables rest on."""
    settings = load(folder, {"scale": scale})
    tables = [f"table{number}" for number in range(1, 9)] + OTHERS
    paths = [
        path
        for table in tables
        for cell in cells(settings, table)
        for path in cell.paths
    ]
    return list(dict.fromkeys(paths))


@pytest.mark.parametrize(
    "scale", ["paper", "demo", "multi30k", "multi30k_trained", "mirror"]
)
def test_every_cell_of_the_tables_can_be_made(checkout: Checkout, scale: str) -> None:
    for name in LICENSED:
        checkout.write(f"data/{name}", "")
    paths = cell_paths(checkout.folder, scale)
    assert len(paths) > 20
    done = planned(checkout, "--config", f"scale={scale}", "--", *paths)
    for name in re.findall(r"log: \S+/logs/(\S+)\.log", done.said):
        assert f"/benchmarks/{name}.tsv" in done.said
    trained = {Path(path).parent for path in paths if "seed" in path}
    assert done.planned["train_model"] >= len(trained)
    rescored = [path for path in paths if path.endswith(".rescored.bleu.json")]
    assert done.planned["rescore_baseline_list"] == len(rescored) > 2
    assert done.planned["list_n_best"] >= (scale != "paper")
    for metric, others in {"bleu": rescored, "rouge": []}.items():
        scored = [path for path in paths if path.endswith(f".{metric}.json")]
        assert done.planned.get(f"evaluate_{metric}", 0) == len(scored) - len(others)
    mapped = [path for path in paths if "/phrases." in path]
    assert done.planned["project_phrases"] == len(mapped) > 0
    # English-German's runs and ensemble tune their length penalty, each for itself.
    tuned = {Path(path).parent for path in paths if ".beam5_en_de." in path}
    assert done.planned["tune_length_penalty"] == len(tuned) > 0


def test_a_table_shows_printed_values_and_trains_nothing(checkout: Checkout) -> None:
    done = checkout.snakemake("results/paper/table1.md").succeeded()
    assert done.planned == {"write_table": 1}
    table = (checkout / "results/paper/table1.md").read_text("utf-8")
    rows = [
        line
        for line in table.splitlines()
        if "ConvS2S" in line and line.startswith("|")
    ]
    assert [row for row in rows if "| 40.51 | not run |" in row]
    assert all("not run" in row for row in rows)
    assert checkout.files("results") == [
        f"results/paper/table1.{end}" for end in ("csv", "md", "svg", "tex")
    ]


def test_a_report_alone_shows_what_there_is_and_trains_nothing(
    checkout: Checkout,
) -> None:
    report = "results/scales/demo/paper/report.html"
    done = planned(checkout, "--config", "scale=demo", "--", report)
    assert done.planned == {"write_claims": 1, "write_ledger": 1, "write_report": 1}


def test_without_a_users_list_nothing_rescores_it(checkout: Checkout) -> None:
    done = planned(checkout, "results/paper/lstm_figure3.svg")
    assert done.planned["plot_bleu_by_length"] == 1
    assert done.planned["train_model"] == 5
    assert "score_baseline_list" not in done.planned
    asked = "results/wmt14_en_fr_word/models/lstm/seed1/newstest2014.rescored.bleu.json"
    missing = checkout.snakemake("--dry-run", asked)
    assert missing.code == 1
    assert "data/wmt14_en_fr/newstest2014.1000best.gz" in missing.said


def test_a_missing_file_of_roots_is_named_where_scores_are_there(
    checkout: Checkout,
) -> None:
    """Snakemake takes a file that no rule can make for finished."""
    score = "results/gigaword/models/demo/seed1/gigaword.beam5.rouge.json"
    checkout.write(score, "{}")
    done = checkout.snakemake(
        "--dry-run", score, "--config", "rouge_exceptions=mispelt.tsv"
    )
    assert done.code == 1
    (error,) = done.errors
    assert error.startswith(
        "error: rouge_exceptions: mispelt.tsv: no such file; docs/rouge.md"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("demo_en_fr_word/corpus/raw/test.source.zst", "No rule to produce"),
        ("demo_en_fr/models/small/x/seed1/model.safetensors", "No rule to produce"),
        (
            "demo_en_fr/vocabulary/de.tsv",
            "unknown language 'de'; expected one of en, fr",
        ),
    ],
)
def test_wildcards_take_what_their_rule_allows(
    checkout: Checkout, path: str, said: str
) -> None:
    """Also where a path begins with a name of pathvars, which Snakemake fills in late."""
    done = checkout.snakemake("--dry-run", f"results/{path}")
    assert done.code == 1
    assert said in done.said
    assert "Traceback" not in done.said
    assert "KeyError" not in done.said


def test_two_models_are_compared_over_the_seeds_of_the_headline(
    checkout: Checkout,
) -> None:
    checkout.configure(
        {"overrides": {"tasks": {"demo_en_fr": {"headline": {"seeds": [1, 2]}}}}}
    )
    path = "results/demo_en_fr/compare/test.beam5.demo-vs-wmt14_en_fr.txt"
    done = planned(checkout, path)
    assert done.planned["compare_models"] == 1
    assert done.planned["decode_test_set"] == done.planned["train_model"] == 4


def test_the_text_of_word_models_is_aligned_once(checkout: Checkout) -> None:
    done = planned(checkout, "align", "--config", "tasks=[demo_en_fr,demo_en_fr_word]")
    assert done.planned["align_words"] == done.planned["build_dictionary"] == 1
    # Whose text both read.
    assert "results/demo_en_fr/alignment/dictionary.tsv" in done.said
    of_bpe = planned(checkout, "align", "--config", "tasks=[demo_en_fr]")
    assert "align_words" not in of_bpe.planned


def test_a_tasks_report_is_in_its_metric(checkout: Checkout) -> None:
    overrides = {
        "tasks": {"demo_en_fr": {"metric": "rouge", "rouge": {"test": {"bytes": 75}}}}
    }
    checkout.configure(
        {"overrides": overrides, "tasks": ["demo_en_fr", "demo_en_fr_word"]}
    )
    done = planned(checkout, "evaluate")
    assert done.planned["summarize_runs"] == 2
    assert {"evaluate_rouge", "evaluate_bleu"} <= set(done.planned)
    refused = checkout.snakemake("--dry-run", "results/demo_en_fr_word/rouge.txt")
    assert refused.code == 1
    said = "has no rouge.txt, as its task says `metric: bleu`: ask for bleu.txt"
    assert f"error: demo_en_fr_word {said}" in refused.said


def test_what_covers_the_paper_has_tasks_whose_licensed_files_are_there(
    checkout: Checkout,
) -> None:
    """Without the files: test_bare_snakemake."""
    for name in LICENSED:
        checkout.write(f"data/{name}", "")
    done = planned(checkout, "paper")
    assert done.planned["evaluate_rouge"] == 6


@pytest.mark.parametrize(
    ("options", "timed"),
    [
        (["--config", "scale=demo"], {"cpu": 4}),
        (["--resources", "gpu=1", "--config", "scale=demo"], {"cpu": 4}),
        (["--config", "scale=demo", "device=cuda"], {"cpu": 4, "cuda": 4}),
    ],
)
def test_speed_times_a_gpu_where_one_is_asked_for(
    checkout: Checkout, options: list[str], timed: dict[str, int]
) -> None:
    done = planned(checkout, *options, "--", "speed")
    outputs = re.findall(
        r"^ +output: \S+\.(cpu|cuda)\.speed\.json", done.said, re.MULTILINE
    )
    assert Counter(outputs) == timed
    assert done.planned["evaluate_bleu"] == 4
