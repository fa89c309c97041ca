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

PACKAGES = """
annotated_types pydantic pydantic_core typing_extensions typing_inspection yaml
convs2s numpy regex sacremoses safetensors sentencex subword_nmt
google ml_dtypes onnx onnxruntime
backports isal xopen zlib_ng zstandard
cloudpickle cython_runtime tqdm
"""
"""Of settings, of text and models, of the search without torch, of compressed files, and what these
load; sentencex is that of --split-sentences."""


def test_few_packages_are_loaded_and_nothing_of_torch(model: Path) -> None:
    for precision in ("fp32", "auto --split-sentences"):
        options = f"--device cpu --precision {precision}".split()
        command = [sys.executable, "-c", PROGRAM, str(model), *options]
        done = subprocess.run(
            command, input="a b c\n", capture_output=True, text=True, check=True
        )
        loaded = done.stderr.splitlines()[-1].split()
        tops = [name.partition(".")[0] for name in loaded]
        public = {name for name in tops if not name.startswith("_")}
        assert public - sys.stdlib_module_names <= set(PACKAGES.split())
        assert tops.count("convs2s") <= MOST_OWN_MODULES


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
