"""What an edit of the code makes again, and what a job takes: set for every job in one place.

A fingerprint among the params of every job stands for Snakemake's own trigger `code`, which goes
by the time a script was last modified.
"""

from snakemake.io import strip_wildcard_constraints

from convs2s.pipeline.fingerprint import fingerprints

# A training knows by its version and its inputs whether it is to be repeated, a download by its
# checksum; a model's settings are their own content; a budget is printed each time.
WITHOUT_FINGERPRINT = {"download_file.py", "write_model_settings.py", "preflight.py"}

KEPT = Path(".snakemake/convs2s/fingerprints.json")

with failures_in_one_line():
    FINGERPRINTS = fingerprints(ROOT / "workflow/scripts", KEPT)

for step in workflow.rules:
    name = Path(step.script or "").name
    is_own = Path(step.snakefile).is_relative_to(ROOT / "rules")  # and no rule of another workflow
    if is_own:  # those of pathvars are filled in too late for Snakemake's own call of this
        step.update_wildcard_constraints()
    carries_code = is_own and name in FINGERPRINTS.keys() - WITHOUT_FINGERPRINT
    if carries_code and "code" not in step.params.keys():
        step.set_params(code=with_preparation(FINGERPRINTS[name]))
    # What a job takes is measured under the name of its log. One that has its file is a module's that
    # was read before.
    if is_own and step.log and step.output and not step.benchmark:
        named = strip_wildcard_constraints(step.log[0]).removeprefix(f"{prefixed(LOGS)}/")
        step.benchmark_modifier = module_of_rules.path_modifier
        step.benchmark = f"{BENCHMARKS}/{named.removesuffix('.log')}.tsv"
