"""What wildcards may be, of all rules.

Read last: Snakemake fills in pathvars after it has looked for wildcards to constrain in a rule, and
looks once more at the rules before this place. What a rule itself constrains stays as it is.
"""


wildcard_constraints:
    **dict.fromkeys(["model", "baseline", "system", "scorer"], alternatives(settings.models)),
    **dict.fromkeys(["run", "scorer_run"], f"{RUN_PATTERN}|released"),
    **dict.fromkeys(["split", "testset"], "[a-z][a-z0-9_]*"),
    task=alternatives(tasks),
    side="source|target",
    lang="[a-z]+(_[a-z]+)?",
    seed=SEED_PATTERN,
    decoding=alternatives(settings.decodings),
    device="cpu|cuda",
    metric="bleu|rouge",
    phrases=alternatives(settings.phrases),
