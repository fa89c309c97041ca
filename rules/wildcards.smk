"""The constraints of wildcards in all rules. A rule's own constraints come before these.

Two things must stay as they are:

- This file is included before all rules. Later constraints would not apply to rules whose results
  are in S3, because its plugin takes the names of objects when a rule is read.
- No pathvar contains a wildcard, because earlier constraints do not apply to wildcards in pathvars.
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
