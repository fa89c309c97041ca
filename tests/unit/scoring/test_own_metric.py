"""A metric of the user's own: what it returns must be a number."""

from pathlib import Path

import pytest

from convs2s.config.extensions import export_extensions
from convs2s.errors import UserError
from convs2s.scoring.evaluation import further_score


def scored(folder: Path, returns: str) -> float:
    (folder / "own.py").write_text(
        f"import numpy\nfrom convs2s.scoring.bleu import Score\n"
        f"METRICS = {{'own': lambda text, reference:\n {returns}}}\n"
    )
    export_extensions(["own.py"], folder)
    return further_score("own", ["a"], ["a"], source=None).score


@pytest.mark.parametrize(
    "returns", ["3", "3.0", "numpy.float32(3)", "numpy.array(3)", "Score(3.0, 'x')"]
)
def test_a_number_is_taken(tmp_path: Path, returns: str) -> None:
    assert scored(tmp_path, returns) == 3


@pytest.mark.parametrize(
    "returns",
    ["float('nan')", "None", "[1.0]", "'3'", "True", "Score(float('inf'), 'x')"],
)
def test_what_is_no_number_is_refused(tmp_path: Path, returns: str) -> None:
    with pytest.raises(UserError, match="metric own: expected a finite number, found "):
        scored(tmp_path, returns)


def test_what_it_raises_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"own\.py:4: ZeroDivisionError: division by zero"
    ):
        scored(tmp_path, "1 / 0")
    (tmp_path / "own.py").write_text("import math\nMETRICS = {'own': math.exp}\n")
    # In no line of the file.
    with pytest.raises(UserError, match=r"metric own: TypeError: "):
        further_score("own", ["a"], ["a"], source=None)
    (tmp_path / "own.py").write_text("METRICS = {'own': max}\n")
    with pytest.raises(UserError, match=r"metric own: ValueError: no signature found"):
        further_score("own", ["a"], ["a"], source=None)
