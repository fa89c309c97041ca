"""What an edit runs again: a script's fingerprint is of what it really runs."""

import re
from pathlib import Path

from tests.house.package import import_graph, imports_of, names_in, reachable
from tests.house.rules import label, rules, script

# A training knows by its version and its inputs whether it is to be repeated, a download by its
# checksum; a model's settings are their own content; a budget is printed each time.
WITHOUT_FINGERPRINT = {"download_file", "write_model_settings", "preflight"}

SEARCH = {
    "attend_to_example",
    "decode_test_set",
    "list_n_best",
    "measure_perplexity",
    "plot_attention",
    "score_n_best",
    "time_decoding",
}
"""Scripts that run an edit of the search again."""

PREPARE = re.compile(
    r"extract|prepare|split|tokenize|join|truecase|count|learn|build|binarize"
)
COUNT = ("tokenize_and_filter", "join_training_text", "count_pairs", "count_words")


def test_every_rule_with_a_script_states_its_code(root: Path) -> None:
    stated = 0
    for rule in rules(root):
        name = (script(rule) or "").removesuffix(".py")
        expected = [name] if name and name not in WITHOUT_FINGERPRINT else []
        found = re.findall(r'^ +code=code\("(\w+)"', rule, re.MULTILINE)
        assert found == expected, rule
        named = re.findall(
            r'^ +(?:code=code\(|tries=tries\().*?"(\w+)"\),$', rule, re.MULTILINE
        )
        assert set(named) <= {label(rule)}, rule
        stated += len(expected)
    assert stated > 40


def test_a_script_runs_no_more_than_it_needs(root: Path) -> None:
    graph = import_graph(root)
    runs = {}
    for path in (root / "workflow/scripts").glob("*.py"):
        if path.stem not in WITHOUT_FINGERPRINT:
            named = {name for one in imports_of(path) for name in names_in(one)}
            runs[path.stem] = reachable(graph, *named & graph.keys())
    assert len(runs) > 25
    for name, modules in runs.items():
        rooms = {".".join(module.split(".")[:2]) for module in modules}
        pipeline = {one for one in modules if one.startswith("convs2s.pipeline.")}
        wrapper = {
            f"convs2s.pipeline.{part}" for part in ("job", "living", "made", "tries")
        }
        # Those that extract text read the sources.
        assert pipeline - {"convs2s.pipeline.sources"} == wrapper, name
        training = {one for one in modules if one.startswith("convs2s.training.")}
        known = {"convs2s.training.history", "convs2s.training.identity"}
        assert training <= known, name
        assert "convs2s.decoding.search" not in modules or name in SEARCH, name
        assert "convs2s.models" not in rooms or not PREPARE.match(name), name
    assert "convs2s.decoding.search" in runs["decode_test_set"]
    for name in COUNT:
        assert "convs2s.text.bpe" not in runs[name], name
