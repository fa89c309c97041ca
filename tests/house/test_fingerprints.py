"""What an edit runs again: a script's fingerprint is of what it really runs."""

import re
from pathlib import Path

import pytest

from tests.support.package import import_graph, reachable
from tests.support.rules import label, rules, script

DECODES = {
    "attend_to_example",
    "decode_test_set",
    "list_n_best",
    "plot_attention",
    "time_decoding",
}
"""Scripts that search, or look at what a search did."""


# A training knows by its version and its inputs whether it is to be repeated, a download by its
# checksum; a model's settings are their own content; a budget is printed each time.
WITHOUT_FINGERPRINT = {"download_file", "write_model_settings", "preflight"}


def test_every_rule_with_a_script_states_its_code(root: Path) -> None:
    stated = 0
    for rule in rules(root):
        name = (script(rule) or "").removesuffix(".py")
        expected = [name] if name and name not in WITHOUT_FINGERPRINT else []
        assert re.findall(r'^ +code=code\("(\w+)"', rule, re.MULTILINE) == expected, (
            rule
        )
        named = re.findall(
            r'^ +(?:code=code\(|tries=tries\().*?"(\w+)"\),$', rule, re.MULTILINE
        )
        assert named == ([label(rule)] if named else []), rule
        stated += len(expected)
    assert stated > 40


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, set[str]]:
    """Script that carries a fingerprint -> the modules of the package that it runs."""
    graph = import_graph(root)
    found = {}
    for path in (root / "workflow/scripts").glob("*.py"):
        name, text = path.stem, path.read_text("utf-8")
        if name in WITHOUT_FINGERPRINT:
            continue
        modules = re.findall(r"^from (convs2s\S*) import", text, re.MULTILINE)
        found[name] = reachable(graph, *modules)
    assert len(found) > 25
    return found


def test_of_the_pipeline_only_the_job_wrapper_counts(runs: dict[str, set[str]]) -> None:
    for name, modules in runs.items():
        pipeline = {
            module for module in modules if module.startswith("convs2s.pipeline.")
        }
        pipeline.discard("convs2s.pipeline.sources")  # of those that extract text
        assert pipeline == {
            f"convs2s.pipeline.{part}" for part in ("job", "living", "tries")
        }, name


def test_the_trainer_counts_for_no_script(runs: dict[str, set[str]]) -> None:
    for name, modules in runs.items():
        training = {
            module for module in modules if module.startswith("convs2s.training.")
        }
        assert training <= {"convs2s.training.history", "convs2s.training.identity"}, (
            name
        )


def test_the_search_counts_where_something_is_searched(
    runs: dict[str, set[str]],
) -> None:
    searching = {
        name for name, modules in runs.items() if "convs2s.decoding.search" in modules
    }
    assert searching <= DECODES | {"measure_perplexity", "score_n_best"}
    assert "decode_test_set" in searching


def test_preparation_does_not_depend_on_networks(runs: dict[str, set[str]]) -> None:
    first = ("extract", "prepare", "split", "tokenize", "join", "truecase")
    then = ("count", "learn", "build", "binarize")
    for name, modules in runs.items():
        if name.startswith((*first, *then)):
            assert not any(module.startswith("convs2s.models") for module in modules), (
                name
            )


def test_an_edit_of_bpe_counts_no_words_again(runs: dict[str, set[str]]) -> None:
    for name in (
        "tokenize_and_filter",
        "join_training_text",
        "count_pairs",
        "count_words",
    ):
        assert "convs2s.text.bpe" not in runs[name], name
