"""A fault of the configuration is one line: the file, the key, the nearest name or the value."""

import os
import re
from pathlib import Path

import pytest
import yaml

from convs2s.config.load import load
from convs2s.config.yaml_file import read_yaml
from tests.support.own_pair import TASK
from tests.support.refusals import refusal, refuses, rows, says


def load_every_task(root: Path, given: dict[str, object] | None = None) -> None:
    """Load the configuration for a command that needs every task."""
    settings = load(root, given)
    settings.check_whole(settings.broken)


def assert_refused(root: Path, words: str, **given: object) -> None:
    """Expect a refusal in one line with these words in turn; ... stands for any others."""
    message = refusal(load_every_task, root, given or None)
    assert "\n" not in message
    pattern = re.escape(words).replace(re.escape(" ... "), ".*")
    assert re.search(pattern, message), f"{words} not in: {message}"


OPTIONS = r"""
scael: demo => config.yaml: unknown key 'scael'; did you mean 'scale'?
shards: [1] => unknown key 'shards'; expected one of container, cores,
plots: {cores: 2} => plots: unknown key 'cores'; expected sentences
1: 2 => [1]: expected text as a key
scale: dmeo => scale: unknown scale 'dmeo'; did you mean 'demo'?
cores: many => cores: expected ... not 'many'
cores: 0 => cores: expected at least 1, not 0
scatter_above: true => scatter_above: expected ... not true
device: gpu => device: expected 'auto', 'cpu' or 'cuda', not 'gpu'
mirrors: ../m => mirrors: expected a list, not '../m'
mirrors: [''] => mirrors[0]: expected ... not ''
mirrors: {'https://me:secret@host/': 1} => not {'https://host/': 1}
plots: {sentences: [1, 0]} => plots.sentences[1]: ... at least 1, not 0
states: s3://b/{user} => states: expected a name without { and }, ... not 's3://b/{user}'
plots: 3 => plots: expected a mapping of keys to values, not 3
tasks: [] => tasks: expected 1 or more entries, not []
- scale => expected a mapping of keys to values, not ['scale']
overrides: {models: {smal: {}}} => overrides.models: ... mean 'small'?
overrides: {models: {small: {training: {clp: 1}}}} => models.yaml: small OF: ... unknown key 'clp'
overrides: {decodings: {greedy: {precision: bf61}}} => decodings.yaml: greedy OF: precision
overrides: {tasks: {demo_en_fr: {metric: blue}}} => tasks/demo_en_fr.yaml OF: metric: ... 'blue'
extensions: => extensions: expected a list, not null
extensions: [no.py] => no.py: cannot be read: No such file
"""


def test_options(copy: Path) -> None:
    for text, words in rows(OPTIONS):
        (copy / "config.yaml").write_text(text)
        assert_refused(copy, words.replace("OF", "(with the overrides of config.yaml)"))


WHAT_IS_NOT_YAML = r"""
scale: demo\nscale: paper => :2: duplicate key 'scale'
x: [{a: 1, a: 2}] => :1: duplicate key 'a'
x: {1: 2, 1: 3} => :1: duplicate key '1'
? {a: 1, a: 2}\n: 1 => :1: duplicate key 'a'
scale: [demo\ncores: 2 => :2:
cores: 2\n\tgpus: 1 => :2:
a: &x 1\nb: *y => :2: found undefined alias
a: !!python/name:os.system x => :1:
scale: \0 => : not valid YAML:
&a [*a] => :1: more than 60 nested lists and mappings
{<<: 1} => :1: expected a mapping or list of mappings for merging
b: 1\na: 1:00...:00.0 => :2: not a valid value:
b: 1\na: 2020-13-01 => :2: not a valid value: month must be in 1..12
a: !!int b => :1: not a valid value:
a: !!bool maybe => :1: not a valid value: 'maybe'
a: !!int '' => :1: not a valid value: string index out of range
a: !!timestamp x => :1: not a valid value:
? [a]\n: 1 => :1: found unhashable key
a: 1\n---\nb: 1 => :2: but found another document
"""


def test_what_is_not_yaml(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    for text, words in rows(WHAT_IS_NOT_YAML):
        file.write_text(text.replace("...", ":00" * 400))
        refuses(f"a.yaml{words}", read_yaml, file, "a.yaml")
    said = refusal(read_yaml, tmp_path, "b.yaml")
    says(said, "b.yaml: cannot be read: Is a directory")


# config.local.yaml => the options of the command line => the message.
STATED = r"""
corse: 2 => => config.local.yaml: unknown key 'corse'; did you mean 'cores'?
scale: dmeo => => config.local.yaml: scale: unknown scale 'dmeo'
cores: 2\n\tgpus: 1 => => config.local.yaml:2:
cores: 2\n\tgpus: 1 => scale: demo => config.local.yaml:2:
=> scale: dmeo => --config or --configfile: scale: unknown scale 'dmeo'
=> scael: demo => --config or --configfile: unknown key 'scael'
=> tasks: [a] => --config or --configfile: tasks: unknown task 'a'
=> overrides: {models: {demo: {training: {clip: 1a}}}} => of --config or --configfile): training
"""


def test_a_fault_names_the_file_or_option_that_states_it(copy: Path) -> None:
    for local, options, words in rows(STATED):
        (copy / "config.local.yaml").write_text(local)
        assert_refused(copy, words, **yaml.safe_load(f"{{{options}}}"))


FURTHER_KEYS_OF_TASKS = r"""
name: mine => unknown key 'name'
vocabulary: {merges: 8,000} => vocabulary[0]: ... numbers without commas
vocabulary: {threshold: 9, source_size: 9} => either a threshold or sizes
vocabulary_of: m\nvocabulary: {joint: false} => vocabulary: ... is joint and
vocabulary_of: a/{x}.safetensors => vocabulary_of: expected a name without {
preparation: {train: null} => preparation.train: ... 'none', not null
headline: {model: smal} => headline.model: ... did you mean 'small'?
headline: {tests: [min]} => headline.tests: ... did you mean 'mine'?
headline: {model: lstm} => headline.decoding: ... attention, which 'lstm'
headline: {model: ablation} => headline.model: ... vocabulary_selection
headline: {decoding: beam5_en_de} => headline.decoding: ... one of mine, valid
headline: {seeds: [1, 1]} => headline.seeds: ... repetitions, not [1, 1]
metric: rouge\nmetrics: [WER] => metrics: ... but the task has metric: rouge
metrics: [WER] => metrics: unknown metric 'WER' ... docs/extending.md
clean: {ratio: .inf} => clean.ratio: ... finite
clean: {minimum: 80, maximum: 60} => clean: expected a minimum of at most 60
clean: {minimum: 176} => clean: expected a minimum of at most 175
clean: {minimum: 30, tokens: 20} => clean: expected a minimum of at most 20
released: {codes: a} => released: ... did you mean 'bpe_codes'?
text: demo_en_f => text: unknown task 'demo_en_f'; did you mean 'demo_en_fr'
text: demo_en_fr_word => text: 'demo_en_fr_word' has no text of its own
text: demo_en_fr => languages: is taken from the task 'demo_en_fr'
"""


def test_further_keys_of_tasks(copy: Path) -> None:
    task = copy / "config/tasks/mine.yaml"
    for line, words in rows(FURTHER_KEYS_OF_TASKS):
        task.write_text(f"{TASK}{line}\n")
        assert_refused(copy, f"config/tasks/mine.yaml: ... {words}")
    # Bounds that keep pairs are none of these faults.
    for limits in ("minimum: 80, maximum: 80", "minimum: 999, maximum: null"):
        task.write_text(f"{TASK}clean: {{{limits}}}\n")
        load_every_task(copy)


MODELS = """
{extends: smal} => mine.extends: unknown model 'smal'; did you mean 'small'
{extends: mine} => mine.extends: ... mine -> mine
{extends: small, training: {maximum_epochs: null}} => mine: training: ... maximum_epochs
{extends: small, training: {batch: {tokens: null}}} => mine: training ... tokens
{extends: small, training: {momentum: 1}} => training.momentum: expected less than 1
{extends: small, training: {schedule: {kind: cos}}} => schedule.kind: ... 'cosine'
{extends: demo, training: {schedule: {kind: cosine, warmup: 8}}} => a cosine schedule needs maxi
{extends: demo, training: {learning_rate: 1e-5, schedule: {kind: step}}} => learning_rate 1e-05
{extends: small, training: {start: {from: a, as: initialize}}} => 'initialise', not
{extends: small, training: {start: {from: a.zip#b, as: continue}}} => from: ... without #
{extends: small, training: {start: {from: 'ftp://a', as: continue}}} => from: ... http(s)
{extends: small, architecture: {attention: [1, 7]}} => attention: ... names block 7
{extends: small, architecture: {attention: some}} => block numbers such as [1, 3, 5]
{extends: small, architecture: {attention: [1, 1]}} => without repetitions
{extends: wmt14_en_de, architecture: {attention_weights: shared}} => 512 and 768 and 2048
{extends: lstm, architecture: {encoder: []}} => unknown key 'encoder'; expected one of
{extends: small, architecture: {kind: lstm}} => 'output_embedding'; did you mean
{description: one, architecture: {kind: lsmt, cells: 8}} => architecture ... lsmt
{description: one, architecture: {embedding: 8}} => key 'encoder' is missing
{extends: small, architecture: {encoder: [{layers: 1000000000, width: 8, kernel: 3}]}} => \
layers: expected at most
{extends: small, architecture: {encoder: [&half {layers: 600, width: 8, kernel: 3}, *half]}} => \
at most 1000 blocks in all
{extends: small, architecture: {encoder: [{layers: 1, width: 1000000000, kernel: 3}]}} => \
width: expected at most
{extends: small, architecture: {positions: {maximum: 1000000000000}}} => \
positions.maximum: expected at most
{description: one, architecture: {kind: transformer, width: 256, heads: 5}} => heads ... 256 ... 5
3 => expected a mapping of names, each with a mapping of settings
"""
DECODINGS = """
{length_penalty: -1} => mine: length_penalty: expected at least 0, not -1
{length_penalty: much} => mine: length_penalty: ... not 'much'
{length_penalty: {tunedon: a}} => mine: length_penalty: ... mean 'tuned_on'?
{length_penalty: {}} => mine: length_penalty: key 'tuned_on' is missing
{length_penalty: {tuned_on: 1}} => mine: length_penalty.tuned_on: ... not 1
{batch_words: 1} => mine: unknown key 'batch_words'; did you mean 'batch_tokens'
{minimum_length: 6, maximum_length: {factor: 0, offset: 5}} => mine: minimum_length 6 is above ... 5
"""


def test_models_and_decodings(root: Path, copy: Path) -> None:
    transformer = [str(root / "examples/transformer.py")]
    for file, table in (("models", MODELS), ("decodings", DECODINGS)):
        path = copy / f"config/{file}.yaml"
        text = path.read_text("utf-8")
        for entry, words in rows(table):
            path.write_text(f"{text}mine: {entry}\n", "utf-8")
            said = f"config/{file}.yaml: ... {words}"
            assert_refused(copy, said, extensions=transformer)
        path.write_text(text, "utf-8")


OWN_MODELS = r"""
a.yaml => small: {extends: demo} => models.d/a.yaml: small: config/models.yaml has a model with
a.yaml => taken: {extends: demo, description: a} => b.yaml: taken: config/models.d/a.yaml has a
a.yaml => b: {extends: smal} => config/models.d/a.yaml: b.extends: unknown model 'smal'
a.yaml => b: {extends: demo, training: {clp: 1}} => config/models.d/a.yaml: b ... 'clip'
a.yaml => b: 3 => config/models.d/a.yaml: expected a mapping of names
a.yaml => B: {extends: demo} => config/models.d/a.yaml: expected a name of lower-case letters
a.yaml => b: {\n => config/models.d/a.yaml:2: did not find
a.yml => b: {extends: demo} => config/models.d/a.yml: is not read: rename it to a.yaml
"""


def test_models_in_files_of_their_own(copy: Path) -> None:
    folder = copy / "config/models.d"
    folder.mkdir()
    (folder / "b.yaml").write_text("taken: {extends: demo, description: a}")
    for name, text, words in rows(OWN_MODELS):
        (folder / name).write_text(text)
        assert_refused(copy, words)
        (folder / name).unlink()


TASKS = r"""
target: fr} => target: no} => languages.target: ... write "no" in quotes ... not false
target: fr} => target: french} => languages.target: ... two or three lower-case letters
target: fr} => target: en} => languages: source and target must differ
target: train => traget: train => corpus.train[0]: ... mean 'target'?
, target: train.fr =>  => corpus.train[0]: key 'target' is missing
[{source: train.en, target: train.fr}] => [] => corpus.train: expected 1 or more
{mine: => {train: => corpus.tests ... other than train and valid ... 'train'
{mine: => {Test: => corpus.tests
{mine: [{source: test.en, target: test.fr}]} => {} => corpus.tests: expected 1 or more
[{source: test.en, target: test.fr}] => [] => corpus.tests.mine: expected 1 or more
\n  valid: [{source: valid.en, target: valid.fr}] =>  => expected either corpus.valid or hold_out
\n  valid: [{source: valid.en, target: valid.fr}] => \n  hold_out: {every: 9} => corpus: unknown key
test.fr} => test.fr, references: [r]}, {source: a, target: b} => ... 1, 0 further
test.fr} => test.fr, references: [r]} => ... mine: BLEU uses only the target
train.fr} => train.fr, references: [r]} => corpus.train[0]: ... 'references'
test.fr} => test.en} => corpus.tests.mine[0] ... expected different files
train.en => ftp://a/train.en => corpus: ... ftp:// is not read
train.en => 'https://a/b?raw' => corpus: ... https://a/b?*** ... has no place
train.en => titles://arxiv_titles/train.sentnce => ... mean 'titles://arxiv_tit
train.en => '{x}.en' => corpus.train[0].source: expected a name without {
train.en => opus:SETIMES/en-ro#ro => ... expected opus:CORPUS/VERSION/LANG
train.en => opus:Books/v1/en-fr#de => ... expected opus:CORPUS/VERSION/LANG
description: A => # => key 'description' is missing
"""
OTHER_FILES = r"""
scales/demo => ro: demo_en_fr\n => r: demo_en_fr\n => tasks: unknown task 'wmt16_en_r'
scales/demo => lstm: demo_lstm => lstm: demo_lst => models.lstm: unknown model
scales/demo => ablation_encoder_24_k3, => ablation_24, => left_out.models: unknown
scales/demo => [wmt14_en_de_stanford] => [wmt14_stan] => left_out.tasks: unknown
scales/demo => table1: 1 => tabel1: 1 => seeds_of: unknown table 'tabel1'
scales/demo => [recipes, trainings] => [training] => without: unknown table 'training'
scales/demo => divide_by: 8 => divide_by: 1 => shrink.divide_by: expected at least 2
scales/demo => divide_by: 8 => divide_by: 8\n  keep_recipe: [a] => shrink.keep_recipe: unknown
scales/demo => 6: test\n => 6: tset\n => tests: of the stand-in 'demo_en_fr_word': unkn
scales/demo => demo/downloads => demo/ => results_dir: expected a folder outside
scales/demo => demo\nd => demo/downloads/a/\nd => results_dir: expected a folder outside
scales/demo => results_dir: r => results_dir: -r => results_dir: expected a folder outside
scales/demo => results/scales/demo\n => ./\n => results_dir: expected a folder outside
scales/demo => results_dir: r => results_dir: ~no one/r => results_dir: expected ~NAME with
paper => model: ablation_attention_5} => model: a} => table5: row 10: model: unknown
paper => paper: {bleu: 29.45} => paper: {blue: 2} => table1: row 2: paper: unknown column
paper => {bleu: 29.45} => {bleu: [29.45]} => table1: rows[1].paper.bleu:
paper => {bleu: bleu_detok => {bleu: detok => table1: row 2: measures: bleu: unknown
paper => wmt16_en_ro_word, model: wmt16_en_ro => wmt16_en_ro_word => table1: row 2: key 'model'
paper => \ntrainings:\n => \ncosts:\n => costs:
paper => runs: [ensemble8] => runs: [ensemble1] => table2: ours.runs[0]: expected seedN
phrases => , Mary is in love with John, Mary respects John =>  => word_order: meanings[0]: exp
phrases => Mary is in love with John, =>  => word_order: meanings: expected the same number of
downloads => sha256: 0224 => sha256: 022 => downloads[0].sha256: expected 64 hexa
costs => text: wmt16_en_ro\n => text: wmt16_en_r\n => training 1: text: unknown task
"""


def test_changes_of_a_task_and_of_other_files(copy: Path) -> None:
    (copy / "config/tasks/mine.yaml").write_text(TASK)
    changes = [["tasks/mine", *cells] for cells in rows(TASKS)]
    for file, old, new, words in changes + rows(OTHER_FILES):
        path = copy / f"config/{file}.yaml"
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
        assert_refused(copy, f"config/{file}.yaml: {words}", scale="demo")
        path.write_text(text, "utf-8")


def test_files_that_are_missing_or_of_another_kind_are_named(
    copy: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (copy / "config/downloads.yaml").write_text("url: https://host/a")
    assert_refused(copy, "config/downloads.yaml: downloads: expected a list, not {")
    (copy / "config/costs.yaml").unlink()
    assert_refused(copy, "config/")
    empty = tmp_path_factory.mktemp("empty")
    assert_refused(empty, f"{empty}: has no folder config")


CLAIMS = """
=> expected comparisons, trends, lengths or phrases, or only untested with
comparisons: [{better: [CELL], worse: [OTHER]}], untested: why => or only untested with a reason
comparisons: [{better: [CELL], worse: [OTHER, OTHER]}] => better has 1 cells and worse has 2
comparisons: [{better: [{table: tabel4, row: a}], worse: [OTHER]}] => unknown table ... 'table4'?
comparisons: [{better: [{table: table4, row: ConvS2}], worse: [OTHER]}] => row ... 'ConvS2S'?
comparisons: [{better: [{table: table4, row: ConvS2S, column: bleus}], worse: [OTHER]}] => 'bleu'?
comparisons: [{better: [GNMT], worse: [GNMT]}] => Wu et al. (2016) GNMT ... only printed values
trends: [{table: figure2, x: {'1': 1}, per: layer}] => figure2 has 2 rows '1'; name the group
trends: [{table: figure2, x: {'1': 1}, per: layer, group: encoders}] => group ... mean 'encoder'?
trends: [{table: lstm_table2, x: {ORACLE: 1}, per: layer}] => no number in column 'bleu'
"""
NAMED = {
    "CELL": "{table: table4, row: ConvS2S}",
    "OTHER": "{table: table4, row: -source position}",
    "GNMT": (
        "{table: table1, group: WMT'14 English-German, "
        "row: Wu et al. (2016) GNMT (Word pieces)}"
    ),
    "ORACLE": "Oracle rescoring of the baseline 1000-best lists",
}


def test_claims(copy: Path) -> None:
    for claim, words in rows(CLAIMS):
        for name, text in NAMED.items():
            claim = claim.replace(name, text)
        stated = f"mine: {{says: a, source: b, {claim}}}"
        (copy / "config/claims.yaml").write_text(stated)
        assert_refused(copy, f"config/claims.yaml: mine: ... {words}")


TOP = """
from convs2s.config.architecture import NetworkSettings
from pydantic import BaseModel
class Other(BaseModel):
    def build(self): ...
class Plain:
    prepare = restore = str
"""
TINY = """
from typing import Literal
class Tiny(NetworkSettings):
    kind: Literal["tiny"]
    width: int = 2
    def build(self, source_types, target_types): ...
ARCHITECTURES = {"tiny": Tiny}
"""

EXTENSIONS = r"""
METRICS = {\n => own.py:8: SyntaxError:
METRICS = {}\nMETRICS['a'] = missing => own.py:9: NameError: ... 'missing'
import json\njson.loads('{') => own.py:9: JSONDecodeError:
METRICS = ['lines'] => own.py: METRICS: expected a mapping of names
METRICS = {'a': 3} => METRICS: a: expected a function, not 3
METRICS = {'chrF': len} => METRICS: the name 'chrF' is taken
ARCHITECTURES = {'a': NetworkSettings} => ARCHITECTURES: a: expected a subclass of NetworkSettings w
ARCHITECTURES = {'a': Other} => ARCHITECTURES: a: expected a subclass of NetworkSettings with build
PREPARATIONS = {'a': len, 'b': str} => PREPARATIONS: b: expected a class with prepare and restore
class A: prepare = restore = 3\nPREPARATIONS = {'a': A} => PREPARATIONS: a: expected a class with
PREPARATIONS = {'none': Plain} => the name 'none' is taken
"""


def test_extensions(copy: Path) -> None:
    for code, words in rows(EXTENSIONS):
        (copy / "own.py").write_text(TOP + code)
        assert_refused(copy, words, extensions=["own.py"])


def test_names_and_places_of_extensions(copy: Path) -> None:
    (copy / "own.py").write_text("METRICS = {'lines': len}")
    (copy / "again.py").write_text("METRICS = {'lines': len}")
    taken = "again.py: METRICS: the name 'lines' is taken"
    assert_refused(copy, taken, extensions=["own.py", "again.py"])
    cut = "b.py: rename it, without ':' in its path"
    assert_refused(copy, cut, extensions=[f"a{os.pathsep}b.py"])
    (copy / "own.py").write_text(TOP + TINY)
    tiny = "architecture: {kind: tiny, wdith: 3}, training: {clip: 1}"
    with (copy / "config/models.yaml").open("a") as models:
        models.write(f"tiny: {{description: a, {tiny}}}\n")
    unknown = "models.yaml: tiny: architecture: unknown key 'wdith' ... 'width'?"
    assert_refused(copy, unknown, extensions=["own.py"])
    (copy / "own.py").write_bytes(b"\xff")
    unread = "own.py: cannot be read: 'utf-8' codec can't decode"
    assert_refused(copy, unread, extensions=["own.py"])
