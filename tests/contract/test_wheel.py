"""The wheel alone: what a user has who copies it and a model file to another machine."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from convs2s import __version__
from convs2s.api.translator import Translator
from convs2s.cli.main import EXTRAS
from tests.support.bare_python import bare_python, closure, run_bare, without_pythonpath
from tests.support.checkout import check_out
from tests.support.refusals import rows, says
from tests.support.served import ModelServer

URL = "https://example.org/owner/convs2s"
WHEEL = f"convs2s-{__version__}-py3-none-any.whl"
BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # the builds put their own arguments there
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built from a copy without the network."""
    folder = tmp_path_factory.mktemp("release")
    checkout = check_out(root, folder)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        checkout.write(name, (root / name).read_bytes())
    (folder / "dist").mkdir()
    subprocess.run(
        [sys.executable, "-c", BUILD, str(folder / "dist")],
        cwd=checkout.folder,
        env=os.environ | {"REPOSITORY_URL": URL},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder / "dist"


@pytest.fixture(scope="module")
def stated(built: Path) -> str:
    """What the wheel says of itself."""
    with zipfile.ZipFile(built / WHEEL) as archive:
        return archive.read(f"convs2s-{__version__}.dist-info/METADATA").decode()


def required(stated: str, extra: str = "") -> list[str]:
    """Return what the wheel requires for an extra, or without any."""
    lines = re.findall(r"^Requires-Dist: (.*)$", stated, re.MULTILINE)
    return [one for one in lines if one.partition("extra == ")[2].strip('"') == extra]


@pytest.fixture(scope="module")
def python(built: Path, stated: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel and what it requires, and nothing else."""
    python = bare_python(tmp_path_factory.mktemp("wheel") / "venv", required(stated))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
    # An editable install leaves its metadata in src/, which a PYTHONPATH makes pip find there: it
    # would say that this version is installed already.
    subprocess.run(
        [*pip, "--no-deps", "--no-index", built / WHEEL],
        env=without_pythonpath(),
        check=True,
    )
    return python


def test_the_wheel_does_not_need_the_workflow(stated: str) -> None:
    packages = closure(required(stated))
    assert {"onnxruntime", "sacremoses", "subword-nmt", "uvicorn"} <= packages
    assert not packages & {"torch", "scipy", "pandas", "snakemake", "pytest"}


def test_both_have_every_file_of_the_package(root: Path, built: Path) -> None:
    files = (path for path in (root / "src/convs2s").rglob("*") if path.is_file())
    package = {str(path.relative_to(root)) for path in files if path.suffix != ".pyc"}
    with zipfile.ZipFile(built / WHEEL) as archive:
        assert package <= {f"src/{name}" for name in archive.namelist()}
    with tarfile.open(built / f"convs2s-{__version__}.tar.gz") as archive_tar:
        members = {name.partition("/")[2] for name in archive_tar.getnames()}
    assert package | {"LICENSE"} <= members


def test_the_wheel_says_whose_it_is_and_its_links_have_addresses(stated: str) -> None:
    says(
        stated,
        f"\nProject-URL: Source, {URL}\n",
        "\nLicense-Expression: MIT\n",
        "\nAuthor: ",
        "\nClassifier: Typing :: Typed\n",
        f"]({URL}/blob/v{__version__}/docs/install.md)",
        f"]({URL}/raw/v{__version__}/docs/images/attention.png)",
    )
    assert re.findall(r"\]\((?!https://|#)", stated) == []


COMMANDS = """
convs2s translate model.safetensors --threads=1 --minimum-length=3 < text > translated
convs2s attention model.safetensors 'w1 w2' > page.html
convs2s score bleu --reference text < text > score
convs2s card model.safetensors > card.md
convs2s mirror m
python -c 'from pathlib import Path; from convs2s.demo.corpus import write_demo_corpus; \
write_demo_corpus(Path())'
"""


def check_commands(python: Path, model: Path, folder: Path) -> None:
    """Give commands that need the packages and the data of this Python alone."""
    shutil.copy(model, folder / "model.safetensors")
    (folder / "text").write_text("w1 w2\n\nw3\n")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    environment = without_pythonpath() | {"PATH": path}
    subprocess.run(["bash", "-ec", COMMANDS], cwd=folder, env=environment, check=True)

    def said(name: str) -> str:
        return (folder / name).read_text("utf-8")

    translator = Translator.load(model, device="cpu")
    expected = translator.translate(["w1 w2", "", "w3"], minimum_length=3)
    assert said("translated").splitlines() == [one.text for one in expected]
    assert said("page.html").startswith("<!DOCTYPE html>")
    assert said("score").startswith("BLEU = ")
    assert "- seed: 1\n" in said("card.md")
    assert said("m/SHA256SUMS").count("\n") > 40
    assert said("train.en").count("\n") == 12000


def test_a_model_file_and_the_wheel_translate(
    python: Path, model: Path, tmp_path: Path
) -> None:
    check_commands(python, model, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_installed_from_the_index_it_is_small_and_serves(
    root: Path, built: Path, model: Path, tmp_path: Path, version: str
) -> None:
    interpreter = shutil.which(f"python{version}") or "false"
    made = subprocess.run([interpreter, "-m", "venv", tmp_path / "venv"], check=False)
    if made.returncode:
        pytest.skip(f"no Python {version} with the module venv is here")
    python = tmp_path / "venv/bin/python"
    pip = f"{python} -m pip install -q -c {root}/constraints.txt {built / WHEEL}"
    subprocess.run(pip.split(), env=without_pythonpath(), check=True)
    packages = tmp_path / f"venv/lib/python{version}/site-packages"
    size = f"du -sm --exclude=pip --exclude=pip-* {packages}"
    assert int(subprocess.check_output(size.split()).split()[0]) <= 300
    assert not (packages / "torch").exists()
    check_commands(python, model, tmp_path)
    command = f"{python.with_name('convs2s')} serve {model} --port 0"
    with subprocess.Popen(
        command.split(), env=without_pythonpath(), stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        (port,) = re.findall(r"http://127.0.0.1:(\d+)/", server.stderr.readline())
        answer = ModelServer(int(port)).translate("w1 w2", attention=True)
        server.terminate()
        server.communicate()
    assert (answer.status, server.returncode) == (200, 0)


LACKING = """
results ledger.jsonl --scale multi30k --output page.md => pandas => report
status . => fsspec => train
score-pairs m --source s --target t => torch => train
translate-document m --input page.md --output out => markdown_it => documents
"""


def test_a_command_names_the_extra_that_it_lacks(python: Path, tmp_path: Path) -> None:
    command = str(python.with_name("convs2s"))
    (tmp_path / "page.md").touch()
    for asked, module, extra in rows(LACKING):
        done = run_bare(python, command, *asked.split(), folder=tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith(f"convs2s: error: {module} is not installed: ")
        assert f"pip install 'convs2s[{extra}]'" in done.stderr


def test_extras_bring_the_modules_that_commands_name(stated: str) -> None:
    for extra, modules in EXTRAS.items():
        says(" ".join(required(stated, extra)).replace("-", "_"), *modules)
