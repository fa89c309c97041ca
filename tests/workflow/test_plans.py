"""Dry runs: every path that a table asks for can be made, at every scale, and no other is."""

import os
import re
from pathlib import Path

import pytest

from convs2s.config.load import load
from convs2s.paper.cells import cells
from convs2s.pipeline.status import status
from tests.support.checkout import Checkout, Done, check_out
from tests.support.refusals import rows, says

MODEL = "results/demo_en_fr/models/demo/seed1/model.safetensors"
PREFLIGHT = "snakemake preflight --config scale=demo"

# What a licence keeps from being downloaded: users put these files there themselves.
LICENSED = """
gigaword/train.article.txt gigaword/valid.article.filter.txt gigaword/test.article.txt
gigaword/train.title.txt gigaword/valid.title.filter.txt gigaword/test.title.txt
duc2004/input.txt duc2004/references/task1_ref0.txt duc2004/references/task1_ref1.txt
duc2004/references/task1_ref2.txt duc2004/references/task1_ref3.txt
wmt14_en_fr/newstest2014.1000best.gz
"""


def planned(checkout: Checkout, *arguments: str) -> Done:
    """What a dry run says that succeeds; without the reasons for its jobs."""
    return checkout.snakemake("--dry-run", "--quiet=reason", *arguments).succeeded()


@pytest.mark.parametrize(
    "scale",
    [
        "paper",
        *(
            pytest.param(scale, marks=pytest.mark.slow)
            for scale in ("demo", "mirror", "multi30k", "multi30k_trained")
        ),
    ],
)
def test_every_cell_of_the_tables_can_be_made(checkout: Checkout, scale: str) -> None:
    for name in LICENSED.split():
        checkout.write(f"data/{name}", "")
    settings = load(checkout.folder, {"scale": scale})
    shown = [cell for table in settings.paper for cell in cells(settings, table)]
    paths = list(dict.fromkeys(path for cell in shown for path in cell.paths))
    assert len(paths) > 20
    done = planned(checkout, "--config", f"scale={scale}", "--", *paths)

    asked = " ".join(paths)
    rescored = asked.count(".rescored.bleu.json")
    assert done.planned["rescore_baseline_list"] == rescored > 2
    assert done.planned["evaluate_bleu"] == asked.count(".bleu.json") - rescored
    assert done.planned["project_phrases"] == asked.count("/phrases.") > 0
    # English-German's runs and ensemble tune their length penalty, each for itself.
    tuned = {Path(path).parent for path in paths if ".beam5_en_de." in path}
    assert done.planned["tune_length_penalty"] == len(tuned) > 0


def test_tables_and_text_are_made_in_a_folder_of_any_name(
    root: Path, tmp_path: Path
) -> None:
    """Braces are wildcards to Snakemake; the others mean something to shells and formats."""
    name = '{task} {{a} } 50% $HOME `x` #1, it\'s "b" & (c) \\d;'
    checkout = check_out(root, tmp_path / name)
    made = "results/demo_en_fr/corpus/raw/test.source.zst"
    done = checkout.snakemake(made, "results/paper/table1.md").succeeded()
    assert (checkout / made).is_file()
    # A table of which nothing has run shows printed values, and trains nothing.
    jobs = ("write_demo_corpus", "extract_corpus", "write_table")
    assert done.planned == dict.fromkeys(jobs, 1)
    table = checkout.read("results/paper/table1.md")
    rows = re.findall(r"^\|.*ConvS2S.*", table, re.MULTILINE)
    assert "| 40.51 | not run |" in "".join(rows)
    assert all("not run" in row for row in rows)
    files = [f"results/paper/table1.{end}" for end in ("csv", "md", "svg", "tex")]
    assert checkout.files("results/paper") == files


# A figure does not need a user's list. Two models are compared over the seeds of the headline. The
# text of word models is aligned once. A stage of released models trains nothing.
TARGETS = """
results/scales/demo/paper/report.html --config scale=demo \
=> write_claims=1 write_ledger=1 write_report=1
results/paper/lstm_figure3.svg results/demo_en_fr/compare/test.beam5.demo-vs-wmt14_en_fr.txt \
=> plot_bleu_by_length=1 score_baseline_list=0 compare_models=1 train_model=9
align --config tasks=[demo_en_fr,demo_en_fr_word] \
=> align_words=1 build_dictionary=1
prepare align train evaluate --config tasks=[wmt14_en_fr_released] \
=> import_released=1 evaluate_bleu=1 train_model=0 binarize=0
"""


def test_a_target_plans_its_jobs_alone(planned_checkout: Checkout) -> None:
    for command, jobs in rows(TARGETS):
        found = planned(planned_checkout, *command.split()).planned
        for job in jobs.split():
            rule, number = job.split("=")
            assert found.get(rule, 0) == int(number), rule
        assert len(found) == 3 or "report" not in command


TOLD = """
--resources gpu=2 => --workers 0 --nodes 1
--set-resources train_model:runtime=90 --set-threads train_model=1 --config gpus=2 \
=> --workers 2 --nodes 1 ... --cpus 1 --time-limit 90
--config device=cpu => --workers 1 --nodes 1 --device cpu
"""


def test_a_training_is_told_what_its_job_has(planned_checkout: Checkout) -> None:
    """A number of workers of 0 means one for each GPU that is granted."""
    for options, words in rows(TOLD):
        shown = ("--printshellcmds", *options.split(), "--", MODEL)
        said = planned(planned_checkout, *shown).said
        (command,) = (line for line in said.splitlines() if "convs2s train" in line)
        says(command, words)


def test_a_job_on_a_cpu_asks_for_the_memory_of_all_models_that_it_loads(
    checkout: Checkout,
) -> None:
    runs = MODEL.removesuffix("seed1/model.safetensors")
    for seed, size in ((1, 2000 << 20), (2, 2000 << 20), (3, 1)):
        # Sparse.
        os.truncate(checkout.write(f"{runs}seed{seed}/model.safetensors", b""), size)
    for stage in ("raw", "tok"):
        checkout.write(f"results/demo_en_fr/corpus/{stage}/test.source.zst", b"")
    megabytes = {
        "ensemble2/test.beam5.jsonl": "4000",
        "ensemble2/test.beam5.cpu.speed.json": "13000",
        "seed3/test.beam5.cpu.speed.json": "4000",
    }
    rules = ["--allowed-rules", "decode_test_set", "time_decoding"]
    done = planned(checkout, *rules, "--", *(runs + name for name in megabytes))
    found = rf"output: {runs}([^\s,]+).*?mem_mb=(\d+),"
    assert dict(re.findall(found, done.said, re.DOTALL)) == megabytes


def test_the_budget_of_the_demo_and_what_it_will_ask_of_a_cluster(
    checkout: Checkout,
) -> None:
    # The executor looks for one of the commands that tell the state of a job.
    environment = checkout.with_programs(
        sinfo="echo 'cpu*|1:00:00|64|256000|4|gpu:8'", squeue=""
    )
    options = "--profile profiles/slurm --max-jobs-per-timespan 10/1s"
    options += " --slurm-init-seconds-before-status-checks 1"
    done = checkout.typed(f"{PREFLIGHT} {options}", environment).succeeded()
    assert re.search("^ *table1 .* 10,416.0$", done.said, re.MULTILINE)
    assert "in all, at scale demo" in done.said
    assert re.search("^ *train_model .* 1,440 +1$", done.said, re.MULTILINE)
    warning = "WARNING: train_model: asks for 1,440 minutes, partition cpu gives at "
    assert f"\n{warning}most 60: --set-resources train_model:runtime=60\n" in done.said
    assert "write_model_settings" not in done.said  # a local rule
    assert done.planned == {"preflight": 1}
    log = checkout.read("results/scales/demo/logs/preflight.log")
    assert "submissions: " in log
    assert checkout.files("results") == []


def test_a_run_without_its_licensed_text_cannot_fit(checkout: Checkout) -> None:
    done = checkout.snakemake("preflight", "--config", "tasks=[gigaword]")
    assert done.code == 1
    (error,) = done.errors
    needs = "gigaword needs data/gigaword/train."
    assert error.startswith(f"error: this run cannot fit: {needs}")
    log = checkout.read("results/logs/preflight.log")
    assert log.endswith(f"{error}\n")
    (crashed,) = status(checkout / "results").jobs
    assert (crashed.name, crashed.condition) == ("preflight", "crashed")
    assert re.search("^ *summarization +3 +1 +H100 ", done.said, re.MULTILINE)
    assert "Traceback" not in done.said


@pytest.mark.slow
def test_a_reader_may_leave(checkout: Checkout) -> None:
    command = f"{PREFLIGHT} 'tasks=[demo_en_fr]' preflight_gpu=A100 2> said.txt | true"
    done = checkout.shell(f"set -o pipefail; {command}")
    assert done.code == 0, checkout.read("said.txt")
