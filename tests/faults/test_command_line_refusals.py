"""What a user types wrong, in one line with its remedy."""

import errno
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.files.text import write_lines
from tests.conftest import Terminal
from tests.support.refusals import rows, says

# What is typed, in a folder with the files empty, one (a line), two and same (two lines) => what is
# said. MODEL and LSTM are models.
FAULTS = """
tokenize --language en --preparation mose_test => unknown ... did you mean 'moses_test'?
detokenize --language en --preparation mose_test => unknown ... did you mean 'moses_test'?
tokenize --language english => --language english: expected a code of
detokenize --language english => --language english: expected a code of
score bleu --reference two --metric WER --lowercase => leave them out with --metric
score bleu --reference two --metric WER --tokenize zh => leave them out with --metric
score bleu --reference two --source text => name the metric that does with --metric
score bleu --reference one => standard input: 2 lines, but one has 1
score compare --reference two two one => one: 1 lines, but the reference has 2
score rouge --reference two --reference one two => two: 2 lines, but one has 1
score rouge --reference two two --bytes 0 => bytes: expected at least 1, not 0
score rouge --reference two two --samples -1 => samples: expected at least 1, not -1
score rouge --reference two two --exceptions forms => --exceptions forms: ... add --stem
score rouge --reference two two --stem --exceptions no.tsv => no.tsv: no such file
score rouge --reference two no.txt => no.txt: no such file
score rouge --reference same --items two two => two: is an input ... name another output
score rouge --reference two --items two same => two: is an input ... name another output
score rouge --reference empty empty => empty: no lines to score
compare-outputs two two --reference two --most 0 => most: expected at least 1, not 0
translate two => two: not a model
translate nowhere => nowhere: no such file
translate again => again: no such file: it is being trained again ... state/finished.again
serve again => again: no such file: it is being trained again ... state/finished.again
card again => again: no such file: it is being trained again ... state/finished.again
translate MODEL => standard input:2: not UTF-8: byte 0xe9 at column 2
attention LSTM w1 => lstm.safetensors: a model of kind lstm has no attention
translate MODEL --minimum-length 999 --maximum-length.factor 0 => minimum_length 999 is above
config --task demo_en_f => demo_en_fr
train results/a --model small --output m --start a => --start a: ... 'small' has no training.start
train results/a --model small --output m --dictionary no.tsv => no.tsv: no such file
"""


def test_a_fault_is_said_in_one_line(
    copy: Path,
    model: Path,
    recurrent: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(copy)
    for name, text in {"empty": "", "one": "a", "two": "a b", "same": "a b"}.items():
        write_lines(copy / name, text.split())
    (copy / "state").mkdir()
    (copy / "state/finished.again").touch()
    models = {"MODEL": str(model), "LSTM": str(recurrent)}
    for typed, words in rows(FAULTS):
        given = b"a\nb\n" if typed.startswith("score") else b"w1\nw\xe9\n"
        with pytest.raises(SystemExit) as stop:
            run(*[models.get(word, word) for word in typed.split()], text=given)
        message = str(stop.value)
        assert message.startswith("convs2s: error: ")
        assert "\n" not in message
        says(message, *words.split(" ... "))
        assert (copy / "two").read_text() == "a\nb\n"
        assert not (copy / "m").exists()


# The last one: one sentence is no batch.
MISSPELT = """
transalte m => [ => unknown command 'transalte'; did you mean 'translate'?
score blue => score [ => unknown command 'blue'; did you mean 'bleu'?
score rouge --reference r o --sten => score rouge [ => option '--sten'; did you mean '--stem'?
translate m --maximum-lenght.factor 2 => translate [ => did you mean '--maximum-length.factor'?
translate m --batch-tokens many => translate [ => --batch-tokens: expected a whole number or null
attention m w --batch-tokens 9 => attention [ => option '--batch-tokens'
"""


def test_a_misspelt_command_is_told_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for typed, usage, said in rows(MISSPELT):
        with pytest.raises(SystemExit) as ended:
            main(typed.split())
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert error.startswith(f"usage: convs2s {usage}")
        assert said in error.splitlines()[-1]


def test_a_folder_that_one_may_not_enter_is_named(
    run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Path.exists and its like raise this before Python 3.14, for all users but root."""

    def refused(path: Path, **_: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(SystemExit, match="/home/theirs/model: Permission denied"):
        run("card", "/home/theirs/model")


def test_a_network_of_other_layers_has_no_products_to_measure(
    copy: Path, run: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy)
    monkeypatch.setattr("convs2s.models.kernels.choice.products_of", lambda network: [])
    with pytest.raises(SystemExit, match="--model demo: has no layers of this package"):
        run("kernels", "--model", "demo")
