"""The command ``convs2s``, as a user types it."""

import argparse
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from convs2s.cli.main import EXAMPLES, commands_below, examples_in, main, whole_parser
from convs2s.cli.options import prepare_streams
from convs2s.config.corpus import PREPARATIONS
from convs2s.config.identity import training_settings
from convs2s.files.text import read_lines, write_json, write_lines
from convs2s.model_file import load_model
from tests.conftest import Terminal
from tests.support import tiny
from tests.support.golden import DATA
from tests.support.refusals import rows, says

pytestmark = pytest.mark.usefixtures("in_folder")


def leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str]]:
    """Yield each command that does something, and its help."""
    below = commands_below(parser)
    for word, one in below.items():
        yield from leaves(one, f"{name} {word}")
    if not below:
        yield name, parser.format_help()


def test_the_help_of_a_command_has_an_example_and_its_exit_codes() -> None:
    for command, text in leaves(whole_parser(), "convs2s"):
        shown = text.partition("\nexamples:\n")[2]
        assert re.search(rf"^  .*\b{command} ", shown, re.MULTILINE), text
        assert "exit codes: 0 done; 1 an error" in shown, text


NO_COMMAND = """
 => convs2s translate model.safetensors ... completion ... exit codes:
score => usage: convs2s score ... rouge ... oracle
"""


def test_who_names_no_command_is_shown_which_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for typed, listed in rows(NO_COMMAND):
        with pytest.raises(SystemExit) as ended:
            main(typed.split())
        said = capsys.readouterr()
        says(said.out, listed)
        assert (ended.value.code, said.err) == (2, "")
    # An option alone is no command.
    with pytest.raises(SystemExit):
        main(["score", "--nothing"])
    says(capsys.readouterr().err, "error: the following arguments are required: ")


def test_every_example_is_understood() -> None:
    examples = examples_in(EXAMPLES)
    assert len(examples) > 15
    for example in examples:
        commands = re.findall(r"convs2s ([^<>|]+)", example.replace("\\\n", " "))
        assert commands, example
        for typed in commands:
            whole_parser().parse_args(shlex.split(typed, comments=True))


def test_bash_completes(run: Terminal) -> None:
    script = run("completion", "bash")
    (bound,) = re.findall(r"^complete .*-F (\S+) convs2s$", script, re.MULTILINE)
    typed = f"""{script}
COMP_WORDS=(convs2s translate --device cu); COMP_CWORD=3
{bound} convs2s cu --device
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    assert "cuda" in subprocess.check_output(["bash", "-c", typed], text=True)


RECIPES = yaml.safe_load("""
moses_train: "&quot; It &apos;s low @-@ cost &quot; &#124; &lt; unk &gt; # # ."
moses_test: "“ It &apos;s low @-@ cost ” &#124; &lt; unk &gt; # # ."
stanford: "“It’s low-cost” <unk> ##."
wmt16: "&quot; It &apos;s low @-@ cost &quot; &#124; &lt; unk &gt; # # ."
wmt16_plain: "&quot; It &apos;s low @-@ cost &quot; &#124; &lt; unk &gt; # # ."
lowercase: "“ it ’ s low-cost ” &#124; &lt; unk &gt; # # ."
lowercase_test: "“ it &apos;s low-cost ” &#124; &lt; unk &gt; # # ."
none: "“It’s low-cost” | <unk> ##."
""")


def test_tokenize_by_every_preparation(run: Terminal) -> None:
    raw = "“It’s low-cost” | <unk> ##.\n\nfine\n".encode()
    english = ("tokenize", "--language", "en")
    found = {
        name: run(*english, "--preparation", name, text=raw) for name in PREPARATIONS
    }
    assert found == {name: f"{words}\n\nfine\n" for name, words in RECIPES.items()}
    assert run(*english, text=raw) == found["moses_test"]
    tokens = b"L&apos; homme voit 2 voitures .\n"
    text = run("detokenize", "--language", "fr", text=tokens)
    assert text == "L'homme voit 2 voitures.\n"


def test_score_takes_every_reference(run: Terminal) -> None:
    """Each of the texts is half of either reference's words, and whole with both, without case."""
    both = b"A B c d e f\ng h i j k l\n"
    write_lines("first", ["a b c d e f", "x y"])
    write_lines("second", ["u v w", "g h i j k l"])
    listed = ("0 ||| a b c d e f ||| A= 1 ||| 0", "1 ||| g h i j k l ||| A= 1 ||| 0")
    write_lines("list", listed)
    for kind in ("bleu --lowercase", "oracle list"):
        for references in ("first second", "first --tokenized --reference second"):
            typed = f"score {kind} --reference {references}"
            scored = run(*typed.split(), text=both)
            says(scored, "BLEU = 100.00  ", "  nrefs:2|", "first second, 2 lines)\n")


def test_outputs_are_compared_in_scores_in_text_and_as_a_page(run: Terminal) -> None:
    write_lines("bad", ["x y z v"] * 30)
    write_lines("good", ["x y u v"] * 30)
    files = "bad", "good", "--tokenized", "--reference", "good"
    said = run("score", "compare", *files)
    system = "BLEU = 100.00 ± 0.00  good\n"
    says(said, system, ", p = 0.0010, 1000 resamples", "good, 30 lines)")
    says(said, "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:none-ascii|")
    assert re.search(r"^difference = \+\d+\.\d\d, ", said, re.MULTILINE)
    says(run("compare-outputs", *files), system, "baseline   x y [-z-] v")
    page = run("compare-outputs", *files, "--html", "--source", "bad")
    says(page, "<del>z</del>", "<ins>u</ins>")


def test_rouge_of_four_references_item_by_item(run: Terminal) -> None:
    golden = DATA / "rouge"
    references = [f"--reference={golden}/duc.ref{n}.txt.gz" for n in range(1, 5)]
    options = ("--bytes", 75, "--items", "items.tsv", "--samples", 100)
    output = run("score", "rouge", *references, *options, golden / "duc.hypA.txt.gz")
    assert re.match(r"ROUGE-1  recall = \S+ \(\S+ to \S+\)  precision = ", output)
    says(output, "refs:4|multi:sum|bytes:75|stem:no|exceptions:no|", ", 230 lines)")
    printed = read_lines(golden / "ducA.ref4.b75.nostem.tsv.gz")
    assert list(read_lines("items.tsv")) == list(printed)


ROUGE = """
a mouse => => 0.00
a mouse => --stem => 33.33
a mouse => --stem --best => 100.00
 => --stem --skip-empty => 100.00
a mouse => --stem --exceptions exceptions.tsv => 66.67
"""


def test_rouge_by_its_options(run: Terminal) -> None:
    Path("out").write_text("mice and cats\n")
    Path("a").write_text("cat\n")
    Path("exceptions.tsv").write_text("mice\tmous\n")
    for second, options, recall in rows(ROUGE):
        Path("b").write_text(f"{second}\n")
        references = "--reference", "a", "--reference", "b"
        output = run("score", "rouge", *references, *options.split(), "out")
        assert output.startswith(f"ROUGE-1  recall = {recall} "), options


def test_text_that_comes_tokenized_is_not_prepared(run: Terminal, model: Path) -> None:
    asked = ("translate", model, "--pretokenized", "--json", "--batch-tokens", "null")
    unheard = "un@@ heard (\u2019\n"
    translation = json.loads(run(*asked, text=unheard.encode()))
    assert translation["source_tokens"] == unheard.split()
    assert "<unk>" not in translation["text"].split()


def test_train_by_hand(run: Terminal, task: Path) -> None:
    write_json("settings.json", training_settings(tiny.settings(maximum_epochs=1)))
    typed = "--settings settings.json --output model --threads 1 --seed 7 --quiet"
    run("train", task, *typed.split())
    assert run.capsys.readouterr().err == ""
    assert "updates" in Path("state/train.log").read_text()
    assert load_model(Path("model"))[1].training["seed"] == 7
    assert Path("history.jsonl").is_file()


def test_config_prints_the_headlines_unless_told_without_passwords(
    copy: Path, run: Terminal
) -> None:
    options = "mirrors: ['https://me:secret@host/m?token=secret']\n"
    (copy / "config.yaml").write_text(options)
    asked = "config", "--task", "demo_en_fr"
    output = run(*asked)
    says(output, "- https://host/m?***\n")
    assert "secret" not in output
    usual = yaml.safe_load(output)
    names = [part.get("name") for part in usual.values()]
    assert names == ["demo_en_fr", "demo", "beam5", "paper", None]
    assert not {"scale", "overrides"} & usual["options"].keys()
    other = yaml.safe_load(run(*asked, "--model", "small", "--decoding", "greedy"))
    assert (other["model"]["name"], other["decoding"]["beam"]) == ("small", 1)


def test_any_terminal_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of another encoding, of a file whose name is none of text, and one that is closed."""
    path = os.fsdecode(b"r\xe9f")
    write_lines(path, ["un deux trois quatre"])
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    main(["score", "compare", "--reference", path, path, path])
    assert "BLEU = 100.00 ± 0.00  ".encode() + os.fsencode(path) in written.getvalue()
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
        main(["tokenize", "--language", "xx"])


def test_streams_that_another_program_shares_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where they do not, what a full pipe does not take would be lost."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    with os.fdopen(ends[0]) as source, os.fdopen(ends[1], "w") as output:
        monkeypatch.setattr(sys, "stdin", source)
        monkeypatch.setattr(sys, "stdout", output)
        prepare_streams()
        assert all(map(os.get_blocking, ends))
