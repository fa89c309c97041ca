"""A fault of the configuration is one line: the file, the key, the nearest name or the value."""

from pathlib import Path

import pytest

from tests.support.user_task import TASK
from tests.unit.config.writing import append, assert_fault, fault, write


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("scael: demo", "", "unknown key 'scael'; did you mean 'scale'?"),
        ("sentences: [1]", "", "unknown key 'sentences'; expected one of container, cores, "),
        ("cores: many\nscael: demo", "", "unknown key 'scael'"),
        ("plots: {cores: 2}", "plots", "unknown key 'cores'; expected sentences"),
        ("1: 2", "", "not 1"),
        ("plots: {null: 2}", "plots", "not null"),
        ("overrides: {models: {1: {}}}", "overrides.models", "not 1"),
        ("scale: dmeo", "scale", "unknown scale 'dmeo'; did you mean 'demo'?"),
        ("cores: many", "cores", "not 'many'"),
        ("cores: 0", "cores", "at least 1, not 0"),
        ("cores: 1.0", "cores", "not 1.0"),
        ("scatter_above: true", "scatter_above", "not true"),
        ("scatter_above: -1", "scatter_above", "at least 0, not -1"),
        ("scatter_above: null", "scatter_above", "not null"),
        ("device: gpu", "device", "'auto', 'cpu' or 'cuda', not 'gpu'"),
        ("device: 1", "device", "'auto', 'cpu' or 'cuda', not 1"),
        ("shards: 2", "", "unknown key 'shards'; expected one of container, cores, "),
        ("mirrors: ../m", "mirrors", "expected a list, not '../m'"),
        ("mirrors: ['']", "mirrors[0]", "not ''"),
        ("mirrors: [null]", "mirrors[0]", "not null"),
        ("mirrors: {'https://me:secret@host/': 1}", "mirrors", "not {'https://host/': 1}"),
        ("plots: {sentences: [1, 0]}", "plots.sentences[1]", "at least 1, not 0"),
        ("plots: 3", "plots", "expected a mapping of keys to values, not 3"),
        ("tasks: []", "tasks", "1 or more entries, not []"),
        ("- scale", "", "expected a mapping of keys to values, not ['scale']"),
        ("overrides: {models: {smal: {}}}", "overrides.models", "did you mean 'small'?"),
    ],
)  # fmt: skip
def test_faults_of_config_yaml(copy: Path, text: str, place: str, hint: str) -> None:
    write(copy / "config.yaml", text)
    assert_fault(copy, f"config.yaml: {place}", hint)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("scale: demo\nscale: paper", ":2", "duplicate key 'scale'"),
        (
            "plots:\n  sentences: [1]\n  sentences: [2]",
            ":3",
            "duplicate key 'sentences'",
        ),
        ("scale: [demo\ncores: 2", ":2", ""),
        ("a: &x 1\nb: *y", ":2", "undefined alias"),
        ("a: !!python/name:os.system x", ":1", "python/name:os.system"),
        ("scale: \0", "", "not valid YAML: "),
    ],
)
def test_faults_of_what_is_not_yaml(
    copy: Path, text: str, place: str, hint: str
) -> None:
    write(copy / "config.yaml", text)
    assert_fault(copy, f"config.yaml{place}: ", hint)


@pytest.mark.parametrize(
    ("overrides", "file", "hint"),
    [
        ("{models: {small: {training: {clp: 1}}}}", "models.yaml: small", "training: unknown key "
         "'clp'; did you mean 'clip'?"),
        ("{decodings: {greedy: {precision: bf61}}}", "decodings.yaml: greedy", "precision: "),
        ("{tasks: {demo_en_fr: {metric: blue}}}", "tasks/demo_en_fr.yaml", "metric: "),
        ("{tasks: {demo_en_fr: {headline: {decoding: beam55}}}}", "tasks/demo_en_fr.yaml",
         "headline.decoding: unknown decoding 'beam55'"),
        ("{models: {demo: {training: {schedule: {kind: cosine, warmup: 8}}}}}",
         "models.yaml: demo", "training: a cosine schedule needs maximum_epochs above its warmup"),
        ("{models: {demo: {training: {learning_rate: 1e-5, schedule: {kind: step}}}}}",
         "models.yaml: demo", "training: learning_rate 1e-05 is below the schedule's minimum, 0.0"),
    ],
)  # fmt: skip
def test_faults_of_overrides(copy: Path, overrides: str, file: str, hint: str) -> None:
    write(copy / "config.yaml", f"overrides: {overrides}")
    assert fault(copy).startswith(
        f"config/{file} (with the overrides of config.yaml): {hint}"
    )


def test_a_fault_names_the_file_that_states_it(copy: Path) -> None:
    write(copy / "config.local.yaml", "corse: 2\n")
    assert (
        fault(copy) == "config.local.yaml: unknown key 'corse'; did you mean 'cores'?"
    )
    write(copy / "config.local.yaml", "scale: dmeo\n")
    assert fault(copy).startswith("config.local.yaml: scale: unknown scale 'dmeo'")


@pytest.mark.parametrize("given", [None, {"scale": "demo"}])
def test_a_local_file_that_is_not_yaml_is_named(
    copy: Path, given: dict[str, object] | None
) -> None:
    write(copy / "config.local.yaml", "cores: 2\n\tgpus: 1\n")
    assert fault(copy, given).startswith("config.local.yaml:2: ")


def test_a_fault_of_the_command_line_is_told_from_one_of_a_file(copy: Path) -> None:
    message = fault(copy, {"scale": "dmeo"})
    assert message.startswith("--config or --configfile: scale: unknown scale 'dmeo'")
    assert fault(copy, {"scael": "demo"}).startswith(
        "--config or --configfile: unknown key"
    )


def test_a_text_of_the_command_line_that_is_no_number_stays_one(copy: Path) -> None:
    given: dict[str, object] = {
        "overrides": {"models": {"demo": {"training": {"clip": "much"}}}}
    }
    message = fault(copy, given)
    place = "config/models.yaml: demo (with the overrides of --config or --configfile)"
    assert message.startswith(f"{place}: training.clip: ")
    assert message.endswith("not 'much'")


@pytest.mark.parametrize(
    ("old", "new", "place", "hint"),
    [
        ("target: fr}", "target: no}", "languages.target", 'a language code of two or three '
         'lower-case letters, optionally with a suffix such as _title; write "no" in quotes, as '
         'YAML reads it as false without them, not false'),
        ("target: fr}", "target: french}", "languages.target", 'a language code of two or three '),
        ("target: fr}", "target: en}", "languages", "must differ"),
        ("target: train.fr", "traget: train.fr", "corpus.train[0]", "did you mean 'target'?"),
        (", target: train.fr", "", "corpus.train[0]", "key 'target' is missing"),
        ("[{source: train.en, target: train.fr}]", "[]", "corpus.train", "1 or more"),
        ("tests: {mine", "tests: {train", "corpus.tests", "expected a name of lower-case "
         "letters, digits and underscores other than train and valid, not 'train'"),
        ("{mine: [{source: test.en, target: test.fr}]}", "{}", "corpus.tests", "1 or more"),
        ("\n  valid: [{source: valid.en, target: valid.fr}]", "", "", "corpus.valid or hold_out"),
        ("\n  valid: [{source: valid.en, target: valid.fr}]", "\n  hold_out: {every: 100}",
         "corpus", "unknown key 'hold_out'; expected one of obtain, tests, train, valid"),
        ("target: test.fr}]", "target: test.fr, references: [r.fr]}, {source: a, target: b}]",
         "corpus.tests.mine", "1, 0 further references"),
        ("target: test.fr}]", "target: test.fr, references: [r.fr]}]", "corpus.tests.mine",
         "BLEU uses only the target; leave out references"),
        ("target: test.fr}]", "target: test.en}]", "corpus.tests.mine[0]",
         "expected two files, not one for both sides"),
        ("source: train.en", "source: ftp://a/train.en", "corpus", "ftp:// is not read"),
        ("source: train.en", "source: 'https://a/train.en?raw'", "corpus", "has no place among"),
        ("source: train.en", "source: titles://arxiv_titles/train.sentnce", "corpus",
         "did you mean 'titles://arxiv_titles/train.sentence'?"),
        ("description: A user's own language pair\n", "", "", "key 'description' is missing"),
        ("description: A user's own", "vocabulary: {merges: 8,000}\ndescription: my own",
         "vocabulary[0]", "expected text as a key; write numbers without commas"),
        ("description: A user's own language pair\n", "description: a\nname: mine\n", "",
         "unknown key 'name'"),
    ],
)  # fmt: skip
def test_faults_of_a_task(
    copy: Path, old: str, new: str, place: str, hint: str
) -> None:
    assert old in TASK
    write(copy / "config/tasks/mine.yaml", TASK.replace(old, new))
    assert_fault(copy, f"config/tasks/mine.yaml: {place}", hint)


@pytest.mark.parametrize(
    ("line", "place", "hint"),
    [
        ("headline: {model: smal}", "headline.model", "did you mean 'small'?"),
        ("headline: {decoding: beam55}", "headline.decoding", "did you mean 'beam5'?"),
        ("headline: {tests: [min]}", "headline.tests", "did you mean 'mine'?"),
        ("headline: {model: lstm, decoding: beam5}", "headline.decoding", "attention"),
        ("headline: {model: ablation}", "headline.model", "vocabulary_selection"),
        (
            "headline: {decoding: beam5_en_de}",
            "headline.decoding",
            "expected one of mine, valid",
        ),
        ("headline: {seeds: []}", "headline.seeds", "1 or more"),
        (
            "headline: {seeds: [1, 1]}",
            "headline.seeds",
            "without repetitions, not [1, 1]",
        ),
        ("headline: {tests: 1}", "headline.tests", "expected a list, not 1"),
        (
            "metric: rouge\nmetrics: [WER]",
            "metrics",
            "lines of bleu.txt; leave them out with metric: rouge",
        ),
        ("clean: {ratio: .inf}", "clean.ratio", "finite"),
        ("clean: {ratio: 0.5}", "clean.ratio", "at least 1, not 0.5"),
        ("released: {codes: a}", "released", "did you mean 'bpe_codes'?"),
        (
            "text: demo_en_f",
            "text",
            "unknown task 'demo_en_f'; did you mean 'demo_en_fr'?",
        ),
        ("text: demo_en_fr_word", "text", "'demo_en_fr_word' has no text of its own"),
        ("text: demo_en_fr", "languages", "is taken from the task 'demo_en_fr'"),
    ],
)
def test_faults_of_a_tasks_references(
    copy: Path, line: str, place: str, hint: str
) -> None:
    write(copy / "config/tasks/mine.yaml", f"{TASK}{line}\n")
    assert_fault(copy, f"config/tasks/mine.yaml: {place}: ", hint)


@pytest.mark.parametrize(
    "name", ["My-Task", "archives", "downloads", "logs", "paper", "scales"]
)
def test_a_tasks_file_name_is_a_folder_of_its_own(copy: Path, name: str) -> None:
    write(copy / f"config/tasks/{name}.yaml", TASK)
    message = fault(copy)
    assert message.startswith(f"config/tasks/{name}.yaml: ")
    assert name in message.removeprefix(f"config/tasks/{name}.yaml: ")


@pytest.mark.parametrize(
    ("entry", "place", "hint"),
    [
        ("{extends: smal}", "mine.extends", "unknown model 'smal'; did you mean 'small'?"),
        ("{extends: mine}", "mine.extends", "mine -> mine"),
        ("{extends: small, training: {maximum_epochs: null}}", "mine: training", "maximum_epochs"),
        ("{extends: small, architecture: {attention: [1, 7]}}", "mine: architecture.attention",
         "names block 7"),
        ("{extends: small, architecture: {attention: some}}", "mine: architecture.attention",
         "a list of block numbers such as [1, 3, 5], not 'some'"),
        ("{extends: small, architecture: {attention: []}}", "mine: architecture.attention",
         "1 or more"),
        ("{extends: small, architecture: {attention: [1, 1]}}", "mine: architecture.attention",
         "without repetitions"),
        ("{extends: small, architecture: {attention: [1.5]}}", "mine: architecture.attention[0]",
         "not 1.5"),
        ("{extends: small, training: {batch: {tokens: null}}}", "mine: training", "tokens"),
        ("{extends: small, training: {batch: {clip: 1}}}", "mine: training.batch", "'clip'"),
        ("{extends: small, training: {momentum: 1}}", "mine: training.momentum",
         "less than 1, not 1"),
        ("{extends: small, training: {schedule: {kind: cos}}}", "mine: training.schedule.kind",
         "'cosine'"),
        ("{extends: lstm, architecture: {encoder: [{layers: 1, width: 8, kernel: 3}]}}",
         "mine: architecture", "unknown key 'encoder'; expected one of cells, dropout, "),
        ("{description: one, architecture: {kind: lsmt, cells: 8}}", "mine: architecture", "lsmt"),
        ("{description: one, architecture: {kind: 5}}", "mine: architecture", "5"),
        ("{description: one, architecture: 5}", "mine: architecture", "not 5"),
        ("{description: one, architecture: {embedding: 8}}", "mine: architecture",
         "key 'encoder' is missing"),
        ("{extends: small, architecture: {kind: lstm}}", "mine: architecture",
         "unknown key 'output_embedding'; did you mean 'embedding'?"),
        ("3", "", "expected a mapping of names, each with a mapping of settings"),
    ],
)  # fmt: skip
def test_faults_of_a_model(copy: Path, entry: str, place: str, hint: str) -> None:
    append(copy / "config/models.yaml", f"mine: {entry}\n")
    assert_fault(copy, f"config/models.yaml: {place}", hint)


@pytest.mark.parametrize(
    ("entry", "place", "hint"),
    [
        ("{length_penalty: -1}", "length_penalty", "at least 0, not -1"),
        ("{length_penalty: much}", "length_penalty", "not 'much'"),
        (
            "{length_penalty: {tunedon: valid}}",
            "length_penalty",
            "did you mean 'tuned_on'?",
        ),
        ("{length_penalty: {}}", "length_penalty", "key 'tuned_on' is missing"),
        ("{length_penalty: {tuned_on: 1}}", "length_penalty.tuned_on", "not 1"),
        (
            "{batch_words: 1}",
            "unknown key 'batch_words'",
            "did you mean 'batch_tokens'?",
        ),
    ],
)
def test_faults_of_a_decoding(copy: Path, entry: str, place: str, hint: str) -> None:
    append(copy / "config/decodings.yaml", f"mine: {entry}\n")
    assert_fault(copy, f"config/decodings.yaml: mine: {place}", hint)


@pytest.mark.parametrize(
    ("file", "old", "new", "place", "hint"),
    [
        ("scales/demo.yaml", "wmt16_en_ro: demo_en_fr\n", "wmt16_en_r: demo_en_fr\n",
         "tasks", "did you mean 'wmt16_en_ro'?"),
        ("scales/demo.yaml", "lstm: demo_lstm\n", "lstm: demo_lst\n",
         "models.lstm", "did you mean 'demo_lstm'?"),
        ("scales/demo.yaml", "ablation_encoder_24_k3,", "ablation_24_k3,",
         "left_out.models", "did you mean 'ablation_encoder_24_k3'?"),
        ("scales/demo.yaml", "[wmt14_en_de_stanford]", "[wmt14_stanford]",
         "left_out.tasks", "did you mean 'wmt14_en_de_stanford'?"),
        ("scales/demo.yaml", "table1: 1", "tabel1: 1", "seeds_of", "did you mean 'table1'?"),
        ("scales/demo.yaml", "divide_by: 8", "divide_by: 1", "shrink.divide_by", "at least 2"),
        ("scales/demo.yaml", "newstest2016: test\n", "newstest2016: tset\n",
         "tests: of the stand-in 'demo_en_fr_word'", "did you mean 'test'?"),
        ("paper.yaml", "model: ablation_attention_5}", "model: ablation_attention_6}",
         "table5: row 10: model", "unknown model 'ablation_attention_6'; did you mean "),
        ("paper.yaml", "paper: {bleu: 29.45}", "paper: {blue: 29.45}",
         "table1: row 2: paper", "did you mean 'bleu'?"),
        ("paper.yaml", "paper: {bleu: 29.45}", "paper: {bleu: [29.45]}",
         "table1: rows[1].paper.bleu", "not [29.45]"),
        ("paper.yaml", "measures: {bleu: bleu_detokenized}", "measures: {bleu: detokenized}",
         "table1: row 2: measures: bleu", "did you mean 'bleu_detokenized'?"),
        ("paper.yaml", "task: wmt16_en_ro_word, model: wmt16_en_ro", "task: wmt16_en_ro_word",
         "table1: row 2", "key 'model' is missing"),
        ("paper.yaml", "\ntrainings:\n", "\ncosts:\n", "costs", "rename the table"),
        ("paper.yaml", "runs: [ensemble8]", "runs: [ensemble1]", "table2: ours.runs[0]",
         "expected seedN, or ensembleN with N of 2 to 99, not 'ensemble1'"),
        ("phrases.yaml", "[Mary admires John, Mary is in love with John, Mary respects John]",
         "[Mary admires John]", "word_order: meanings[0]", "2 or more entries"),
        ("phrases.yaml", "[Mary admires John, Mary is in love with John, Mary respects John]",
         "[Mary admires John, Mary respects John]", "word_order: meanings",
         "expected the same number of phrases for each meaning, not "),
        ("downloads.yaml", "sha256: 0224", "sha256: 022", "downloads[0].sha256",
         "expected 64 hexadecimal digits, not "),
        ("costs.yaml", "- text: wmt16_en_ro\n", "- text: wmt16_en_r\n", "training 1: text",
         "did you mean 'wmt16_en_ro'?"),
    ],
)  # fmt: skip
def test_faults_of_the_other_files(
    copy: Path, file: str, old: str, new: str, place: str, hint: str
) -> None:
    path = copy / "config" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    message = fault(copy, {"scale": "demo"})
    assert message.startswith(f"config/{file}: {place}: ")
    assert hint in message


def test_a_file_that_is_not_there_is_named(copy: Path) -> None:
    (copy / "config/costs.yaml").unlink()
    assert fault(copy) == "config/costs.yaml: cannot be read: No such file or directory"


def test_a_list_of_other_things_than_downloads_is_refused(copy: Path) -> None:
    write(copy / "config/downloads.yaml", "url: https://host/a")
    assert fault(copy).startswith(
        "config/downloads.yaml: downloads: expected a list, not {"
    )


def test_a_folder_without_configuration_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path).startswith(f"{tmp_path}: has no folder config")
