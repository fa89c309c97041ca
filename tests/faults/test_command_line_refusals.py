"""What a user types wrong, in one line with its remedy."""

import errno
import os
import sys
from pathlib import Path

import pytest

from convs2s.cli.main import main
from convs2s.files.text import write_lines
from tests.conftest import Terminal
from tests.support.refusals import rows, says

# What is typed, in a folder with the files empty, one (a line), two and others (two lines) => what
# is said. MODEL and LSTM are models.
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
translate MODEL --output out => --output ... --workers ... a file to translate
translate MODEL --workers 2 => --output ... --workers ... a file to translate
translate MODEL --n-best 6 => --n-best 6 ... a beam of 5
translate MODEL --input nowhere => nowhere: no such file
translate MODEL --input nowhere --output - => -: leave --input and --output
translate MODEL --split-sentences --pretokenized => --pretokenized ... --json
translate MODEL --split-sentences --n-best 2 => --n-best ... needs --json
translate MODEL --input two --output two => two: is an input as well
translate MODEL --input made.part --output made => made.part: is an input as well
translate MODEL --input made.part.json --output made => made.part.json: is an input as well
translate MODEL --input two --output MODEL => model.safetensors: is an input ... name another output
translate MODEL --input two --output half => half.part: exists already ... not an unfinished output
translate MODEL --input README.md => README.md: its lines ... translate-document ... standard input
translate-document MODEL --input page.html --output page.html => page.html: is an input as well
tokenize --language en --preparation raw => raw ... lowercase ... docs/extending.md
score bleu --reference two --tokenize ja-mecab => 'sacrebleu[ja]' ... --tokenize char
pull somebody/model => pip install 'convs2s[hub]'
kernels --model demo => --model demo: has no layers of this package
translate a --beam 0 => beam: expected at least 1, not 0
translate a --beam 1025 => beam: expected at most 1024, not 1025
translate a --batch-tokens 0 => batch_tokens: expected at least 1, not 0
translate a --length-penalty nan => length_penalty: expected
translate a --unknown-penalty inf => unknown_penalty: expected a finite
translate a --threads 0 => threads: expected at least 1, not 0
translate a --workers 1025 => workers: expected at most 1024, not 1025
train a --model demo --output m --threads 1025 => threads: expected at most 1024, not 1025
train a --model demo --output m --workers -1 => workers: expected at least 0, not -1
train a --model demo --output m --nodes 0 => nodes: expected at least 1, not 0
train a --model demo --output m --seed 1000000000 => seed: expected at most 999999999
train a --model demo --output m --time-limit nan => time_limit: expected a finite number, not nan
train a --model demo --output m --time-limit 0 => time_limit: expected more than 0, not 0.0
train a --model demo --output m --checkpoint-minutes 0 => checkpoint_minutes: expected more than 0
score rouge a --reference a --bytes 0 => bytes: expected at least 1, not 0
score rouge a --reference a --samples 1048577 => samples: expected at most 1048576
score-pairs a --source a --n-best a --threads 1025 => threads: expected at most 1024, not 1025
score-pairs a --source a --n-best a --length-penalty nan => length_penalty: expected
score-pairs a --source a --n-best a --feature a=b => feature: expected a name without blanks, '='
rerank a --feature a|b => feature: expected a name without blanks
score-pairs a --source a --target a --length-penalty 1 => apply to an n-best list: name it with
score-pairs a --source a --target a --feature A => --feature and --length-penalty: apply to an n-b
import fairseq a SOURCES --output m --languages EN fr => --languages: source: expected a language
config --tasks --model demo => apply to one task: give --task
translate a --input a --output typo/b => PLACE
train a --model demo --output typo/b => PLACE
score rouge a --reference a --items typo/b => PLACE
import fairseq a SOURCES --output typo/b => PLACE
results a --scale demo --output typo/b => PLACE
export-results a typo/b => PLACE
mirror typo/b => PLACE
train a --model demo --output . => name a file to write
train a --model demo --output /dev/null => /dev/null: is not a plain file
train a --model demo --output pipe => pipe: is not a plain file
export-results . LONG => CUT...: File name too long
"""


def test_a_fault_is_said_in_one_line_and_changes_nothing(
    copy: Path,
    model: Path,
    recurrent: Path,
    run: Terminal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(copy)
    monkeypatch.setattr("convs2s.scoring.bleu.find_spec", lambda _: None)
    monkeypatch.setattr("convs2s.models.kernels.choice.products_of", lambda _: [])
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    (copy / "state").mkdir()
    (copy / "state/finished.again").touch()
    write_lines(copy / "empty", [])
    write_lines(copy / "one", ["a"])
    names = "two same half.part made.part made.part.json README.md page.html"
    for name in names.split():
        write_lines(copy / name, ["a", "b"])
    os.mkfifo("pipe")
    words = {
        "MODEL": str(model),
        "LSTM": str(recurrent),
        "SOURCES": "--source-dictionary b --target-dictionary c",
        "PLACE": "typo/b: cannot be written: no folder typo: make it first",
        "LONG": "9" * 300,
        "CUT": "9" * 80,
    }

    def files() -> dict[Path, bytes]:
        paths = [model, *copy.rglob("*")]
        return {path: path.read_bytes() for path in paths if path.is_file()}

    before = files()
    for typed, said in rows(FAULTS):
        given = b"a\nb\n" if typed.startswith("score") else b"w1\nw\xe9\n"
        for name, word in words.items():
            typed = typed.replace(name, word)
            said = said.replace(name, word)
        message = run.refused(*typed.split(), text=given)
        assert message.startswith("convs2s: error: ")
        assert "\n" not in message
        says(message, said)
        assert files() == before, typed


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
    said = run.refused("card", "/home/theirs/model")
    says(said, "/home/theirs/model: Permission denied")
