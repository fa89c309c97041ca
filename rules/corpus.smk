"""From downloaded files to cleaned text: extract, cut into shards, prepare them side by side, join.

A rule writes both sides of a pair at once, so that they cannot fall out of step. Their names hold
the languages, which no wildcard can give to two outputs: the loop makes the rules of each pair.
"""

SHARD = "train.[0-9]+-of-[0-9]+"

for languages, names in flow.language_pairs(tasks).items():
    raw, clean = (
        [f"<results>/{{task}}/corpus/{stage}/{{part}}.{lang}.zst" for lang in languages]
        for stage in ("raw", "clean")
    )
    shards = [
        f"<results>/{{{{task}}}}/corpus/raw/train.{{scatteritem}}.{lang}.zst" for lang in languages
    ]

    # The raw text of validation and test sets is kept: translations are scored against it, and what
    # is made again has all that rests on it made again.
    for step, split, kept in [
        ("extract_training", "train", intermediate),
        ("extract", r"(?!train\.)[a-z][a-z0-9_]*", list),
    ]:

        rule:
            name:
                "_".join([step, *languages])
            input:
                lambda w: files_of(w.task, w.split),
            output:
                kept([path.replace("{part}", "{split}") for path in raw]),
            log:
                "<logs>/{task}/extract/{split}.log",
            wildcard_constraints:
                task=flow.alternatives(names),
                split=split,
            conda:
                "../envs/text.yaml"
            params:
                pairs=lambda w: flow.file_pairs(tasks, w.task, w.split),
                hold_out=lambda w: flow.hold_out(tasks[w.task], w.split),
                downloads=DOWNLOADS,
                code=script_code("extract.py"),
            script:
                "../workflow/scripts/extract.py"

    rule:
        name:
            "shard_{}_{}".format(*languages)
        input:
            [path.replace("{part}", "train") for path in raw],
        output:
            source=intermediate(scatter.shards(shards[0])),
            target=intermediate(scatter.shards(shards[1])),
        log:
            "<logs>/{task}/shard.log",
        wildcard_constraints:
            task=flow.alternatives(names),
        conda:
            "../envs/text.yaml"
        params:
            code=script_code("shard.py"),
        script:
            "../workflow/scripts/shard.py"

    for step, part, kept in [("clean_shard", SHARD, intermediate), ("clean", "valid", list)]:

        rule:
            name:
                "_".join([step, *languages])
            input:
                raw,
            output:
                sides=kept(clean),
                report=kept(["<results>/{task}/corpus/clean/{part}.json"]),
            log:
                "<logs>/{task}/clean/{part}.log",
            wildcard_constraints:
                task=flow.alternatives(names),
                part=part,
            conda:
                "../envs/text.yaml"
            params:
                preparation=lambda w: tasks[w.task]["preparation"]["train"],
                languages=languages,
                limits=lambda w: tasks[w.task]["clean"],
                code=script_code("clean.py"),
            script:
                "../workflow/scripts/clean.py"


rule gather:
    input:
        gather.shards("<results>/{{task}}/corpus/clean/train.{scatteritem}.{{lang}}.zst"),
    output:
        "<results>/{task}/corpus/clean/train.{lang}.zst",
    log:
        "<logs>/{task}/gather/{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        code=script_code("gather.py"),
    script:
        "../workflow/scripts/gather.py"


rule count_pairs:
    input:
        shards=gather.shards("<results>/{{task}}/corpus/clean/train.{scatteritem}.json"),
        valid="<results>/{task}/corpus/clean/valid.json",
    output:
        total="<results>/{task}/corpus/clean/train.json",
        table="<results>/{task}/corpus/counts.txt",
    log:
        "<logs>/{task}/count_pairs.log",
    conda:
        "../envs/text.yaml"
    params:
        facts=lambda w: flow.corpus_facts(w.task, tasks[w.task], scale),
        code=script_code("count_pairs.py"),
    script:
        "../workflow/scripts/count_pairs.py"


rule tokenize:
    input:
        "<results>/{task}/corpus/raw/{testset}.{lang}.zst",
    output:
        "<results>/{task}/corpus/tok/{testset}.{lang}.zst",
    log:
        "<logs>/{task}/tokenize/{testset}.{lang}.log",
    conda:
        "../envs/text.yaml"
    params:
        preparation=lambda w: tasks[w.task]["preparation"]["test"],
        code=script_code("tokenize.py"),
    script:
        "../workflow/scripts/tokenize.py"
