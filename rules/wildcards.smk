"""What wildcards may be, of all rules.

This file comes before all rules, and no pathvar has a wildcard in it: constraints that come later do
not reach rules whose results lie in S3 (its plugin takes an object's name when the rule is read), and
those that come earlier do not reach wildcards inside of pathvars. What a rule itself constrains stays.
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
