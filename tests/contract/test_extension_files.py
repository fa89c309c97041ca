"""Extensions: which are known, what of them is run, and what an edit changes."""

import hashlib
import sys
from pathlib import Path

import pytest

from convs2s.config.architecture import NetworkSettings, parse_architecture
from convs2s.config.extensions import (
    VARIABLE,
    added,
    code_of,
    digest_of_extension,
    export_extensions,
)
from convs2s.config.load import load
from convs2s.models.build import build_network
from tests.contract.score_files import decoded, read, scored_bleu

pytestmark = pytest.mark.usefixtures("in_folder")

NETWORK = """
from typing import Literal
from convs2s.config.architecture import NetworkSettings

class Settings(NetworkSettings):
    "Of a network that is none."
    kind: Literal["tiny"]
    width: int = 2

    def build(self, source_types, target_types):
        return torch.zeros(self.width, source_types)

ARCHITECTURES = {"tiny": Settings}
import torch
LOADED = True
"""
METRIC = "METRICS = {'lines': lambda translations, references: len(translations)}\n"


def write(text: str, name: str = "own.py") -> Path:
    """Write an extension into the current folder, which this process then knows."""
    path = Path(name).absolute()
    path.write_text(text, "utf-8")
    export_extensions([name], Path())
    return path


def test_the_options_of_the_current_folder_name_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert added("METRICS", ()) == {}
    monkeypatch.delenv(VARIABLE)
    Path("own.py").write_text(METRIC)
    Path("config.yaml").write_text("extensions: [other.py]")
    Path("config.local.yaml").write_text("extensions: [own.py]")
    assert list(added("METRICS", ())) == ["lines"]


def test_modules_of_one_workflow_have_all_of_their_extensions(root: Path) -> None:
    write(METRIC)
    Path("other.py").write_text("METRICS = {'words': len}")
    given = {"extensions": [str(Path("other.py").absolute())]}
    load(root, given, given_by="config of the module")
    assert added("METRICS", ()).keys() == {"lines", "words"}
    load(root, given)
    assert added("METRICS", ()).keys() == {"words"}


def test_a_plan_stops_before_torch_and_a_network_runs_the_rest() -> None:
    path = write(NETWORK)
    settings = parse_architecture({"kind": "tiny", "width": 3})
    assert isinstance(settings, NetworkSettings)
    module = sys.modules[str(path)]
    assert not hasattr(module, "LOADED")
    assert build_network(settings, 4, 5).shape == (3, 4)
    assert hasattr(module, "LOADED")
    assert settings.model_dump() == {"kind": "tiny", "width": 3}


def test_a_metrics_number_is_taken_with_its_own_signature() -> None:
    for returned in ("3", "numpy.array(3)", "Score(3.0, 'x')"):
        write(
            "import numpy\nfrom convs2s.scoring.bleu import Score\n"
            f"METRICS = {{'own': lambda text, reference: {returned}}}\n"
        )
        scored = scored_bleu(Path(), "scored", [decoded(1, "a")], metrics=["own"])
        score = read(scored)["further"]["own"]
        assert score["score"] == 3
        assert score["signature"].startswith("own|code:")
        assert score["signature"].endswith("|x") == ("Score" in returned)


def test_an_edit_of_the_code_alone_trains_again() -> None:
    digests = []
    for text in (
        NETWORK,
        NETWORK.replace("that is none", "of nothing") + "# a comment",
        NETWORK.replace("torch.zeros", "torch.ones"),
    ):
        write(text)
        digests.append(parse_architecture({"kind": "tiny"}).code()["code"])
    assert digests[0] == digests[1] != digests[2]
    assert parse_architecture({"kind": "lstm"}).code() == {}


def test_an_edit_counts_whatever_the_name_and_wherever_a_value_is_from() -> None:
    text = "from functools import partial\nMETRICS = {'rounded': partial(round, 1)}\n"
    for name in ("own.py", "own"):
        digests = set()
        for edited in (text, text.replace("1", "2")):
            write(edited, name)
            digests.add(digest_of_extension("METRICS", "rounded"))
        assert len(digests - {None}) == 2


def test_the_code_of_a_file_is_the_same_in_every_version_of_python() -> None:
    """What Python 3.11 writes of it, where later ones know type parameters."""
    code = code_of('def f(x=None):\n    """Words."""\n    return x  # more words\n')
    assert hashlib.sha256(code.encode()).hexdigest()[:16] == "c2a82732a1b4a20e"
