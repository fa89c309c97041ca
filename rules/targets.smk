"""What a user asks for by name: the demo, and each stage for the tasks of config.yaml's `tasks`."""

CHOSEN = options["tasks"] or list(
    dict.fromkeys(cell.task for name in TABLES for cell in cells(settings, name))
)


def of_chosen(path):
    """A path below the folder of each chosen task."""
    return [f"{RESULTS}/{task}/{path}" for task in CHOSEN]


def of_headlines(suffix):
    """A file of each headline run of the chosen tasks."""
    return [path for task in CHOSEN for path in headline_files(task, suffix)]


def plots_of(task):
    """The learning curves of a task's headline runs and the attention maps of its first."""
    models = {str(Path(path).parent) for path in headline_files(task, "jsonl")}
    first = headline_files(task, "jsonl")[0].removesuffix(".jsonl")
    attention = [f"{first}.attention{line}" for line in options["plots"]["sentences"]]
    return [f"{path}.svg" for path in [*(f"{model}/curve" for model in sorted(models)), *attention]]


rule demo:
    default_target: True
    localrule: True
    input:
        f"{RESULTS}/demo_en_fr/bleu.txt",
        f"{RESULTS}/demo_en_fr/examples.txt",
        plots_of("demo_en_fr"),


rule download:
    localrule: True
    input:
        [
            path
            for task in CHOSEN
            for split in ("train", "valid", *tasks[task]["corpus"]["tests"])
            for path in files_of(task, split)
        ],


rule prepare:
    localrule: True
    input:
        of_chosen("dataset/train.arrow"),
        of_chosen("dataset/valid.arrow"),


rule align:
    localrule: True
    input:
        of_chosen("alignment/dictionary.tsv"),


rule train:
    localrule: True
    input:
        [str(Path(path).parent / "model.safetensors") for path in of_headlines("jsonl")],


rule decode:
    localrule: True
    input:
        of_headlines("jsonl"),


rule evaluate:
    localrule: True
    input:
        of_chosen("bleu.txt"),


rule tables:
    localrule: True
    input:
        expand("<results>/paper/{table}.md", table=TABLES),


rule figures:
    localrule: True
    input:
        [plot for task in CHOSEN for plot in plots_of(task)],


rule paper:
    localrule: True
    input:
        rules.tables.input,
        rules.figures.input,
