"""Each block of code on a page runs in a test: here, or where the table below says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.files.text import write_lines
from tests.contract.pages import Block, blocks
from tests.support.refusals import rows

ELSEWHERE = dict(
    rows("""
PYTHONPATH=tools python -m demo_corpus => tools/demo_corpus/tests/test_main.py
convs2s export-results results/ => tests/contract/test_exported_results.py
convs2s get => tests/contract/test_published_models.py
convs2s import fairseq => tests/reference/test_interop.py
convs2s mirror FOLDER => tests/contract/test_miniature_mirror.py
convs2s results docs/results/ => tests/house/test_results_page.py
convs2s remove-states => tests/contract/test_remove_states.py
convs2s new-task pairs.tsv => tests/contract/test_new_task.py
convs2s status => tests/contract/test_status_of_runs.py
cd results/demo_en_fr => tests/contract/test_exported_results.py
curl http://127.0.0.1:8000/translate => tests/contract/test_server.py
convs2s serve en_fr.safetensors => tests/contract/test_server.py
curl http://127.0.0.1:8000/metrics => tests/contract/test_server.py
pip install -c constraints.txt -e '.[documents]' => tests/contract/test_documents.py
pip install -c constraints.txt -e '.[hub]' => tests/contract/test_hub_folder.py
python tools/help_corpus.py => tests/contract/test_help_corpus.py
python3 -m venv env => tests/contract/test_wheel.py
import convs2s => tests/contract/test_python_api.py
import pickle => tests/contract/test_python_api.py
right, wrong = translator.score( => tests/contract/test_python_api.py
rule all: => tests/workflow/test_deployment.py
pip install snakedeploy => tests/workflow/test_deployment.py
snakedeploy deploy-workflow https:// => tests/workflow/test_deployment.py
import json => tests/contract/test_score_files.py
. .venv/bin/activate => tests/workflow/test_profiles.py
python -c "from pathlib => tests/contract/test_demo_corpus.py
""")
)
"""How a block begins, and what runs it."""

NOT_RUN = dict(
    rows("""
git clone https:// => CI runs on a clone, and there `make demo` and `make test`
make demo => CI runs it (.github/workflows/ci.yml)
make paper-demo => takes long; tests/workflow/test_profiles.py plans what it makes
python3 -m venv .venv => fetches every package; `make` does the same, and hashes have tests
torchrun --nnodes 2 => needs two machines, as tests/workflow/test_slurm_nodes.py has by srun
docker build => no test has Docker
apptainer build => nor Apptainer
pgrep -u => lists processes of the system
tail -f => never ends
pip install -c constraints.txt -e '.[tensorboard]' => installs, then never ends
t=results/multi30k_de_en => needs a model that takes hours
perl -MDB_File => needs WordNet's exceptions of ROUGE 1.5.5
""")
)
"""How a block begins, and why nothing runs it."""

STARTS = re.compile(
    r"(?:convs2s|echo|snakemake|python3?|pip|make|git|docker|apptainer|export|mkdir|pgrep|tail|torchrun"
    r"|perl|curl|cd|snakedeploy|\.|\w+=\S+) |import |rule |right, "
)
"""What a block begins with that is typed; any other one shows what is printed."""

TEXTS = (
    "news.en test.en test.fr raw.en words.en translations.fr baseline.fr system.fr titles.txt "
    "outputs.txt output.fr r1.txt r2.txt test.bpe.en test.zh translations.zh "
    "models/wmt22-comet-da.ckpt page.html"
)
"""Files that the commands read."""

TEXT = "w1 w2 .\nw2 w2 .\nw3 w2 .\nw4 w2 .\n"

N_BEST = """0 ||| w1 w2 . ||| Other= -1 ||| -1
1 ||| w2 w2 . ||| Other= -1 ||| -1
2 ||| w3 w2 . ||| Other= -1 ||| -1
3 ||| w4 w2 . ||| Other= -1 ||| -1
"""

COMET = """
from types import SimpleNamespace

def load_from_checkpoint(path):
    return SimpleNamespace(predict=lambda rows, **_: SimpleNamespace(scores=[0.8 for _ in rows]))
"""
"""A stand-in of the package."""

OTHERS = {
    "test.nbest": N_BEST,
    "packages/comet/__init__.py": COMET,
    "packages/unbabel_comet-2.2.6.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: unbabel-comet\nVersion: 2.2.6\n"
    ),
}


def typed() -> list[Block]:
    return [
        block for block in blocks(Path(__file__).parents[2]) if STARTS.match(block.text)
    ]


def begins(block: Block, table: dict[str, str]) -> list[str]:
    return [start for start in table if block.text.startswith(start)]


def of_convs2s() -> list[Block]:
    """Return the blocks whose lines all run the command, and that no other test runs."""
    command = re.compile("(?:convs2s|echo|mkdir) ")
    found = [block for block in typed() if command.match(block.text)]
    return [block for block in found if not begins(block, ELSEWHERE)]


def test_every_block_is_run_or_it_is_said_why_not(root: Path) -> None:
    plans = re.compile("snakemake (?!--unlock)")
    planned = [block for block in typed() if plans.match(block.text)]
    run = [*planned, *of_convs2s()]
    others = [block for block in typed() if block not in run]
    tables = ELSEWHERE | NOT_RUN
    assert [block for block in others if len(begins(block, tables)) != 1] == []
    assert {start for block in others for start in begins(block, tables)} == set(tables)
    assert all((root / test).exists() for test in ELSEWHERE.values())
    assert len(planned) > 20
    assert len(of_convs2s()) > 12


@pytest.fixture(scope="module")
def files(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the commands read, and the programs that they call."""
    folder = tmp_path_factory.mktemp("files")
    for place in (".", "results/demo_en_fr/models/demo/seed1"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(model, folder / place / "model.safetensors")
    for name, content in (dict.fromkeys(TEXTS.split(), TEXT) | OTHERS).items():
        write_lines(folder / name, content.splitlines())
    program = folder / "bin/convs2s"
    write_lines(program, ["#!/bin/sh", f'exec {sys.executable} -m convs2s "$@"'])
    program.chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("block", of_convs2s(), ids=lambda block: block.page)
def test_a_block_of_commands_runs(
    files: Path, root: Path, tmp_path: Path, block: Block
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(files, folder)
    (folder / "config").symlink_to(root / "config")
    (folder / "config.yaml").symlink_to(root / "config.yaml")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder}/packages:{root}/src",
            "HOME": str(tmp_path),
            # What extending.md puts into config.yaml.
            "CONVS2S_EXTENSIONS": os.pathsep.join(map(str, root.glob("examples/*.py"))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{block.page}: {done.stderr}"
