"""The package needs little: it plans a workflow where only Snakemake is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

import convs2s.config

MODULES = sorted(
    path.stem for path in Path(convs2s.config.__file__).parent.glob("[a-z]*.py")
)

PROGRAM = """
import importlib, sys

NEEDED = {"yaml", "_yaml", "pydantic", "pydantic_core", "annotated_types", "typing_extensions",
          "typing_inspection"}

OWN = "convs2s.config", "convs2s.errors", "convs2s.files"

class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        own = name == "convs2s" or name.startswith(OWN)
        standard = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
        if not (own or standard or top in NEEDED):
            raise ImportError(f"{name} is not for the configuration")

sys.meta_path.insert(0, Refuse())
for name in sys.argv[1:]:
    importlib.import_module(f"convs2s.config.{name}")
print(*sys.modules)
"""


def modules_after(*names: str) -> set[str]:
    """Return the modules that are there when those of the configuration are imported."""
    command = [sys.executable, "-c", PROGRAM, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_all_modules_need_yaml_and_pydantic_alone() -> None:
    assert "load" in MODULES
    assert {f"convs2s.config.{name}" for name in MODULES} <= modules_after(*MODULES)


@pytest.mark.parametrize("name", ["decoding", "corpus", "runs", "file_reference"])
def test_a_section_needs_no_others(name: str) -> None:
    loaded = {
        module for module in modules_after(name) if module.startswith("convs2s.config.")
    }
    assert loaded <= {"convs2s.config.section", f"convs2s.config.{name}"}
