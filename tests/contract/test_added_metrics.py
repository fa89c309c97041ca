"""Metrics of a user's own: what they return. The examples run in workflow/test_extensions.py."""

from pathlib import Path

from convs2s.config.extensions import export_extensions
from tests.contract.score_files import decoded, read, scored_bleu


def test_a_number_is_taken_with_the_metrics_own_signature(tmp_path: Path) -> None:
    for returned in ("3", "numpy.array(3)", "Score(3.0, 'x')"):
        (tmp_path / "own.py").write_text(
            "import numpy\nfrom convs2s.scoring.bleu import Score\n"
            f"METRICS = {{'own': lambda text, reference: {returned}}}\n"
        )
        export_extensions(["own.py"], tmp_path)
        scored = scored_bleu(tmp_path, "scored", [decoded(1, "a")], metrics=["own"])
        score = read(scored)["further"]["own"]
        assert score["score"] == 3
        assert score["signature"].startswith("own|code:")
        assert score["signature"].endswith("|x") == ("Score" in returned)
