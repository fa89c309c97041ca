"""What an edit runs again: a script's fingerprint is of what it really runs."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.package import import_graph, reachable

DECODES = {
    "attend_to_example",
    "decode_test_set",
    "list_n_best",
    "plot_attention",
    "time_decoding",
}
"""Scripts that search, or look at what a search did."""


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, set[str]]:
    """Script that carries a fingerprint -> the modules of the package that it runs."""
    graph = import_graph(root)
    stated = (root / "rules/fingerprints.smk").read_text("utf-8")
    without = re.search(r"WITHOUT_FINGERPRINT = (\{.*?\})", stated)
    assert without
    found = {}
    for path in (root / "workflow/scripts").glob("*.py"):
        if path.name in ast.literal_eval(without[1]):
            continue
        name, text = path.stem, path.read_text("utf-8")
        modules = re.findall(r"^from (convs2s\S*) import", text, re.MULTILINE)
        found[name] = reachable(graph, *modules)
    assert len(found) > 25
    return found


def test_of_the_pipeline_only_the_job_wrapper_counts(runs: dict[str, set[str]]) -> None:
    for name, modules in runs.items():
        pipeline = {module for module in modules if module.startswith("convs2s.pipeline.")}
        assert pipeline == {"convs2s.pipeline.job"}, name


def test_the_trainer_counts_for_no_script(runs: dict[str, set[str]]) -> None:
    for name, modules in runs.items():
        training = {module for module in modules if module.startswith("convs2s.training.")}
        assert training <= {"convs2s.training.history", "convs2s.training.identity"}, name


def test_the_search_counts_where_something_is_searched(runs: dict[str, set[str]]) -> None:
    searching = {name for name, modules in runs.items() if "convs2s.decoding.search" in modules}
    assert searching <= DECODES | {"measure_perplexity", "score_n_best"}
    assert "decode_test_set" in searching


def test_preparation_does_not_depend_on_networks(runs: dict[str, set[str]]) -> None:
    prepares = ("tokenize", "extract", "shard", "count", "learn_bpe", "build", "binarize", "join")
    for name, modules in runs.items():
        if name.startswith(prepares):
            assert not any(module.startswith("convs2s.models") for module in modules), name


def test_an_edit_of_bpe_counts_no_words_again(runs: dict[str, set[str]]) -> None:
    for name in ("tokenize_and_filter", "gather_shards", "count_pairs", "count_words"):
        assert "convs2s.text.bpe" not in runs[name], name
