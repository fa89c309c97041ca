"""The examples of docs/extending.md, added to a user's own language pair and run as typed."""

import re
from pathlib import Path

import pytest

from convs2s.config.extensions import VARIABLE
from tests.support.checkout import Checkout, Done

MODEL = "results/mine_en_nl/models/transformer/seed1"
SCORE = f"{MODEL}/test.greedy.bleu.json"
WORDS = "results/characters_en_nl/corpus/tok/test.source.zst"
TABLE = "results/paper/vaswani_table2.md"
METRICS = "metrics: [WER]\nbleu_tokenize: char\n"
TOKENIZED = (
    "preparation: {train: characters, test: characters}\nvocabulary: {kind: word}\n"
)
TINY = {
    "architecture": {"layers": 1, "width": 16, "heads": 2},
    "training": {"maximum_epochs": 2},
}


@pytest.fixture(scope="module")
def extended(
    root: Path,
    first_run: tuple[Checkout, Done],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Checkout, Done]:
    """The pair with a metric, a network and an exhibit, its text in characters, BLEU too."""
    checkout = first_run[0].copy(tmp_path_factory.mktemp("extended"))
    text = {path.name: path.read_text("utf-8") for path in root.glob("examples/*.*")}
    for file, more in (
        ("tasks/mine_en_nl.yaml", METRICS),
        ("paper.yaml", text["exhibit.yaml"]),
    ):
        before = checkout.read(f"config/{file}")
        checkout.write(f"config/{file}", f"{before}\n{more}")
    task = f"{text['task.yaml']}\n{TOKENIZED}"
    checkout.write("config/tasks/characters_en_nl.yaml", task)
    checkout.write("config/models.d/transformer.yaml", text["models.yaml"])
    extensions = [f"examples/{name}" for name in text if name.endswith(".py")]
    for file in extensions:
        checkout.write(file, text[Path(file).name])
    options = checkout.options()
    options["overrides"]["models"]["transformer"] = TINY
    checkout.configure({**options, "extensions": extensions})
    return checkout, checkout.snakemake(SCORE, WORDS, TABLE).succeeded()


def test_the_score_is_of_the_network_and_by_the_metric_and_nothing_else_is_made_again(
    extended: tuple[Checkout, Done],
) -> None:
    checkout, done = extended
    made = {"train_model", "write_model_settings", "decode_test_set", "evaluate_bleu"}
    made |= {"extract_corpus", "tokenize_file", "write_table"}
    assert done.planned.keys() == made
    score = checkout.json(SCORE)
    assert score["further"]["WER"]["score"] > 0
    assert score["further"]["WER"]["signature"].startswith("WER|code:")
    assert "|tok:char|" in score["bleu"]["detokenized"]["signature"]
    settings = checkout.json(f"{MODEL}/../settings.json")
    assert settings["architecture"]["kind"] == "transformer"
    training = checkout.json(f"{MODEL}/training.json")
    assert training["manifest"]["identity"]["code"] == settings["code"]
    table = checkout.read(TABLE)
    assert "| ConvS2S | 40.46 |" in table
    assert re.search(r"\| Transformer \(base\)[^|]*\| 38\.10 \|", table)


def test_an_edit_runs_what_depends_on_it_and_nothing_else(
    extended: tuple[Checkout, Done], tmp_path: Path
) -> None:
    copy = extended[0].copy(tmp_path)
    for name, old, new in (
        ("word_error_rate", "100 *", "1 *"),
        ("characters", "2581", "2582"),
        ("transformer", "# A plan", "# Comments aside, a plan"),
    ):
        path = copy / f"examples/{name}.py"
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
    done = copy.snakemake("--dry-run", SCORE, WORDS)
    made = ("evaluate_bleu", "extract_corpus", "tokenize_file")
    assert done.planned == dict.fromkeys(made, 1), done.said


def test_commands_find_the_extensions_of_the_folder(
    extended: tuple[Checkout, Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A user's shell has no such variable; another test's settings may have left one here.
    monkeypatch.delenv(VARIABLE, raising=False)
    checkout, _ = extended
    translate = f"head -2 data/mine/test.en | convs2s translate {MODEL}/model.safetensors --beam 1"
    score = "convs2s score bleu --metric WER --reference data/mine/test.nl < data/mine/test.nl"
    tokenize = "echo 'a b' | convs2s tokenize --language en --preparation characters"
    done = checkout.shell(f"{translate} && {score} && {tokenize}").succeeded()
    *translated, scored, words = done.said.splitlines()
    expected = checkout.read(f"{MODEL}/test.greedy.txt").splitlines()[:2]
    assert translated == expected
    assert scored.startswith("WER = 0.00  WER|code:")
    assert words == "a \u2581 b"
