"""A file of config/tasks that is not valid ends the commands that need its task, and no other."""

from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.config.load import load
from convs2s.config.settings import Settings
from convs2s.layout import Layout
from convs2s.pipeline.plan import Plan
from tests.conftest import Terminal
from tests.support.own_pair import TASK
from tests.support.refusals import refusal, refuses, rows, says

FILES = r"""
mine.yaml => => mine.yaml: expected a mapping of keys to values
mine.yaml => languages: {source: en => mine.yaml:2: did not find
mine.yaml => description: a => mine.yaml: key 'languages' is missing
mine.yaml => text: demo_en\n => mine.yaml: text: unknown task 'demo_en'
mine.yml => text: demo_en_fr => mine.yml: is not read: rename it to mine.yaml
archives.yaml => text: demo_en_fr => archives.yaml: 'archives' is the name of another folder
My-Task.yaml => text: demo_en_fr => My-Task.yaml: expected a name of lower-case letters
paper.yaml => text: demo_en_fr => paper.yaml: 'paper' is the name of another folder
"""


def test_a_broken_task_is_warned_of_unless_it_is_needed(
    copy: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(copy)
    for file, content, words in rows(FILES):
        path = copy / "config/tasks" / file
        path.write_text(content)
        main(["config", "--task", "demo_en_fr"])
        warned = capsys.readouterr().err
        said = f"config/tasks/{words}"
        says(warned, f"convs2s: warning: {said}", f"(left out: {path.stem})")
        says(run.refused("config", "--task", path.stem), f"convs2s: error: {said}")
        path.unlink()


def broken(copy: Path, *names: str) -> Settings:
    """The configuration with these tasks half written."""
    for name in names:
        (copy / f"config/tasks/{name}.yaml").write_text("description: mine\n")
    return load(copy)


def test_what_rests_on_a_broken_task_is_broken_too_and_one_that_cannot_be_read_ends_all(
    copy: Path,
) -> None:
    stated = "text: {}\nheadline: {{model: small, seeds: [1], tests: [mine]}}\n"
    (copy / "config/tasks/own.yaml").write_text(TASK.replace("valid:", "vlid:"))
    (copy / "config/tasks/of_own.yaml").write_text(stated.format("own"))
    settings = broken(copy, "multi30k_en_de")
    said = str(settings.broken["own"])
    assert said == str(settings.broken["of_own"])
    says(said, "config/tasks/own.yaml: ", "unknown key 'vlid'")
    assert {"multi30k_en_de", "multi30k_en_de_word"} <= settings.broken.keys()
    assert "demo_en_fr" in settings.tasks
    # As where a file server fails in a job: its tables would lack the rows without a word.
    (copy / "config/tasks/mine.yaml").mkdir()
    refuses("config/tasks/mine.yaml: cannot be read: Is a directory", load, copy)


# A command => the options of config.local.yaml => the task that ends it, if one does.
COMMANDS = """
demo => {} => runs
results/demo_en_fr/bleu.txt --cores 2 => {} => runs
results/mine/bleu.txt => {} => mine
results/mine/dataset/train.arrow --until x => {} => mine
of_module/results/mine/bleu.txt => {} => mine
evaluate => tasks: [demo_en_fr] => runs
evaluate => tasks: [demo_en_fr, mine] => mine
results/demo_en_fr/bleu.txt => tasks: [mine] => runs
module_prepare => tasks: [mine] => mine
evaluate => {} => wmt14_en_de
paper => tasks: [demo_en_fr] => wmt14_en_de
results/paper/table1.md => {} => wmt14_en_de
results/shown/paper.claims.html => {} => wmt14_en_de
"""


def test_snakemake_needs_what_its_targets_need(copy: Path) -> None:
    layout = Layout("results", "results/downloads")
    for command, options, ends in rows(COMMANDS):
        (copy / "config.local.yaml").write_text(options)
        settings = broken(copy, "mine", "wmt14_en_de")
        plan = Plan(settings, layout, "results/logs", lambda _: False, command.split())
        if ends == "runs":
            plan.check_tasks()
            plan.check_files()
            assert not {"mine", "wmt14_en_de"} & {*plan.tasks}
        else:
            said = refusal(plan.check_tasks)
            says(said, f"config/tasks/{ends}.yaml: key 'languages'")


NAMED = """
train results/no --model small --output m => mine => results/no/
train results/mine --model small --output m => mine => tasks/mine.yaml
results no.jsonl --scale demo --output a.md => mine => no.jsonl
results no.jsonl --scale demo --output a.md => demo_en_fr => demo_en_fr.yam
"""


def test_commands_need_what_they_name(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    for command, name, ends in rows(NAMED):
        broken(copy, name)
        says(run.refused(*command.split()), "convs2s: error: ", ends)
