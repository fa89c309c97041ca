"""What wildcards may be, of all rules.

Include this file last: constraints reach wildcards inside of pathvars, such as {model} of <model>, only
of the rules before them. What a rule itself constrains stays as it is.
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
