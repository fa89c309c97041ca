"""From downloaded files to filtered text: extract, cut into shards, prepare them side by side, join.

A rule writes both sides of a pair at once, so that they cannot fall out of step. Their names hold
the languages, which no wildcard can give to two outputs: the loop makes the rules of each pair.
"""


include: "inputs/corpus.smk"


for pair, names in settings.language_pairs().items():
    of_pair = alternatives(names)
    suffix = "_".join(pair)
    raw, clean = (
        [f"<results>/{{task}}/corpus/{stage}/{{part}}.{language}.zst" for language in pair]
        for stage in ("raw", "clean")
    )

    # The raw text of validation and test sets is kept: translations are scored against it, and what
    # is made again has all that rests on it made again.
    for name, split, kept in [
        ("extract_corpus_train", "train", intermediate),
        ("extract_corpus", r"(?!train\.)[a-z][a-z0-9_]*", list),
    ]:

        rule:
            name:
                f"{name}_{suffix}"
            input:
                sources_of,
            output:
                kept([path.replace("{part}", "{split}") for path in raw]),
            log:
                "<logs>/{task}/extract_corpus/{split}.log",
            benchmark:
                "<benchmarks>/{task}/extract_corpus/{split}.tsv"
            wildcard_constraints:
                task=of_pair,
                split=split,
            conda:
                "../envs/text.yaml"
            params:
                pairs=lambda w: on_disk.tasks[w.task].file_pairs(w.split),
                hold_out=hold_out,
                downloads=on_disk.scale.downloads_dir,
                code=script_code("extract_corpus.py"),
            script:
                "../workflow/scripts/extract_corpus.py"

    rule:
        name:
            f"shard_corpus_{suffix}"
        input:
            source=raw[0].replace("{part}", "train"),
            target=raw[1].replace("{part}", "train"),
        output:
            source=intermediate([raw[0].replace("{part}", f"train.{shard}") for shard in PARTS]),
            target=intermediate([raw[1].replace("{part}", f"train.{shard}") for shard in PARTS]),
        log:
            "<logs>/{task}/shard_corpus.log",
        benchmark:
            "<benchmarks>/{task}/shard_corpus.tsv"
        wildcard_constraints:
            task=of_pair,
        conda:
            "../envs/text.yaml"
        params:
            code=script_code("shard_corpus.py"),
        script:
            "../workflow/scripts/shard_corpus.py"

    for name, part, kept in [
        ("tokenize_and_filter_shard", f"train.({PART})", intermediate),
        ("tokenize_and_filter", "valid", list),
    ]:

        rule:
            name:
                f"{name}_{suffix}"
            input:
                source=raw[0],
                target=raw[1],
            output:
                sides=kept(clean),
                report=kept(["<results>/{task}/corpus/clean/{part}.json"]),
            log:
                "<logs>/{task}/tokenize_and_filter/{part}.log",
            benchmark:
                "<benchmarks>/{task}/tokenize_and_filter/{part}.tsv"
            wildcard_constraints:
                task=of_pair,
                part=part,
            conda:
                "../envs/text.yaml"
            params:
                preparation=lambda w: tasks[w.task].preparation.train,
                languages=pair,
                limits=lambda w: tasks[w.task].clean.model_dump(exclude={"tokens"}),
                code=script_code("tokenize_and_filter.py"),
            script:
                "../workflow/scripts/tokenize_and_filter.py"


rule extract_reference:
    input:
        references_to_extract,
    output:
        "<results>/{task}/corpus/raw/{testset}.reference{number}.{lang}.zst",
    log:
        "<logs>/{task}/extract_reference/{testset}.reference{number}.{lang}.log",
    benchmark:
        "<benchmarks>/{task}/extract_reference/{testset}.reference{number}.{lang}.tsv"
    wildcard_constraints:
        number="[1-9][0-9]*",
        lang=alternatives({task.languages.target for task in tasks.values()}),
    conda:
        "../envs/text.yaml"
    params:
        pairs=reference_pairs,
        downloads=on_disk.scale.downloads_dir,
        code=script_code("extract_reference.py"),
    script:
        "../workflow/scripts/extract_reference.py"


rule write_title_corpus:
    input:
        papers_of,
    output:
        pairs=expand("<downloads>/titles/{{task}}/{file}", file=TITLE_FILES),
        counts="<downloads>/titles/{task}/counts.json",
    log:
        "<logs>/{task}/write_title_corpus.log",
    benchmark:
        "<benchmarks>/{task}/write_title_corpus.tsv"
    wildcard_constraints:
        task=alternatives(name for name, task in tasks.items() if task.titles),
    conda:
        "../envs/text.yaml"
    params:
        titles=lambda w: on_disk.tasks[w.task].titles.model_dump(mode="json"),
        downloads=lambda w: on_disk.scale.downloads_dir,
        code=script_code("write_title_corpus.py"),
    script:
        "../workflow/scripts/write_title_corpus.py"


rule gather_shards:
    input:
        shards=expand("<results>/{{task}}/corpus/clean/train.{shard}.{{lang}}.zst", shard=PARTS),
    output:
        "<results>/{task}/corpus/clean/train.{lang}.zst",
    log:
        "<logs>/{task}/gather_shards/{lang}.log",
    benchmark:
        "<benchmarks>/{task}/gather_shards/{lang}.tsv"
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("gather_shards.py"),
    script:
        "../workflow/scripts/gather_shards.py"


rule count_pairs:
    input:
        shards=expand("<results>/{{task}}/corpus/clean/train.{shard}.json", shard=PARTS),
        valid="<results>/{task}/corpus/clean/valid.json",
    output:
        total="<results>/{task}/corpus/clean/train.json",
        table="<results>/{task}/corpus/counts.txt",
    log:
        "<logs>/{task}/count_pairs.log",
    benchmark:
        "<benchmarks>/{task}/count_pairs.tsv"
    conda:
        "../envs/text.yaml"
    params:
        metadata=lambda w: tasks[w.task].corpus_metadata(scale.stand_in).model_dump(mode="json"),
        code=script_code("count_pairs.py"),
    script:
        "../workflow/scripts/count_pairs.py"


rule tokenize_file:
    input:
        raw="<results>/{task}/corpus/raw/{testset}.{lang}.zst",
    output:
        "<results>/{task}/corpus/tok/{testset}.{lang}.zst",
    log:
        "<logs>/{task}/tokenize_file/{testset}.{lang}.log",
    benchmark:
        "<benchmarks>/{task}/tokenize_file/{testset}.{lang}.tsv"
    conda:
        "../envs/text.yaml"
    params:
        preparation=lambda w: tasks[w.task].preparation.test,
        code=script_code("tokenize_file.py"),
    script:
        "../workflow/scripts/tokenize_file.py"
