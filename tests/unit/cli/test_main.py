"""The command ``convs2s``, as a user types it."""

import errno
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.cli.options import prepare_streams
from convs2s.config.corpus import PREPARATIONS
from convs2s.config.identity import training_settings
from convs2s.files.text import write_lines
from convs2s.model_file import load_model, save_model
from tests.support import tiny
from tests.unit.conftest import Terminal


def test_tokenize_and_detokenize(run: Terminal) -> None:
    tokens = run("tokenize", "--language", "fr", text=b"L'homme voit 2 voitures.\n")
    assert tokens == "L&apos; homme voit 2 voitures .\n"
    assert (
        run("detokenize", "--language", "fr", text=tokens.encode())
        == "L'homme voit 2 voitures.\n"
    )


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
    if name == "none":
        assert run("detokenize", *options, text=words.encode()) == raw.decode()


def test_tokenize_prepares_as_test_sets_are_where_nothing_is_said(
    run: Terminal,
) -> None:
    raw = "“It’s low-cost”".encode()
    stated = run(
        "tokenize", "--language", "en", "--preparation", "moses_test", text=raw
    )
    assert run("tokenize", "--language", "en", text=raw) == stated


@pytest.mark.parametrize("command", ["tokenize", "detokenize"])
def test_a_preparation_that_there_is_not(run: Terminal, command: str) -> None:
    message = r"^convs2s: error: preparation: unknown preparation 'mose_test'; did you mean 'moses_"
    with pytest.raises(SystemExit, match=message):
        run(command, "--language", "en", "--preparation", "mose_test", text=b"a\n")


@pytest.mark.parametrize("command", ["tokenize", "detokenize"])
def test_a_language_is_named_by_its_code(run: Terminal, command: str) -> None:
    message = r"^convs2s: error: --language english: expected a code of two or three small letters"
    with pytest.raises(SystemExit, match=message):
        run(command, "--language", "english", text=b"a\n")
    assert run(command, "--language", "en_title", text=b"a\n") == "a\n"


@pytest.mark.parametrize(
    ("code", "warned"), [("xx", True), ("en", False), ("en_title", False)]
)
def test_a_language_without_abbreviations_is_told(
    code: str,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n")))
    main(["tokenize", "--language", code])
    said = capsys.readouterr()
    assert said.out == "a b\n"
    assert (
        said.err.startswith("convs2s: warning: 'xx' has no list of abbreviations")
        == warned
    )


def test_help_lists_the_preparations(
    run: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run("tokenize", "--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert f"one of {', '.join(PREPARATIONS)} [moses_test]" in shown


def test_score_without_case(run: Terminal, tmp_path: Path) -> None:
    """A to Z alone, and a no-break space is part of a word, as in multi-bleu.perl -lc."""
    reference = tmp_path / "test.fr"
    write_lines(reference, ["L' HOMME voit deux\u00a0voitures rouges à Écully ."])
    options = ("score", "bleu", "--tokenized", "--lowercase", "--reference", reference)
    for text, score in {
        "l' homme voit deux\u00a0voitures rouges à Écully .": "100.00",
        "l' homme voit deux\u00a0voitures rouges à écully .": "70.71",
    }.items():
        output = run(*options, text=text.encode())
        signature = "nrefs:1|case:lc-ascii|eff:no|tok:none-ascii|smooth:none|"
        assert output.startswith(f"BLEU = {score}  {signature}")


def test_score(run: Terminal, tmp_path: Path) -> None:
    reference = tmp_path / "test.fr"
    write_lines(reference, ["L'homme voit deux voitures rouges."])
    output = run("score", "bleu", "--reference", reference, text=reference.read_bytes())
    assert output.startswith("BLEU = 100.00  nrefs:1|case:mixed|eff:no|tok:13a|")
    assert output.endswith("test.fr, 1 lines)\n")


BOTH = "a b c d e f", "g h i j k l"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metric", "WER", "--lowercase"), "leave them out with --metric"),
        (("--source", "text"), "name the metric that does with --metric"),
    ],
)
def test_score_refuses_options_that_it_would_not_read(
    run: Terminal, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SystemExit, match=said):
        run("score", "bleu", "--reference", "text", *options, text=b"a\n")


def test_score_takes_every_reference(run: Terminal, tmp_path: Path) -> None:
    """Each of the texts is half of either reference's words, and whole with both."""
    paths = tmp_path / "first", tmp_path / "second"
    write_lines(paths[0], ["a b c d e f", "x y"])
    write_lines(paths[1], ["u v w", "g h i j k l"])
    write_lines(
        tmp_path / "list", (f"{n} ||| {x} ||| A= 1 ||| 0" for n, x in enumerate(BOTH))
    )
    for options in (
        ("--reference", *paths),
        ("--tokenized", "--reference", paths[0], "--reference", paths[1]),
    ):
        output = run("score", "bleu", *options, text="\n".join([*BOTH, ""]).encode())
        for scored in (output, run("score", "oracle", tmp_path / "list", *options)):
            assert scored.startswith("BLEU = 100.00  ")
            assert "  nrefs:2|" in scored
            assert scored.endswith(f"first {paths[1]}, 2 lines)\n")


def test_score_names_the_line_counts(run: Terminal, tmp_path: Path) -> None:
    reference = tmp_path / "test.fr"
    write_lines(reference, ["un", "deux"])
    with pytest.raises(SystemExit, match=r"convs2s: error: .*1.*2"):
        run("score", "bleu", "--reference", reference, text=b"un\n")


def test_compare(run: Terminal, tmp_path: Path) -> None:
    lines = [
        f"L'homme numéro {i} voit deux voitures rouges dans la rue." for i in range(30)
    ]
    texts = {
        "test.fr": lines,
        "good.fr": lines,
        "bad.fr": [x.replace("dans", "à") for x in lines],
    }
    for name, text in texts.items():
        write_lines(tmp_path / name, text)
    reference, good, bad = (tmp_path / name for name in texts)
    baseline, system, difference, last = run(
        "score", "compare", "--reference", reference, bad, good
    ).splitlines()
    assert baseline.startswith("BLEU = ")
    assert baseline.endswith("bad.fr")
    assert system == f"BLEU = 100.00 ± 0.00  {good}"
    assert re.fullmatch(
        r"difference = \+\d+\.\d\d, p = 0\.0010, 1000 resamples", difference
    )
    assert last.startswith("nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|")
    assert last.endswith("test.fr, 30 lines)")
    assert "tok:none" in run(
        "score", "compare", "--tokenized", "--reference", bad, bad, good
    )


def test_any_terminal_is_written_to(
    run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_a_folder_that_one_may_not_enter_is_named(
    run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Path.exists and its like raise this before Python 3.14, for all users but root."""

    def refused(path: Path, **_: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(
        SystemExit, match=r"^convs2s: error: /home/theirs/model: Permission denied$"
    ):
        run("card", "/home/theirs/model")


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


def test_compare_names_the_file_of_another_length(
    run: Terminal, tmp_path: Path
) -> None:
    write_lines(tmp_path / "two.fr", ["un", "deux"])
    write_lines(tmp_path / "one.fr", ["un"])
    two, one = tmp_path / "two.fr", tmp_path / "one.fr"
    with pytest.raises(SystemExit, match=r"one\.fr: 1 lines, but the reference has 2"):
        run("score", "compare", "--reference", two, two, one)


def test_translate(run: Terminal, model: Path) -> None:
    assert run("translate", model, text=b"w1 w2\n\nw3\n").count("\n") == 3
    first, *_ = run(
        "translate", model, "--json", "--beam", 2, text=b"w1 w2\n"
    ).splitlines()
    assert json.loads(first)["source_words"] == ["w1", "w2"]


def test_translate_names_the_line_that_is_not_utf8(run: Terminal, model: Path) -> None:
    with pytest.raises(
        SystemExit, match=r"standard input:2: not UTF-8: byte 0xe9 at column 2"
    ):
        run("translate", model, text=b"w1\nw\xe9\n")


def test_a_misspelt_option_is_told_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["translate", "m", "--baem", "5"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("usage: convs2s translate ")
    assert said.endswith("error: unknown option '--baem'; did you mean '--beam'?\n")


@pytest.mark.parametrize(
    ("typed", "usage", "said"),
    [
        (
            ["transalte", "m"],
            "usage: convs2s [",
            "unknown command 'transalte'; did you mean 'translate'?",
        ),
        (
            ["score", "blue"],
            "usage: convs2s score [",
            "unknown command 'blue'; did you mean 'bleu'?",
        ),
        (
            ["score", "rouge", "--reference", "r", "o", "--sten"],
            "usage: convs2s score rouge [",
            "unknown option '--sten'; did you mean '--stem'?",
        ),
        (
            ["translate", "m", "--maximum-lenght.factor", "2"],
            "usage: convs2s translate [",
            "unknown option '--maximum-lenght.factor'; did you mean '--maximum-length.factor'?",
        ),
    ],
)
def test_a_misspelt_command_is_told_with_the_nearest(
    capsys: pytest.CaptureFixture[str], typed: list[str], usage: str, said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(typed)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(usage)
    assert error.endswith(f"error: {said}\n")


def test_the_limit_of_a_batch_may_be_lifted(run: Terminal, model: Path) -> None:
    assert (
        run("translate", model, "--batch-tokens", "null", text=b"w1\n").count("\n") == 1
    )


def test_a_limit_of_a_batch_that_is_no_number(
    model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["translate", str(model), "--batch-tokens", "many"])
    said = "argument --batch-tokens: expected a whole number or null, not 'many'\n"
    assert capfd.readouterr().err.endswith(said)


def test_an_lstm_has_no_attention_to_show(run: Terminal, recurrent: Path) -> None:
    message = r"lstm\.safetensors: a model of kind lstm has no attention"
    with pytest.raises(SystemExit, match=message):
        run("attention", recurrent, "w1")


def test_translate_with_something_else_than_a_model(
    run: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "bleu.txt"
    path.write_text("BLEU 34.1")
    with pytest.raises(SystemExit, match=r"convs2s: error: .*bleu\.txt: not a model"):
        run("translate", path, text=b"w1\n")
    with pytest.raises(SystemExit, match=r"convs2s: error: nowhere: no such file"):
        run("translate", "nowhere", text=b"w1\n")


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
    assert "updates" in next((output.parent / "state").glob("train.log")).read_text()
    assert load_model(output)[1].training["seed"] == 7
    assert (output.parent / "history.jsonl").is_file()


def test_config_prints_what_applies(
    run: Terminal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    output = run("config", "--task", "demo_en_fr")
    assert "name: demo_en_fr" in output
    with pytest.raises(SystemExit, match="demo_en_fr"):
        run("config", "--task", "demo_en_f")


def test_config_shows_no_password_of_a_mirror(
    run: Terminal, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").symlink_to(root / "config")
    (tmp_path / "config.yaml").write_text(
        "mirrors: ['https://me:secret@host/m?token=secret']\n"
    )
    monkeypatch.chdir(tmp_path)
    output = run("config", "--task", "demo_en_fr")
    assert "- https://host/m?***\n" in output
    assert "secret" not in output


def test_translate_text_that_comes_tokenized(
    run: Terminal, model: Path, tmp_path: Path
) -> None:
    """A model of a task with ``none`` takes lines as they are, and writes words as they are."""
    network, description = load_model(model)
    path = tmp_path / "none.safetensors"
    save_model(
        path,
        network.state_dict(),
        description.model_copy(update={"preparation": "none"}),
    )
    words = ["w1", "<unk>", "##.#", "&amp;", "us-china", "|", "w2"]
    raw = "w1\u00a0<unk>  ##.# &amp; us-china | w2\r\n\n"
    first, empty = map(
        json.loads, run("translate", path, "--json", text=raw.encode()).splitlines()
    )
    assert first["source_words"] == words
    assert first["text"] == " ".join(first["words"])
    assert first["text_before"] == " ".join(first["words_before"])
    assert {one["word"] for one in first["replacements"]} <= set(words)
    assert empty["text"] == ""
    assert "- preparation: none, then whole words\n" in run("card", path)


def test_translate_tokens_line_for_line(run: Terminal, model: Path) -> None:
    words = run("translate", model, text=b"w1 w2\n\nw3\n")
    tokens = run("translate", model, "--pretokenized", text=b"w1 w2\n\nw3\n")
    assert tokens == words  # of a word model
    unknown = run(
        "translate",
        model,
        "--pretokenized",
        "--json",
        text="un@@ heard (\u2019\n".encode(),
    )
    translation = json.loads(unknown)
    # Nothing is prepared.
    assert translation["source_tokens"] == ["un@@", "heard", "(\u2019"]
    assert "<unk>" not in translation["text"].split()
