"""What ``convs2s translate`` of one line loads: each module is time that the user waits."""

import subprocess
import sys
from pathlib import Path

import pytest

from convs2s.text.moses import LazyExpression

PROGRAM = """
import sys
before = set(sys.modules)
from convs2s.cli.main import main
main(["translate", *sys.argv[1:]])
print(*sorted(sys.modules.keys() - before), file=sys.stderr)
"""

MOST_OWN_MODULES = 120

PACKAGES = {
    # Settings.
    "annotated_types",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
    "yaml",
    # Text and models.
    "convs2s",
    "numpy",
    "regex",
    "sacremoses",
    "safetensors",
    "sentencex",  # of --split-sentences
    "subword_nmt",
    # The search without torch.
    "google",
    "ml_dtypes",
    "onnx",
    "onnxruntime",
    # Compressed files.
    "backports",
    "isal",
    "xopen",
    "zlib_ng",
    "zstandard",
    # What these load.
    "cloudpickle",
    "cython_runtime",
    "tqdm",
}


@pytest.mark.parametrize("precision", ["fp32", "auto --split-sentences"])
def test_few_packages_are_loaded_and_nothing_of_torch(
    model: Path, precision: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(model), "--device", "cpu"]
    command += ["--precision", *precision.split()]
    done = subprocess.run(
        command, input="a b c\n", capture_output=True, text=True, check=True
    )
    loaded = done.stderr.splitlines()[-1].split()
    tops = [name.partition(".")[0] for name in loaded]
    public = {name for name in tops if not name.startswith("_")}
    assert public - sys.stdlib_module_names <= PACKAGES
    assert tops.count("convs2s") <= MOST_OWN_MODULES


def test_tokenizing_loads_sacremoses_lightly() -> None:
    program = """
import sys
from convs2s.cli.main import main
main(["tokenize", "--language", "en"])
assert "sacremoses" in sys.modules and "joblib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], input=b"a\n", check=True)


def test_no_expression_is_compiled_before_it_is_used() -> None:
    expression = LazyExpression("(")  # which cannot be compiled
    with pytest.raises(Exception, match="unterminated"):
        expression.sub("", "")
    assert LazyExpression("b+").sub("-", "abbc") == "a-c"


def test_importing_sacremoses_exchanges_nothing_of_the_process() -> None:
    """Also not for the moment: what is loaded meanwhile, by any thread, would keep it."""
    program = """
import re, sys
from importlib.machinery import SourceFileLoader
compiled, exec_module, seen = re.compile, SourceFileLoader.exec_module, []
def watched(self, module):
    exec_module(self, module)
    seen.append((module.__name__, re.compile is compiled, "joblib" in sys.modules))
SourceFileLoader.exec_module = watched
before = [*sys.meta_path]
import convs2s.text.moses
during = [rest for name, *rest in seen if name.startswith("sacremoses.")]
assert during and all(rest == [True, False] for rest in during), seen
assert sys.meta_path == before
import joblib
joblib.Parallel
"""
    subprocess.run([sys.executable, "-c", program], check=True)
