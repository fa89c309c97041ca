"""What cannot be had is refused before anything is planned, with the name that was meant."""

import re
from pathlib import Path

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.options import Options
from convs2s.config.settings import Settings
from convs2s.config.task import Task
from convs2s.errors import UserError
from convs2s.pipeline.asked import check_file, check_options, check_targets, task_warnings
from tests.support.user_task import TASK

RULES = ["demo", "paper", "tables", "train_model"]
RUN = "results/multi30k_en_de/models/small"


@pytest.fixture(scope="module")
def settings(root: Path) -> Settings:
    return load(root, {})


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no results, those of a demo that was run here least of all."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "results/multi30k_en_dee/bleu.txt",
            "unknown task 'multi30k_en_dee'; did you mean 'multi30k_en_de'?",
        ),
        (
            "results/demo_en_fr/models/dmo/seed1/model.safetensors",
            "unknown model 'dmo'; did you mean 'demo'?",
        ),
        (
            f"{RUN}/seedx/model.safetensors",
            "unknown run 'seedx'; expected a seed, such as seed1, or an ensemble of the first "
            "seeds, such as ensemble2",
        ),
        (
            f"{RUN}/released/model.safetensors",
            "unknown run 'released'; expected a seed, such as seed1, or an ensemble of the first "
            "seeds, such as ensemble2",
        ),
        (
            f"{RUN}/seed1/test_2016_flicker.beam5.txt",
            "unknown test set 'test_2016_flicker'; did you mean 'test_2016_flickr'?",
        ),
        (
            f"{RUN}/seed1/test_2016_flickr.bean5.bleu.json",
            "unknown decoding 'bean5'; did you mean 'beam5'?",
        ),
        (
            "results/scales/demo/paper/table1.md",
            "belongs to another scale: add --config scale=demo",
        ),
        (
            "results/demo_en_fr/compare/test.beam5.demo-vs-smal.txt",
            "unknown model 'smal'; did you mean 'small'?",
        ),
        (
            f"{RUN[:-5]}small_lstm/seed1/test_2016_flickr.beam5.txt",
            "'beam5' replaces unknown words by attention, which 'small_lstm' does not "
            "have; name one with replace_unknown: false, such as lstm_beam2",
        ),
        (
            "gigaword",
            "is a task, not a target: ask for results/gigaword/rouge.txt",
        ),
        ("demmo", "unknown target 'demmo'; did you mean 'demo'?"),
        ("result/demo_en_fr/bleu.txt", "unknown folder 'result'; did you mean 'results'?"),
        ("results/papr/table1.md", "unknown task 'papr'; did you mean 'paper'?"),
        (
            "results/demo_en_fr",
            "is a task, not a target: ask for results/demo_en_fr/bleu.txt",
        ),
        (
            f"{RUN}/seed1/test_2016_flickr.beam5.rescored-by-smal-seed2.bleu.txt",
            "unknown model 'smal'; did you mean 'small'?",
        ),
        (
            f"{RUN}/ensemble2/curve.svg",
            "is of one model, not of an ensemble: ask for that of seed1",
        ),
        (
            f"{RUN}/ensemble2/test_2016_flickr.beam5.attention1.svg",
            "is of one model, not of an ensemble: ask for that of seed1",
        ),
        (
            f"{RUN[:-5]}small_lstm/seed1/test_2016_flickr.lstm_beam2.attention1.svg",
            "'small_lstm' has no attention to show",
        ),
        (
            f"{RUN[:-5]}ablation/seed1/model.safetensors",
            "'ablation' selects its vocabulary by aligned words, but 'multi30k_en_de' has one of "
            "pieces of words; name a word task, or a model without vocabulary_selection",
        ),
    ],
)
def test_a_slip_of_the_pen_is_told_with_the_nearest_name(
    settings: Settings, target: str, message: str
) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(f'{target}: {message}')}$"):
        check_targets(["paper", target], RULES, settings)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "results/demo_en_fr/bleu.txt",
            "belongs to another scale than demo, whose results are below results/scales/demo: ask "
            "for results/scales/demo/demo_en_fr/bleu.txt, or leave out scale=demo",
        ),
        (
            "results/scales/multi30k/paper/table1.md",
            "belongs to another scale: add --config scale=multi30k",
        ),
    ],
)
def test_a_scale_has_its_own_folder(
    root: Path, target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load(root, {"scale": "demo"})
    monkeypatch.chdir(tmp_path)  # where it has been made before
    (tmp_path / target).parent.mkdir(parents=True)
    (tmp_path / target).touch()
    with pytest.raises(UserError, match=f"^{re.escape(f'{target}: {message}')}$"):
        check_targets([target], RULES, settings)
    there = ["results/scales/demo/paper/table1.md", "elsewhere/x.txt", "results", "results/scales"]
    check_targets(there, RULES, settings)


def test_what_there_is_may_be_asked_for(settings: Settings, root: Path) -> None:
    there = [
        *RULES,
        "results/multi30k_en_de/bleu.txt",
        f"{RUN}/settings.json",
        f"{RUN}/seed12/history.jsonl",
        f"{RUN}/ensemble3/test_2016_flickr.beam5.scored-by-small-seed1.nbest.zst",
        f"{RUN}/seed1/valid.beam5.length_penalty.json",
        f"{RUN}/seed1/test_2016_flickr.rescored.bleu.json",
        f"{RUN}/seed1/training.speed.json",
        "results/paper/table1.md",
        "results/multi30k_en_de/corpus/counts.txt",
        "results/demo_en_fr/compare/test.beam5.demo-vs-small.txt",
        f"{RUN[:-5]}small_lstm/seed1/test_2016_flickr.small_lstm_beam2.txt",
        "a_file_of_another_workflow.txt",
        str(root / "README.md"),
    ]
    check_targets(there, RULES, settings)


def test_a_target_unlike_any_other_is_left_to_snakemake(settings: Settings) -> None:
    overrides = f"overrides={{models: {{small: {{description: {'a' * 300}}}}}}}"
    check_targets(["xyzzy", overrides, "results/"], RULES, settings)


def test_the_folder_of_results_may_be_elsewhere(settings: Settings) -> None:
    elsewhere = settings.placed("inner/results", "inner/downloads", {})
    with pytest.raises(UserError, match="unknown task 'demo_en_rf'; did you mean 'demo_en_fr'"):
        check_targets(["inner/results/demo_en_rf/bleu.txt"], RULES, elsewhere)


def test_a_mirror_that_is_missing_is_named(tmp_path: Path) -> None:
    check_options(Options(mirrors=(str(tmp_path), "https://mirror.example/of")), {})
    missing = tmp_path / "unmounted"
    with pytest.raises(UserError, match=f"^mirrors: {missing}: no such folder: mount it, or"):
        check_options(Options(mirrors=(str(tmp_path), str(missing))), {})


def test_text_without_blanks_is_told_of(settings: Settings) -> None:
    assert task_warnings(settings.tasks) == []
    own = yaml.safe_load(TASK) | {"languages": {"source": "en", "target": "zh"}}
    (line,) = task_warnings({"mine": Task.named("mine", own)})
    assert line.startswith("mine: text in 'zh' has no blanks between words, and no preparation")
    split = own | {"preparation": {"train": "none", "test": "none"}}
    assert task_warnings({"mine": Task.named("mine", split)}) == []


@pytest.mark.parametrize(("code", "known"), [("rom", False), ("yue", True), ("ro", True)])
def test_a_language_code_without_abbreviations_is_told_of(code: str, known: bool) -> None:
    own = yaml.safe_load(TASK) | {"languages": {"source": "en", "target": code}}
    lines = task_warnings({"mine": Task.named("mine", own)})
    assert lines == [] if known else "mine: 'rom' has no list of abbreviations" in lines[0]


# ---- files that no rule makes ----

PATTERNS = [
    "results/{task}/bleu.txt",
    "results/{task}/examples.txt",
    "results/{task}/models/{model}/{run}/{testset}.{decoding}.bleu.json",
    "results/{task}/models/{model}/{run}/{testset}.{decoding}.attention{line}.svg",
    "results/{task}/compare/{testset}.{decoding}.{baseline}-vs-{system}.txt",
]
MADE_RUN = "results/one/models/small/seed1"
MADE = re.compile(
    r"results/one/(bleu|examples)\.txt|results/one/compare/test\.beam5\.a-vs-b\.txt|"
    r"results/one/models/small/seed1/test\.beam5\.(bleu\.json|attention\d\.svg)"
)


def is_made(path: str) -> bool:
    return MADE.fullmatch(path) is not None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("results/one/bleuu.txt", "unknown file 'bleuu.txt'; did you mean 'bleu.txt'?"),
        (
            f"{MADE_RUN}/test.beam5.blue.json",
            "unknown file 'test.beam5.blue.json'; did you mean 'test.beam5.bleu.json'?",
        ),
        (
            "results/one/compare/test.beam5.a.b.txt",
            "unknown file 'test.beam5.a.b.txt'; expected {testset}.{decoding}."
            "{baseline}-vs-{system}.txt",
        ),
        (
            "results/one/zzz",
            "unknown file 'zzz'; expected one of bleu.txt, examples.txt",
        ),
    ],
)
def test_the_nearest_file_of_the_folder_is_named(path: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}: {message}')}$"):
        check_file(path, PATTERNS, is_made)


@pytest.mark.parametrize(
    "path", ["results/one/bleu.txt", f"{MADE_RUN}/test.beam5.attention3.svg", "results/a/b/c/d/e/f"]
)
def test_what_is_made_and_what_no_folder_is_known_of_pass(path: str) -> None:
    check_file(path, PATTERNS, is_made)
