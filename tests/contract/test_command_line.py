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

from convs2s.cli.main import EXAMPLES, commands_below, examples_in, main, whole_parser
from convs2s.cli.options import prepare_streams
from convs2s.config.corpus import PREPARATIONS
from convs2s.config.identity import training_settings
from convs2s.files.text import read_lines, write_lines
from convs2s.model_file import load_model, save_model
from tests.conftest import Terminal
from tests.support import tiny
from tests.support.golden import DATA
from tests.support.refusals import says


def leaves(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str]]:
    """Yield each command that does something, and its help."""
    below = commands_below(parser)
    for word, one in below.items():
        yield from leaves(one, f"{name} {word}")
    if not below:
        yield name, parser.format_help()


@pytest.mark.parametrize(("command", "text"), [*leaves(whole_parser(), "convs2s")])
def test_the_help_of_a_command_has_an_example_and_its_exit_codes(
    command: str, text: str
) -> None:
    shown = text.partition("\nexamples:\n")[2]
    assert re.search(rf"^  .*\b{command} ", shown, re.MULTILINE), text
    assert "exit codes: 0 done; 1 an error" in shown


@pytest.mark.parametrize(
    ("typed", "listed"),
    [
        ("", ["convs2s translate model.safetensors", "completion", "exit codes: "]),
        ("score", ["usage: convs2s score", "rouge", "oracle"]),
        ("import", ["usage: convs2s import", "fairseq"]),
        ("export", ["usage: convs2s export", "onnx"]),
    ],
)
def test_who_names_no_command_is_shown_which_there_are(
    capsys: pytest.CaptureFixture[str], typed: str, listed: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    said = capsys.readouterr()
    says(said.out, *listed)
    assert (ended.value.code, said.err) == (2, "")


@pytest.mark.parametrize("typed", ["--helo", "score --nothing"])
def test_an_option_alone_is_no_command(
    capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed.split())
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    says(said.err, "error: the following arguments are required: ")


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
    for typed, found in (("score ro", "rouge"), ("translate --device cu", "cuda")):
        words = ["convs2s", *typed.split()]
        program = f"""{script}
COMP_WORDS=(convs2s {typed}); COMP_CWORD={len(words) - 1}
{bound} convs2s {words[-1]} {words[-2]}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        said = subprocess.check_output(["bash", "-c", program], text=True)
        assert found in said.split()


EVERY_RECIPE = {
    "moses_train": "&quot; It &apos;s low @-@ cost &quot; &#124; &lt; unk &gt; # # .",
    "moses_test": "“ It &apos;s low @-@ cost ” &#124; &lt; unk &gt; # # .",
    "stanford": "“It’s low-cost” <unk> ##.",
    "wmt16": "&quot; It &apos;s low @-@ cost &quot; &#124; &lt; unk &gt; # # .",
    "wmt16_plain": "&quot; It &apos;s low @-@ cost &quot; &#124; &lt; unk &gt; # # .",
    "lowercase": "“ it ’ s low-cost ” &#124; &lt; unk &gt; # # .",
    "lowercase_test": "“ it &apos;s low-cost ” &#124; &lt; unk &gt; # # .",
    "none": "“It’s low-cost” | <unk> ##.",
}


@pytest.mark.parametrize("name", EVERY_RECIPE)
def test_tokenize_by_every_preparation(run: Terminal, name: str) -> None:
    assert EVERY_RECIPE.keys() == set(PREPARATIONS)
    raw = "“It’s low-cost” | <unk> ##.\n\nfine\n".encode()
    options = ("--language", "en", "--preparation", name)
    words = run("tokenize", *options, text=raw)
    assert words == f"{EVERY_RECIPE[name]}\n\nfine\n"
    if name == "moses_test":
        assert run("tokenize", "--language", "en", text=raw) == words
    if name == "none":
        assert run("detokenize", *options, text=words.encode()) == raw.decode()


def test_tokenize_and_detokenize(run: Terminal) -> None:
    french = "--language", "fr"
    tokens = run("tokenize", *french, text=b"L'homme voit 2 voitures.\n")
    assert tokens == "L&apos; homme voit 2 voitures .\n"
    text = run("detokenize", *french, text=tokens.encode())
    assert text == "L'homme voit 2 voitures.\n"


def test_score_without_case(run: Terminal, tmp_path: Path) -> None:
    """A to Z alone, and a no-break space is part of a word, as in multi-bleu.perl -lc."""
    reference = tmp_path / "test.fr"
    write_lines(reference, ["L' HOMME voit deux\u00a0voitures rouges à Écully ."])
    options = ("score", "bleu", "--tokenized", "--lowercase", "--reference", reference)
    text = "l' homme voit deux\u00a0voitures rouges à écully ."
    output = run(*options, text=text.encode())
    assert output.startswith(
        "BLEU = 70.71  nrefs:1|case:lc-ascii|eff:no|tok:none-ascii"
    )


def test_score_takes_every_reference(run: Terminal, tmp_path: Path) -> None:
    """Each of the texts is half of either reference's words, and whole with both."""
    both = "a b c d e f", "g h i j k l"
    paths = tmp_path / "first", tmp_path / "second"
    write_lines(paths[0], ["a b c d e f", "x y"])
    write_lines(paths[1], ["u v w", "g h i j k l"])
    listed = (f"{n} ||| {text} ||| A= 1 ||| 0" for n, text in enumerate(both))
    write_lines(tmp_path / "list", listed)
    for options in (
        ("--reference", *paths),
        ("--tokenized", "--reference", paths[0], "--reference", paths[1]),
    ):
        output = run("score", "bleu", *options, text="\n".join([*both, ""]).encode())
        for scored in (output, run("score", "oracle", tmp_path / "list", *options)):
            assert scored.startswith("BLEU = 100.00  ")
            assert "  nrefs:2|" in scored
            assert scored.endswith(f"first {paths[1]}, 2 lines)\n")


def test_outputs_are_compared_in_scores_in_text_and_as_a_page(
    run: Terminal, tmp_path: Path
) -> None:
    texts = {"bad": "x y z v", "good": "x y u v"}
    bad, good = (tmp_path / name for name in texts)
    for name, line in texts.items():
        write_lines(tmp_path / name, [line] * 30)
    options = "--tokenized", "--reference", good
    baseline, system, difference, last = run(
        "score", "compare", *options, bad, good
    ).splitlines()
    assert re.fullmatch(rf"BLEU = \d+\.\d\d ± \d+\.\d\d  {bad}", baseline)
    assert system == f"BLEU = 100.00 ± 0.00  {good}"
    assert re.match(r"difference = \+\d+\.\d\d, p = 0\.0010, 1000 res", difference)
    assert last.startswith(
        "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:none-ascii|"
    )
    assert last.endswith("good, 30 lines)")
    files = bad, good, *options
    said = run("compare-outputs", *files)
    assert system in said
    assert "baseline   x y [-z-] v" in said
    page = run("compare-outputs", *files, "--html", "--source", bad)
    assert "<del>z</del>" in page
    assert "<ins>u</ins>" in page


def test_rouge_of_four_references_item_by_item(run: Terminal, tmp_path: Path) -> None:
    golden = DATA / "rouge"
    references = [f"--reference={golden}/duc.ref{n}.txt.gz" for n in range(1, 5)]
    items = tmp_path / "items.tsv"
    options = ("--bytes", 75, "--items", items, "--samples", 100)
    hypotheses = golden / "duc.hypA.txt.gz"
    output = run("score", "rouge", *references, *options, hypotheses)
    first, *_, last = output.splitlines()
    printed = list(read_lines(golden / "ducA.ref4.b75.nostem.tsv.gz"))
    assert list(read_lines(items)) == printed
    recalls = [float(line.split("\t")[1]) for line in printed[1:]]
    mean = f"{100 * sum(recalls) / len(recalls):.2f}"
    number = r"\d+\.\d\d"
    said = rf"ROUGE-1  recall = {mean} \({number} to {number}\)  precision = "
    assert re.match(said, first)
    assert "refs:4|multi:sum|bytes:75|stem:no|exceptions:no|" in last
    assert last.endswith("duc.ref4.txt.gz, 230 lines)")


@pytest.mark.parametrize(
    ("second", "options", "recall"),
    [
        ("a mouse", "", "0.00"),
        ("a mouse", "--stem", "33.33"),
        ("a mouse", "--stem --best", "100.00"),
        ("", "--stem --skip-empty", "100.00"),
        ("a mouse", "--stem --exceptions exceptions.tsv", "66.67"),
    ],
)
def test_rouge_by_its_options(
    run: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
    options: str,
    recall: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"out": "mice and cats", "a": "cat", "b": second}
    for name, line in (texts | {"exceptions.tsv": "mice\tmous"}).items():
        write_lines(tmp_path / name, [line])
    references = "--reference", "a", "--reference", "b"
    output = run("score", "rouge", *references, *options.split(), "out")
    assert output.startswith(f"ROUGE-1  recall = {recall} ")


def test_translate_line_for_line(run: Terminal, model: Path) -> None:
    text = b"w1 w2\n\nw3\n"
    words = run("translate", model, "--batch-tokens", "null", text=text)
    assert words.count("\n") == 3
    # Of a word model.
    assert run("translate", model, "--pretokenized", text=text) == words
    unknown = "un@@ heard (\u2019\n".encode()
    translation = json.loads(
        run("translate", model, "--pretokenized", "--json", text=unknown)
    )
    # Nothing is prepared.
    assert translation["source_tokens"] == ["un@@", "heard", "(\u2019"]
    assert "<unk>" not in translation["text"].split()


def test_translate_text_that_comes_tokenized(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    """A model of a task with ``none`` takes lines as they are, and writes words as they are."""
    network, description = load_model(model)
    path = tmp_path / "none.safetensors"
    plain = description.model_copy(update={"preparation": "none"})
    save_model(path, network.state_dict(), plain)
    words = ["w1", "<unk>", "##.#", "&amp;", "us-china", "|", "w2"]
    raw = "w1\u00a0<unk>  ##.# &amp; us-china | w2\r\n\n".encode()
    said = run("translate", path, "--json", text=raw)
    first, empty = map(json.loads, said.splitlines())
    assert first["source_words"] == words
    assert first["text"] == " ".join(first["words"])
    assert first["text_before"] == " ".join(first["words_before"])
    assert {one["word"] for one in first["replacements"]} <= set(words)
    assert empty["text"] == ""
    assert "- preparation: none, then whole words\n" in run("card", path)


def test_train_by_hand(
    run: Terminal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(training_settings(tiny.settings(maximum_epochs=1))))
    task = tiny.prepare(tmp_path / "task", pairs=32)
    output = tmp_path / "mine" / "model.safetensors"
    output.parent.mkdir()
    options = ("--output", output, "--threads", 1, "--seed", 7, "--quiet")
    run("train", task, "--settings", settings, *options)
    assert capsys.readouterr().err == ""
    assert "updates" in (output.parent / "state/train.log").read_text()
    assert load_model(output)[1].training["seed"] == 7
    assert (output.parent / "history.jsonl").is_file()


def test_config_prints_what_applies_without_passwords(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "mirrors: ['https://me:secret@host/m?token=secret']\n"
    (copy / "config.yaml").write_text(options)
    monkeypatch.chdir(copy)
    output = run("config", "--task", "demo_en_fr")
    assert "name: demo_en_fr" in output
    assert "- https://host/m?***\n" in output
    assert "secret" not in output


def test_any_terminal_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another encoding, of a file whose name is none of text, and one that is closed."""
    path = tmp_path / os.fsdecode(b"r\xe9f")
    write_lines(path, ["un deux trois quatre"])
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
    main(["score", "compare", "--reference", str(path), str(path), str(path)])
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
