"""From downloaded files to words: training, validation and test text, filtered and truecased.

A rule that drops pairs writes both sides in one job, so that their lines always correspond. The
training text of a large corpus (config.yaml: scatter_above) is prepared in parts, which run in
parallel; other training text is prepared in one job. The parts are temporary files. If a part
changes, or --set-scatter parts=N has another N, the corpus is split again.

Three params of these rules come from the task (config/tasks):

- `pairs` are the references of the files for the split (key `corpus`). The inputs are the paths of
  these files after their download.
- `hold_out` selects the pairs of the training files that are the validation text, in a task with
  that key. The split `valid` then has the training files as inputs. It is None in other tasks.
- `filtering` is the preparation of training text, the languages, and the limits of pairs in words.
"""

from convs2s.config.corpus import TITLE_FILES

OWN_TEXT = {name for name, task in tasks.items() if task.text is None}
LARGE = {name for name in OWN_TEXT if settings.is_large(name)}


rule extract_corpus:
    """Extract the raw text of a validation or test set, against which translations are scored."""
    input:
        raw_files,
        changed=changed("extract_corpus", raw_files),
    output:
        "<results>/{task}/corpus/raw/{split}.source.zst",
        "<results>/{task}/corpus/raw/{split}.target.zst",
    log:
        "<logs>/{task}/extract_corpus/{split}.log",
    benchmark:
        "<benchmarks>/{task}/extract_corpus/{split}.tsv"
    wildcard_constraints:
        split=r"(?!train\.)[a-z][a-z0-9_]*",
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10, large=60),
    params:
        code=code("extract_corpus"),
        pairs=lambda w: tasks[w.task].file_pairs(w.split),
        hold_out=lambda w: tasks[w.task].hold_out_of(w.split),
    script:
        "../workflow/scripts/extract_corpus.py"


rule extract_reference:
    """Extract the raw text of a further reference of a test set."""
    input:
        raw_files,
        changed=changed("extract_reference", raw_files),
    output:
        "<results>/{task}/corpus/raw/{split}.reference{number,[1-9][0-9]*}.target.zst",
    log:
        "<logs>/{task}/extract_reference/{split}.reference{number}.log",
    benchmark:
        "<benchmarks>/{task}/extract_reference/{split}.reference{number}.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10, large=60),
    params:
        code=code("extract_reference"),
        # (target, reference) for each pair of files of the test set: the file's reference with the
        # number {number} in the key `references`.
        pairs=lambda w: tasks[w.task].reference_pairs(w.split, int(w.number)),
    script:
        "../workflow/scripts/extract_reference.py"


rule prepare_training_text:
    """Extract, tokenize and filter a task's training text in one job."""
    input:
        files=raw_files,
        evaluation=lambda w: plan.removed_text(w.task),
        changed=changed("prepare_training_text", raw_files),
    output:
        source="<results>/{task}/corpus/clean/train.source.zst",
        target="<results>/{task}/corpus/clean/train.target.zst",
        report="<results>/{task}/corpus/clean/train.json",
    log:
        "<logs>/{task}/prepare_training_text.log",
    benchmark:
        "<benchmarks>/{task}/prepare_training_text.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT - LARGE),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        code=code("prepare_training_text"),
        pairs=lambda w: tasks[w.task].file_pairs("train"),
        hold_out=lambda w: tasks[w.task].hold_out_of("train"),
        filtering=lambda w: tasks[w.task].filtering,
    script:
        "../workflow/scripts/prepare_training_text.py"


rule split_training_text:
    """Extract the training text of a large corpus and split it into parts."""
    input:
        raw_files,
        changed=changed("split_training_text", raw_files),
    output:
        source=temp(scatter.parts("<results>/{{task}}/corpus/raw/train.{scatteritem}.source.zst")),
        target=temp(scatter.parts("<results>/{{task}}/corpus/raw/train.{scatteritem}.target.zst")),
    log:
        "<logs>/{task}/split_training_text.log",
    benchmark:
        "<benchmarks>/{task}/split_training_text.tsv"
    wildcard_constraints:
        task=alternatives(LARGE),
    conda:
        environment("text")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(480),
    params:
        code=code("split_training_text"),
        pairs=lambda w: tasks[w.task].file_pairs("train"),
        hold_out=lambda w: tasks[w.task].hold_out_of("train"),
    script:
        "../workflow/scripts/split_training_text.py"


rule tokenize_and_filter_part:
    """Tokenize and filter a part of a large corpus."""
    input:
        source="<results>/{task}/corpus/raw/train.{scatteritem}.source.zst",
        target="<results>/{task}/corpus/raw/train.{scatteritem}.target.zst",
        evaluation=lambda w: plan.removed_text(w.task),
        changed=changed("tokenize_and_filter_part"),
    output:
        source=temp("<results>/{task}/corpus/clean/train.{scatteritem}.source.zst"),
        target=temp("<results>/{task}/corpus/clean/train.{scatteritem}.target.zst"),
        report=temp("<results>/{task}/corpus/clean/train.{scatteritem}.json"),
    log:
        "<logs>/{task}/tokenize_and_filter/train.{scatteritem}.log",
    benchmark:
        "<benchmarks>/{task}/tokenize_and_filter/train.{scatteritem}.tsv"
    wildcard_constraints:
        task=alternatives(LARGE),
    group:
        "parts"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(240),
    params:
        code=code("tokenize_and_filter", "tokenize_and_filter_part"),
        filtering=lambda w: tasks[w.task].filtering,
    script:
        "../workflow/scripts/tokenize_and_filter.py"


rule join_training_text:
    """Join the filtered parts of a large corpus."""
    input:
        source=gather.parts("<results>/{{task}}/corpus/clean/train.{scatteritem}.source.zst"),
        target=gather.parts("<results>/{{task}}/corpus/clean/train.{scatteritem}.target.zst"),
        reports=gather.parts("<results>/{{task}}/corpus/clean/train.{scatteritem}.json"),
        changed=changed("join_training_text"),
    output:
        source="<results>/{task}/corpus/clean/train.source.zst",
        target="<results>/{task}/corpus/clean/train.target.zst",
        report="<results>/{task}/corpus/clean/train.json",
    log:
        "<logs>/{task}/join_training_text.log",
    benchmark:
        "<benchmarks>/{task}/join_training_text.tsv"
    wildcard_constraints:
        task=alternatives(LARGE),
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(120),
    params:
        code=code("join_training_text"),
        pairs=lambda w: tasks[w.task].file_pairs("train"),
    script:
        "../workflow/scripts/join_training_text.py"


rule tokenize_and_filter_validation:
    """Tokenize and filter validation text in the same way as training text."""
    input:
        source="<results>/{task}/corpus/raw/valid.source.zst",
        target="<results>/{task}/corpus/raw/valid.target.zst",
        changed=changed("tokenize_and_filter_validation"),
    output:
        source="<results>/{task}/corpus/clean/valid.source.zst",
        target="<results>/{task}/corpus/clean/valid.target.zst",
        report="<results>/{task}/corpus/clean/valid.json",
    log:
        "<logs>/{task}/tokenize_and_filter/valid.log",
    benchmark:
        "<benchmarks>/{task}/tokenize_and_filter/valid.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10, large=60),
    params:
        code=code("tokenize_and_filter", "tokenize_and_filter_validation"),
        filtering=lambda w: tasks[w.task].filtering,
    script:
        "../workflow/scripts/tokenize_and_filter.py"


rule count_pairs:
    """Write a table of the pairs that were read, kept and dropped, with the paper's numbers."""
    input:
        train="<results>/{task}/corpus/clean/train.json",
        valid="<results>/{task}/corpus/clean/valid.json",
        changed=changed("count_pairs"),
    output:
        "<results>/{task}/corpus/counts.txt",
    log:
        "<logs>/{task}/count_pairs.log",
    benchmark:
        "<benchmarks>/{task}/count_pairs.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    localrule: True
    conda:
        environment("text")
    params:
        code=code("count_pairs"),
        # The task's keys `clean` and `paper_pairs` (number of pairs in the paper), and the scale's
        # stand_in. After a change the table is written again, and with it the token stores, as the
        # table is an input of `binarize`.
        metadata=lambda w: tasks[w.task].corpus_metadata(scale.stand_in).model_dump(mode="json"),
    script:
        "../workflow/scripts/count_pairs.py"


rule count_overlap:
    """Count the lines of validation and test text that are also in the training text."""
    input:
        source="<results>/{task}/corpus/clean/train.source.zst",
        target="<results>/{task}/corpus/clean/train.target.zst",
        # `<results>/{task}/corpus/raw/valid.source.zst`, `.target.zst` and those of each test set.
        evaluation=lambda w: plan.evaluation_text(w.task),
        changed=changed("count_overlap"),
    output:
        "<results>/{task}/corpus/overlap.json",
    log:
        "<logs>/{task}/count_overlap.log",
    benchmark:
        "<benchmarks>/{task}/count_overlap.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    priority: 1  # before trainings
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10, large=60),
    params:
        code=code("count_overlap"),
        preparation=lambda w: tasks[w.task].preparation.train,
        languages=lambda w: tasks[w.task].language_pair,
    script:
        "../workflow/scripts/count_overlap.py"


rule tokenize_file:
    """Split test text into words, for tokenized BLEU, perplexity and rescoring."""
    input:
        "<results>/{task}/corpus/raw/{testset}.{side}.zst",
        changed=changed("tokenize_file"),
    output:
        "<results>/{task}/corpus/tok/{testset}.{side}.zst",
    log:
        "<logs>/{task}/tokenize_file/{testset}.{side}.log",
    benchmark:
        "<benchmarks>/{task}/tokenize_file/{testset}.{side}.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10),
    params:
        code=code("tokenize_file"),
        preparation=lambda w: tasks[w.task].preparation.test,
        language=lambda w: getattr(tasks[w.task].languages, w.side),
    script:
        "../workflow/scripts/tokenize_file.py"


rule write_title_corpus:
    """Write sentences of abstracts and titles of papers as the corpus files of a task."""
    input:
        lambda w: plan.title_files(w.task),
        changed=changed("write_title_corpus", lambda w: plan.title_files(w.task)),
    output:
        # train.sentence, train.title, valid.sentence, valid.title, test.sentence, test.title
        pairs=expand("<downloads>/titles/{{task}}/{file}", file=TITLE_FILES),
        counts="<downloads>/titles/{task}/counts.json",
    log:
        "<logs>/{task}/write_title_corpus.log",
    benchmark:
        "<benchmarks>/{task}/write_title_corpus.tsv"
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.titles),
    conda:
        environment("text")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(60),
    params:
        code=code("write_title_corpus"),
        titles=lambda w: tasks[w.task].titles.model_dump(mode="json"),
    script:
        "../workflow/scripts/write_title_corpus.py"


rule learn_truecaser:
    """Learn from training text how each word is written inside a sentence."""
    input:
        text="<results>/{task}/corpus/clean/train.{side}.zst",
        changed=changed("learn_truecaser"),
    output:
        "<results>/{task}/corpus/truecaser.{side}.tsv",
    log:
        "<logs>/{task}/learn_truecaser.{side}.log",
    benchmark:
        "<benchmarks>/{task}/learn_truecaser.{side}.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(8000),
        runtime=minutes(20, large=120),
    params:
        code=code("learn_truecaser"),
    script:
        "../workflow/scripts/learn_truecaser.py"


rule truecase_file:
    """Write the first word of each sentence as it is written inside sentences."""
    input:
        text="<results>/{task}/corpus/clean/{split}.{side}.zst",
        truecaser="<results>/{task}/corpus/truecaser.{side}.tsv",
        changed=changed("truecase_file"),
    output:
        "<results>/{task}/corpus/truecased/{split,train|valid}.{side}.zst",
    log:
        "<logs>/{task}/truecase_file/{split}.{side}.log",
    benchmark:
        "<benchmarks>/{task}/truecase_file/{split}.{side}.tsv"
    wildcard_constraints:
        task=alternatives(OWN_TEXT),
    group:
        "text"
    conda:
        environment("text")
    resources:
        mem_mb=memory(4000),
        runtime=minutes(20, large=120),
    params:
        code=code("truecase_file"),
    script:
        "../workflow/scripts/truecase_file.py"
