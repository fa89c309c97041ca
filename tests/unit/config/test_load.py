"""The configuration as it is loaded: every default, what is merged, and what stands for what."""

from pathlib import Path

import pytest
import yaml

from convs2s.config.architecture import ConvS2SArchitecture
from convs2s.config.decoding import DecodingSettings
from convs2s.config.load import load
from convs2s.config.messages import validated
from convs2s.config.model import ModelSettings
from convs2s.config.settings import Settings
from convs2s.config.task import SHARED_WITH_TEXT, Headline
from convs2s.errors import UserError
from tests.support.user_task import TASK
from tests.unit.config.writing import write

SCALES = ["paper", "demo", "multi30k", "multi30k_trained", "mirror"]


def convs2s(model: ModelSettings) -> ConvS2SArchitecture:
    assert isinstance(model.architecture, ConvS2SArchitecture)
    return model.architecture


def test_a_task_of_five_keys_gets_every_default(copy: Path) -> None:
    write(copy / "config/tasks/mine.yaml", TASK)
    task = load(copy).tasks["mine"]
    assert task.headline == Headline(
        model="small", seeds=(1,), tests=("mine",), decoding="beam5"
    )
    assert task.vocabulary.merges == 8000
    assert task.hold_out is None
    assert task.name == "mine"


def test_a_task_takes_its_text_from_another(settings: Settings) -> None:
    word, bpe = settings.tasks["demo_en_fr_word"], settings.tasks["demo_en_fr"]
    assert all(getattr(word, key) == getattr(bpe, key) for key in SHARED_WITH_TEXT)
    assert (word.vocabulary.kind, bpe.vocabulary.kind) == ("word", "bpe")


def test_a_model_extends_another(settings: Settings) -> None:
    base, variant = (
        settings.models["ablation"],
        settings.models["ablation_no_source_position"],
    )
    changed = convs2s(base).positions.model_copy(update={"source": False})
    assert convs2s(variant).positions == changed
    assert convs2s(variant).encoder == convs2s(base).encoder
    assert variant.training == base.training


def test_a_model_extends_one_that_extends_another(copy: Path) -> None:
    with (copy / "config/models.yaml").open("a") as models:
        models.write(
            "\nfirst: {extends: small, description: a, training: {clip: 0.5}}\n"
        )
        models.write(
            "second: {extends: first, description: b, training: {threads: 3}}\n"
        )
    found = load(copy).models
    assert (found["second"].training.clip, found["second"].training.threads) == (0.5, 3)
    assert convs2s(found["second"]).encoder == convs2s(found["small"]).encoder


def test_the_default_search_is_the_papers() -> None:
    default = DecodingSettings()
    assert (default.beam, default.length_penalty) == (5, 1.0)


def test_overrides_reach_models_that_extend_the_changed_one(copy: Path) -> None:
    given = {"overrides": {"models": {"ablation": {"training": {"clip": 1e-3}}}}}
    training = load(copy, given).models["ablation_attention_1"].training
    assert (training.clip, training.momentum) == (1e-3, 0.99)


def test_the_local_file_wins_and_leaves_the_rest(copy: Path) -> None:
    write(copy / "config.local.yaml", "mirrors: [/a/mirror]\nplots: {sentences: [7]}\n")
    options = load(copy).options
    assert options.mirrors == ("/a/mirror",)
    assert options.plots.sentences == (7,)
    assert options.scale == "paper"


def test_the_home_folder_of_a_mirror_is_found(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    write(
        copy / "config.local.yaml", "mirrors: [~/mirror, '~', ../~, https://host/~me]\n"
    )
    assert load(copy).options.mirrors == (
        "/home/me/mirror",
        "/home/me",
        "../~",
        "https://host/~me",
    )


def test_given_values_stand_for_the_files(copy: Path) -> None:
    write(copy / "config.local.yaml", "cores: 7\n")
    assert load(copy, {"scale": "demo"}).options.cores is None


def test_numbers_in_scientific_notation_are_numbers(copy: Path) -> None:
    write(
        copy / "config.local.yaml",
        "overrides: {models: {demo: {training: {clip: 1e-4}}}}\n",
    )
    assert load(copy).models["demo"].training.clip == 1e-4


def test_what_snakemake_leaves_as_text_is_read_where_no_text_is_wanted(
    copy: Path,
) -> None:
    training = {
        "clip": "1e-4",
        "learning_rate": "0.5",
        "threads": "3",
        "maximum_epochs": "null",
    }
    architecture = {
        "attention": ["1", "2"],
        "encoder": [{"layers": "2", "width": 8, "kernel": 3}],
    }
    loaded = load(
        copy,
        {
            "plots": {"sentences": ["4"]},
            "overrides": {
                "models": {
                    "demo": {"training": training, "architecture": architecture},
                    "small_lstm": {"architecture": {"initialization": "0.1"}},
                },
                "tasks": {"demo_en_fr": {"description": "3", "clean": {"ratio": "2"}}},
                "decodings": {
                    "greedy": {"replace_unknown": "false", "length_penalty": "0"}
                },
            },
        },
    )
    demo = loaded.models["demo"]
    assert (demo.training.clip, demo.training.learning_rate) == (1e-4, 0.5)
    assert (demo.training.threads, demo.training.maximum_epochs) == (3, None)
    assert (convs2s(demo).attention, convs2s(demo).encoder[0].layers) == ((1, 2), 2)
    assert (
        loaded.models["small_lstm"].architecture.model_dump()["initialization"] == 0.1
    )
    assert loaded.options.plots.sentences == (4,)
    assert loaded.tasks["demo_en_fr"].description == "3"
    assert loaded.tasks["demo_en_fr"].clean.ratio == 2
    greedy = loaded.decodings["greedy"]
    assert (greedy.replace_unknown, greedy.length_penalty) == (False, 0)


def test_a_whole_number_is_a_number_and_a_truth_value_is_none() -> None:
    stated = {
        "description": "",
        "architecture": {"kind": "lstm"},
        "training": {"clip": 1},
    }
    clip = validated(ModelSettings, stated, "here").training.clip
    assert (clip, type(clip)) == (1.0, float)
    with pytest.raises(UserError, match=r"clip: .*, not true"):
        validated(ModelSettings, stated | {"training": {"clip": True}}, "here")


def test_a_row_has_what_its_table_says_of_all_rows(settings: Settings) -> None:
    table = settings.paper["table2"]
    cited, ours, ten = table.rows[0], table.rows[2], table.rows[-1]
    assert (cited.runs, ours.runs, ten.runs) == ((), ("ensemble8",), ("ensemble10",))
    assert (ours.decoding, ten.decoding) == ("beam5_en_de", "beam5")
    assert cited.comparison("here", table.columns) is None
    assert ten.comparison("here", table.columns) == (ten.task, ten.model)
    assert (ten.task, ten.testset) == ("wmt14_en_fr", "newstest2014")


def test_effective_takes_the_headline_unless_told(settings: Settings) -> None:
    usual = settings.effective("demo_en_fr")
    assert (usual["model"]["name"], usual["decoding"]["name"]) == ("demo", "beam5")
    other = settings.effective("demo_en_fr", "small", "greedy")
    assert other["model"]["architecture"]["embedding"] == 256
    assert other["decoding"]["beam"] == 1


def test_effective_is_printed_as_yaml(settings: Settings) -> None:
    plain = settings.effective("demo_en_fr")
    assert yaml.safe_load(yaml.safe_dump(plain)) == plain
    assert [part.get("name") for part in plain.values()] == [
        "demo_en_fr",
        "demo",
        "beam5",
        "paper",
        None,
    ]
    assert plain["task"]["headline"]["tests"] == ["test"]
    assert not {"scale", "overrides"} & set(plain["options"])


def test_unknown_names_are_refused(settings: Settings) -> None:
    with pytest.raises(
        UserError, match="unknown task 'demo_en_fx'; did you mean 'demo_en_fr'"
    ):
        settings.effective("demo_en_fx")
    with pytest.raises(UserError, match="unknown model 'smal'; did you mean 'small'"):
        settings.model("smal")
    with pytest.raises(
        UserError, match="unknown decoding 'beam55'; did you mean 'beam5'"
    ):
        settings.effective("demo_en_fr", decoding="beam55")


def test_every_scale_has_folders_of_its_own(root: Path) -> None:
    scales = {name: load(root, {"scale": name}).scale for name in SCALES}
    for folder in ("results_dir", "downloads_dir"):
        assert len({getattr(scale, folder) for scale in scales.values()}) == len(SCALES)
    assert [name for name, scale in scales.items() if scale.stand_in is None] == [
        "paper"
    ]


def test_the_mirror_has_the_papers_tasks_and_test_sets(root: Path) -> None:
    tasks = load(root, {"scale": "mirror"}).tasks
    assert tasks["wmt14_en_de"].headline_tests() == [
        "newstest2014_filtered",
        "newstest2014",
    ]
    assert tasks["wmt14_en_de"].name == "wmt14_en_de"


def test_a_scales_models_and_seeds_stand_in_headlines_too(root: Path) -> None:
    tasks = load(root, {"scale": "mirror"}).tasks
    headlines = [tasks[name].headline for name in ("wmt14_en_fr", "wmt16_en_ro")]
    assert [(one.model, one.seeds) for one in headlines] == [("demo", (1, 2))] * 2


def test_a_file_of_another_suffix_is_named(copy: Path) -> None:
    (copy / "config/tasks/.#demo_en_fr.yaml").symlink_to("a lock of Emacs")
    load(copy)
    write(copy / "config/tasks/mine.yml", "description: of mine")
    with pytest.raises(
        UserError, match=r"^config/tasks/mine\.yml: is not read: rename it to"
    ):
        load(copy)


def test_a_task_of_the_command_line_is_no_fault_of_a_file(copy: Path) -> None:
    with pytest.raises(
        UserError, match=r"^--config or --configfile: tasks: unknown task 'multi30k'"
    ):
        load(copy, {"tasks": ["multi30k"]})


def test_a_name_is_not_taken_for_a_text_that_snakemake_left(copy: Path) -> None:
    pairs = [{"source": "a", "target": "b"}]
    changes = {"demo_en_fr": {"corpus": {"tests": {"train": pairs}}}}
    with pytest.raises(UserError, match=r"corpus\.tests\.train: .*'train'"):
        load(copy, {"overrides": {"tasks": changes}})


def test_a_task_does_not_share_the_folder_of_the_benchmarks(copy: Path) -> None:
    write(copy / "config/tasks/benchmarks.yaml", "description: of mine")
    with pytest.raises(
        UserError, match=r"^config/tasks/benchmarks\.yaml: the results have a fold"
    ):
        load(copy)
