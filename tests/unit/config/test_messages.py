"""How a fault of the configuration is named: one line with the file, the key, what was expected."""

from pathlib import Path

import pytest

from tests.support.user_task import TASK
from tests.unit.config.writing import fault, write


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scael: demo", "config.yaml: unknown key 'scael'; did you mean 'scale'?"),
        ("sentences: [1]", "config.yaml: unknown key 'sentences'; did you mean 'plots.sentences'?"),
        ("1: 2", "config.yaml: unknown key '1'; expected one of container, cores, device, gpus, "
         "keep_intermediates, learned_metric, mirrors, nodes, overrides, plots, products, "
         "published, ..."),
        ("null: 2", "config.yaml: unknown key 'None'; expected one of container, cores, device, "
         "gpus, keep_intermediates, learned_metric, mirrors, nodes, overrides, plots, products, "
         "published, ..."),
        ("plots: {null: 2}", "config.yaml: plots: unknown key 'None'; expected sentences"),
        ("plots: {shards: 2}", "config.yaml: plots: unknown key 'shards'; it belongs beside "
         "'plots', not in it"),
        ("scale: dmeo", "config.yaml: scale: unknown scale 'dmeo'; did you mean 'demo'?"),
        ("cores: many", "config.yaml: cores: expected a whole number or null, not 'many'"),
        ("cores: 0", "config.yaml: cores: expected at least 1, not 0"),
        ("cores: 1.0", "config.yaml: cores: expected a whole number or null, not 1.0"),
        ("shards: true", "config.yaml: shards: expected a whole number, not true"),
        ("shards: 1000000000000", "config.yaml: shards: expected at most 400, not 1000000000000"),
        ("shards: null", "config.yaml: shards: expected a whole number, not null"),
        ("device: gpu", "config.yaml: device: unknown value 'gpu'; did you mean 'cuda'?"),
        ("device: 1", "config.yaml: device: expected one of auto, cpu, cuda, not 1"),
        ("keep_intermediates: 1", "config.yaml: keep_intermediates: expected true or false, not 1"),
        ("mirrors: ../m", "config.yaml: mirrors: expected a list, not '../m'"),
        ("mirrors: ['']", "config.yaml: mirrors[0]: expected a text of 1 or more characters, not "
         "''"),
        ("mirrors: [null]", "config.yaml: mirrors[0]: expected text, not null"),
        ("plots: {sentences: [1, 0]}", "config.yaml: plots.sentences[1]: expected at least 1, not "
         "0"),
        ("overrides: {models: {1: {}}}", "config.yaml: overrides.models: expected names that are "
         "text, not 1"),
        ("plots: 3", "config.yaml: plots: expected a mapping of keys to values, not 3"),
        ("cores: many\nscael: demo", "config.yaml: unknown key 'scael'; did you mean 'scale'?"),
        ("- scale", "config.yaml: expected a mapping of keys to values, not a list of 1 entries"),
        ("scale: demo\nscale: paper", "config.yaml:2: duplicate key 'scale'"),
        ("plots:\n  sentences: [1]\n  sentences: [2]", "config.yaml:3: duplicate key 'sentences'"),
        ("a: [{b: 1, b: 2}]", "config.yaml:1: duplicate key 'b'"),
        ("scale: [demo\ncores: 2", "config.yaml:2: did not find expected ',' or ']'"),
        ("a: &x 1\nb: *y", "config.yaml:2: found undefined alias"),
        ("a: !!python/name:os.system x", "config.yaml:1: could not determine a constructor for the "
         "tag 'tag:yaml.org,2002:python/name:os.system'"),
        ("scale: \0", "config.yaml: not valid YAML: "),
        (
            "overrides: {models: {smal: {}}}",
            "config.yaml: overrides.models: unknown model 'smal'; did you mean 'small'?",
        ),
        (
            "overrides: {models: {small: {training: {clp: 1}}}}",
            "config/models.yaml: small (with the overrides of config.yaml): training: "
            "unknown key 'clp'; did you mean 'clip'?",
        ),
        (
            "overrides: {decodings: {greedy: {precision: bf61}}}",
            "config/decodings.yaml: greedy (with the overrides of config.yaml): precision: "
            "unknown value 'bf61'; did you mean 'bf16'?",
        ),
        (
            "overrides: {tasks: {demo_en_fr: {metric: blue}}}",
            "config/tasks/demo_en_fr.yaml (with the overrides of config.yaml): metric: unknown "
            "value 'blue'; did you mean 'bleu'?",
        ),
    ],
)  # fmt: skip
def test_faults_of_config_yaml(copy: Path, text: str, message: str) -> None:
    write(copy / "config.yaml", text)
    found = fault(copy)
    assert found == message or (message.endswith(": ") and found.startswith(message))


def test_a_fault_names_the_file_that_states_it(copy: Path) -> None:
    write(copy / "config.local.yaml", "corse: 2\n")
    assert fault(copy) == "config.local.yaml: unknown key 'corse'; did you mean 'cores'?"
    write(copy / "config.local.yaml", "scale: dmeo\n")
    assert fault(copy).startswith("config.local.yaml: scale: unknown scale 'dmeo'")


@pytest.mark.parametrize("given", [None, {"scale": "demo"}])
def test_a_local_file_that_is_not_yaml_is_named(
    copy: Path, given: dict[str, object] | None
) -> None:
    write(copy / "config.local.yaml", "cores: 2\n\tgpus: 1\n")
    assert fault(copy, given).startswith("config.local.yaml:2: found a tab character")


def test_a_fault_of_the_command_line_is_told_from_one_of_a_file(copy: Path) -> None:
    message = fault(copy, {"scale": "dmeo"})
    assert message.startswith("--config or --configfile: scale: unknown scale 'dmeo'")
    assert fault(copy, {"scael": "demo"}).startswith("--config or --configfile: unknown key")


def test_a_text_of_the_command_line_that_is_no_number_stays_one(copy: Path) -> None:
    given: dict[str, object] = {"overrides": {"models": {"demo": {"training": {"clip": "much"}}}}}
    assert fault(copy, given) == (
        "config/models.yaml: demo (with the overrides of --config or --configfile): "
        "training.clip: expected a number, not 'much'"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "languages: {source: en, target: fr}",
            "languages: {source: en, target: no}",
            'languages.target: expected a language code of two or three small letters, in quotes '
            'where YAML reads it as a truth value ("no"), not false',
        ),
        (
            "target: fr}",
            "target: french}",
            'languages.target: expected a language code of two or three small letters, in quotes '
            "where YAML reads it as a truth value (\"no\"), not 'french'",
        ),
        (
            "target: fr}",
            "target: en}",
            "languages: source and target name the same files; write for example en_text and "
            "en_summary",
        ),
        ("target: train.fr", "traget: train.fr", "corpus.train[0]: unknown key 'traget'; did you "
         "mean 'target'?"),
        (", target: train.fr", "", "corpus.train[0]: key 'target' is missing (File of the target "
         "side)"),
        ("[{source: train.en, target: train.fr}]", "[]", "corpus.train: expected a list of 1 or "
         "more, not a list of 0 entries"),
        ("tests: {mine", "tests: {train", "corpus.tests: expected a name of small letters, digits "
         "and underscores other than train and valid, not 'train'"),
        ("{mine: [{source: test.en, target: test.fr}]}", "{}", "corpus.tests: expected 1 or more "
         "entries, not a mapping of 0 entries"),
        ("\n  valid: [{source: valid.en, target: valid.fr}]", "",
         "expected either corpus.valid or hold_out, for validation data"),
        ("\n  valid: [{source: valid.en, target: valid.fr}]", "\n  hold_out: {every: 100}",
         "corpus: unknown key 'hold_out'; it belongs beside 'corpus', not in it"),
        ("target: test.fr}]", "target: test.fr, references: [r.fr]}, {source: a, target: b}]",
         "corpus.tests.mine: its pairs of files have 1, 0 further references; expected as many for "
         "each"),
        ("source: train.en", "source: titles://arxiv_titles/train.sentnce",
         "corpus: unknown file 'titles://arxiv_titles/train.sentnce'; did you mean "
         "'titles://arxiv_titles/train.sentence'?"),
        ("description: A user's own language pair\n", "",
         "key 'description' is missing (One line: what the corpus is)"),
        ("description: A user's own language pair\n", "description: a\nname: mine\n",
         "unknown key 'name'; expected one of alignment, clean, corpus, description, headline, "
          "hold_out, languages, metric, n_best, paper_pairs, preparation, released, ..."),
    ],
)  # fmt: skip
def test_faults_of_a_task(copy: Path, old: str, new: str, message: str) -> None:
    assert old in TASK
    write(copy / "config/tasks/mine.yaml", TASK.replace(old, new))
    assert fault(copy) == f"config/tasks/mine.yaml: {message}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("headline: {model: smal}", "headline.model: unknown model 'smal'; did you mean 'small'?"),
        (
            "headline: {decoding: beam55}",
            "headline.decoding: unknown decoding 'beam55'; did you mean 'beam5'?",
        ),
        (
            "headline: {tests: [min]}",
            "headline.tests: unknown test set 'min'; did you mean 'mine'?",
        ),
        (
            "headline: {model: lstm, decoding: beam5}",
            "headline.decoding: 'beam5' replaces unknown words by attention, which 'lstm', an ",
        ),
        (
            "headline: {model: ablation}",
            "headline.model: 'ablation' selects its vocabulary by aligned words, but 'mine' has "
            "one of pieces of words; name a word task, or a model without vocabulary_selection",
        ),
        (
            "headline: {decoding: beam5_en_de}",
            "headline.decoding: unknown set for 'beam5_en_de' to tune its length penalty on "
            "'newstest2015'; expected one of mine, valid",
        ),
        ("headline: {seeds: []}", "headline.seeds: expected a list of 1 or more, not a list of 0"),
        (
            "headline: {seeds: [1, 1]}",
            "headline.seeds: expected a list without repetitions, not a list of 2 entries",
        ),
        ("headline: {tests: 1}", "headline.tests: expected a list or null, not 1"),
        ("clean: {ratio: .inf}", "clean.ratio: expected a finite number, not inf"),
        ("clean: {ratio: 0.5}", "clean.ratio: expected at least 1, not 0.5"),
        ("released: {codes: a}", "released: unknown key 'codes'; did you mean 'bpe_codes'?"),
        ("text: demo_en_f", "text: unknown task 'demo_en_f'; did you mean 'demo_en_fr'?"),
        ("text: demo_en_fr_word", "text: 'demo_en_fr_word' has no text of its own; name the task"),
        ("text: demo_en_fr", "languages: comes from 'demo_en_fr', as text names it; state it"),
    ],
)
def test_faults_of_a_tasks_references(copy: Path, line: str, message: str) -> None:
    write(copy / "config/tasks/mine.yaml", f"{TASK}{line}\n")
    assert fault(copy).startswith(f"config/tasks/mine.yaml: {message}")


def test_a_tasks_file_name_is_its_name(copy: Path) -> None:
    write(copy / "config/tasks/My-Task.yaml", TASK)
    assert fault(copy).startswith("config/tasks/My-Task.yaml: expected a name of small letters")


@pytest.mark.parametrize("name", ["archives", "downloads", "logs", "paper", "scales"])
def test_a_task_is_not_named_as_a_folder_of_the_results(copy: Path, name: str) -> None:
    write(copy / f"config/tasks/{name}.yaml", TASK)
    assert fault(copy).startswith(f"config/tasks/{name}.yaml: the results have a folder '{name}'")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{extends: smal}", "mine.extends: unknown model 'smal'; did you mean 'small'?"),
        ("{extends: mine}", "mine.extends: a model cannot extend itself: mine -> mine"),
        (
            "{extends: small, training: {maximum_epochs: null}}",
            "mine.training: a cosine schedule needs maximum_epochs above its warmup (0.5), not "
            "None",
        ),
        (
            "{extends: small, architecture: {attention: [1, 7]}}",
            "mine.architecture.attention: names block 7, but the decoder has 3",
        ),
        (
            "{extends: small, architecture: {attention: some}}",
            "mine: architecture.attention: expected all, or a list of block numbers such as "
            "[1, 3, 5], not 'some'",
        ),
        (
            "{extends: small, architecture: {attention: []}}",
            "mine: architecture.attention: expected a list of 1 or more, not a list of 0 entries",
        ),
        (
            "{extends: small, architecture: {attention: [1, 1]}}",
            "mine: architecture.attention: expected a list without repetitions, not a list of 2 "
            "entries",
        ),
        (
            "{extends: small, architecture: {attention: [1.5]}}",
            "mine: architecture.attention[0]: expected a whole number, not 1.5",
        ),
        (
            "{extends: small, training: {batch: {tokens: null}}}",
            "mine.training.batch: expected a number of sentences, of tokens or both",
        ),
        (
            "{extends: small, training: {batch: {clip: 1}}}",
            "mine: training.batch: unknown key 'clip'; did you mean 'training.clip'?",
        ),
        (
            "{extends: small, training: {positions: {}}}",
            "mine: training: unknown key 'positions'; did you mean 'architecture.positions'?",
        ),
        (
            "{extends: small, training: {momentum: 1}}",
            "mine: training.momentum: expected less than 1, not 1",
        ),
        (
            "{extends: small, training: {optimizer: adm, schedule: {kind: cos}}}",
            "mine: training.schedule.kind: unknown value 'cos'; did you mean 'cosine'?",
        ),
        (
            "{extends: lstm, architecture: {encoder: [{layers: 1, width: 8, kernel: 3}]}}",
            "mine: architecture: unknown key 'encoder'; expected one of cells, dropout, embedding, "
            "initialization, kind, layers, reverse_source",
        ),
        (
            "{description: one, architecture: {kind: lsmt, cells: 8}}",
            "mine: architecture.kind: unknown value 'lsmt'; did you mean 'lstm'?",
        ),
        (
            "{description: one, architecture: {kind: 5}}",
            "mine: architecture.kind: expected one of convs2s, lstm, not 5",
        ),
        (
            "{description: one, architecture: 5}",
            "mine: architecture: expected a mapping of keys to values, not 5",
        ),
        (
            "{description: one, architecture: {embedding: 8}}",
            "mine: architecture: key 'encoder' is missing (Stacks of equal convolutional blocks, "
            "bottom first)",
        ),
        (
            "{extends: small, architecture: {kind: lstm}}",
            "mine: architecture: unknown key 'output_embedding'; did you mean 'embedding'?",
        ),
        ("3", "expected a mapping of names, each with a mapping of settings"),
    ],
)
def test_faults_of_a_model(copy: Path, entry: str, message: str) -> None:
    with (copy / "config/models.yaml").open("a", encoding="utf-8") as models:
        models.write(f"\nmine: {entry}\n")
    assert fault(copy) == f"config/models.yaml: {message}"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{length_penalty: -1}", "length_penalty: expected at least 0, not -1"),
        (
            "{length_penalty: much}",
            "length_penalty: expected a number or a mapping of keys to values, not 'much'",
        ),
        (
            "{length_penalty: {tunedon: valid}}",
            "length_penalty: unknown key 'tunedon'; did you mean 'tuned_on'?",
        ),
        (
            "{length_penalty: {}}",
            "length_penalty: key 'tuned_on' is missing (The test set of the task, or valid, on "
            "which alpha is tuned (docs/length_penalty.md))",
        ),
        ("{length_penalty: {tuned_on: 1}}", "length_penalty.tuned_on: expected text, not 1"),
        ("{batch_words: 1}", "unknown key 'batch_words'; did you mean 'batch_tokens'?"),
        ("{factor: 1}", "unknown key 'factor'; did you mean 'maximum_length.factor'?"),
    ],
)
def test_faults_of_a_decoding(copy: Path, entry: str, message: str) -> None:
    with (copy / "config/decodings.yaml").open("a", encoding="utf-8") as decodings:
        decodings.write(f"\nmine: {entry}\n")
    assert fault(copy) == f"config/decodings.yaml: mine: {message}"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("scales/demo.yaml", "wmt16_en_ro: demo_en_fr\n", "wmt16_en_r: demo_en_fr\n",
         "tasks: unknown task 'wmt16_en_r'; did you mean 'wmt16_en_ro'?"),
        ("scales/demo.yaml", "lstm: demo_lstm\n", "lstm: demo_lst\n",
         "models.lstm: unknown model 'demo_lst'; did you mean 'demo_lstm'?"),
        ("scales/demo.yaml", "ablation_encoder_24_k3,", "ablation_24_k3,",
         "left_out.models: unknown model 'ablation_24_k3'; did you mean 'ablation_encoder_24_k3'?"),
        ("scales/demo.yaml", "[wmt14_en_de_stanford]", "[wmt14_stanford]",
         "left_out.tasks: unknown task 'wmt14_stanford'; did you mean 'wmt14_en_de_stanford'?"),
        ("scales/demo.yaml", "table1: 1", "tabel1: 1",
         "seeds_of: unknown table 'tabel1'; did you mean 'table1'?"),
        ("scales/demo.yaml", "divide_by: 8", "divide_by: 1",
         "shrink.divide_by: expected "),
        ("scales/demo.yaml", "newstest2016: test\n", "newstest2016: tset\n",
         "tests: of the stand-in task 'demo_en_fr_word': unknown test set 'tset'; did you mean "
         "'test'?"),
        ("paper.yaml", "model: ablation_attention_5}", "model: ablation_attention_6}",
         "table5: row 10: model: unknown model 'ablation_attention_6'; did you mean "),
        ("paper.yaml", "paper: {bleu: 29.45}", "paper: {blue: 29.45}",
         "table1: row 2: paper: unknown column 'blue'; did you mean 'bleu'?"),
        ("paper.yaml", "paper: {bleu: 29.45}", "paper: {bleu: [29.45]}",
         "table1: rows[1].paper.bleu: expected a number or text or null, not a list of 1 entries"),
        ("paper.yaml", "measures: {bleu: bleu_detokenized}", "measures: {bleu: detokenized}",
         "table1: rows[1].measures.bleu: unknown value 'detokenized'; did you mean "),
        ("paper.yaml", "task: wmt16_en_ro_word, model: wmt16_en_ro", "task: wmt16_en_ro_word",
         "table1: row 2: key 'model' is missing, as the row names a task"),
        ("paper.yaml", "runs: [ensemble8]", "runs: [ensemble1]",
         "table2: ours.runs[0]: expected seedN, or ensembleN with N of 2 to 99, not 'ensemble1'"),
        ("downloads.yaml", "sha256: 0224", "sha256: 022",
         "download 1: sha256: expected 64 hexadecimal digits, not "),
        ("costs.yaml", "- text: wmt16_en_ro\n", "- text: wmt16_en_r\n",
         "training 1: text: unknown task 'wmt16_en_r'; did you mean 'wmt16_en_ro'?"),
    ],
)  # fmt: skip
def test_faults_of_the_other_files(copy: Path, file: str, old: str, new: str, message: str) -> None:
    path = copy / "config" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert fault(copy, {"scale": "demo"}).startswith(f"config/{file}: {message}")


def test_a_file_that_is_not_there_is_named(copy: Path) -> None:
    (copy / "config/costs.yaml").unlink()
    assert fault(copy) == "config/costs.yaml: no such file"


def test_a_list_of_other_things_than_downloads_is_refused(copy: Path) -> None:
    write(copy / "config/downloads.yaml", "url: https://host/a")
    assert fault(copy).startswith("config/downloads.yaml: expected a list of downloads, each with")


def test_a_folder_without_configuration_is_named(tmp_path: Path) -> None:
    assert (
        fault(tmp_path)
        == f"{tmp_path}: has no folder config, as a clone or a deployed workflow has: run it there"
    )
