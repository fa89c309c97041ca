"""From downloaded files to text: extract, cut into shards, tokenize and filter them, join, truecase.

A rule writes both sides of a pair at once, so that they cannot fall out of step.
"""

from convs2s.config.corpus import TITLE_FILES

OWN_TEXT = alternatives(name for name, task in tasks.items() if task.text is None)


# The raw text of validation and test sets is kept: translations are scored against it, and what is
# made again has all that rests on it made again.
rule extract_corpus:
    input:
        sources_of,
    output:
        multiext("<corpus>/raw/{split}", ".source.zst", ".target.zst"),
    log:
        "<logs>/{task}/extract_corpus/{split}.log",
    wildcard_constraints:
        split=r"(?!train\.)[a-z][a-z0-9_]*",
        task=OWN_TEXT,
    conda:
        "../envs/text.yaml"
    params:
        pairs=lambda w: tasks[w.task].file_pairs(w.split),
        hold_out=lambda w: (part := tasks[w.task].hold_out_of(w.split)) and tuple(part),
    script:
        "../workflow/scripts/extract_corpus.py"


use rule extract_corpus as extract_training_corpus with:
    output:
        intermediate(expand("<corpus>/raw/{{split,train}}.{side}.zst", side=SIDES)),


use rule extract_corpus as extract_reference with:
    output:
        "<corpus>/raw/{split}.reference{number,[1-9][0-9]*}.target.zst",
    log:
        "<logs>/{task}/extract_reference/{split}.reference{number}.log",
    params:
        pairs=lambda w: tasks[w.task].reference_pairs(w.split, int(w.number)),


rule shard_corpus:
    input:
        multiext("<corpus>/raw/train", source=".source.zst", target=".target.zst"),
    output:
        source=intermediate(expand("<corpus>/raw/train.{shard}.source.zst", shard=PARTS)),
        target=intermediate(expand("<corpus>/raw/train.{shard}.target.zst", shard=PARTS)),
    log:
        "<logs>/{task}/shard_corpus.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/shard_corpus.py"


rule tokenize_and_filter:
    input:
        multiext("<corpus>/raw/{part}", source=".source.zst", target=".target.zst"),
    output:
        sides=expand("<corpus>/clean/{{part}}.{side}.zst", side=SIDES),
        report="<corpus>/clean/{part}.json",
    log:
        "<logs>/{task}/tokenize_and_filter/{part}.log",
    wildcard_constraints:
        part="valid",
    conda:
        "../envs/text.yaml"
    params:
        preparation=lambda w: tasks[w.task].preparation.train,
        languages=lambda w: tasks[w.task].language_pair,
        limits=lambda w: tasks[w.task].clean.model_dump(exclude={"tokens"}),
    script:
        "../workflow/scripts/tokenize_and_filter.py"


use rule tokenize_and_filter as tokenize_and_filter_shard with:
    output:
        # Spelt out again: temp() has no effect on the outputs of another rule.
        sides=intermediate(expand("<corpus>/clean/{{part}}.{side}.zst", side=SIDES)),
        # Kept, as `clean.tokens` and `paper_pairs` are read where these are added up.
        report="<corpus>/clean/{part}.json",
    wildcard_constraints:
        part=f"train.({alternatives(PARTS)})",


rule gather_shards:
    input:
        shards=collect("<corpus>/clean/train.{shard}.{{side}}.zst", shard=PARTS),
    output:
        "<corpus>/clean/train.{side}.zst",
    log:
        "<logs>/{task}/gather_shards/{side}.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/gather_shards.py"


rule count_pairs:
    input:
        shards=collect("<corpus>/clean/train.{shard}.json", shard=PARTS),
        valid="<corpus>/clean/valid.json",
    output:
        total="<corpus>/clean/train.json",
        table="<corpus>/counts.txt",
    log:
        "<logs>/{task}/count_pairs.log",
    conda:
        "../envs/text.yaml"
    params:
        metadata=lambda w: tasks[w.task].corpus_metadata(scale.stand_in).model_dump(mode="json"),
    script:
        "../workflow/scripts/count_pairs.py"


rule tokenize_file:
    input:
        raw="<corpus>/raw/{testset}.{side}.zst",
    output:
        "<corpus>/tok/{testset}.{side}.zst",
    log:
        "<logs>/{task}/tokenize_file/{testset}.{side}.log",
    conda:
        "../envs/text.yaml"
    params:
        preparation=lambda w: tasks[w.task].preparation.test,
        language=lambda w: getattr(tasks[w.task].languages, w.side),
    script:
        "../workflow/scripts/tokenize_file.py"


rule write_title_corpus:
    input:
        lambda w: local_files(tasks[w.task].titles.files),
    output:
        pairs=expand("<downloads>/titles/{{task}}/{file}", file=TITLE_FILES),
        counts="<downloads>/titles/{task}/counts.json",
    log:
        "<logs>/{task}/write_title_corpus.log",
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.titles),
    conda:
        "../envs/text.yaml"
    params:
        titles=lambda w: tasks[w.task].titles.model_dump(mode="json"),
    script:
        "../workflow/scripts/write_title_corpus.py"


rule learn_truecaser:
    input:
        text="<corpus>/clean/train.{side}.zst",
    output:
        "<corpus>/truecaser.{side}.tsv",
    log:
        "<logs>/{task}/learn_truecaser.{side}.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/learn_truecaser.py"


rule truecase_file:
    input:
        text="<corpus>/clean/{split}.{side}.zst",
        truecaser="<corpus>/truecaser.{side}.tsv",
    output:
        "<corpus>/truecased/{split,train|valid}.{side}.zst",
    log:
        "<logs>/{task}/truecase_file/{split}.{side}.log",
    conda:
        "../envs/text.yaml"
    script:
        "../workflow/scripts/truecase_file.py"
