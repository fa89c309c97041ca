"""The input functions of rules/claims.smk."""


def claims_and_tables(wildcards):
    """The claims, the tables whose rows they name, and what stands above, as plain values."""
    stated = [
        {name: section.model_dump(mode="json") for name, section in sections.items()}
        for sections in (settings.claims, settings.paper)
    ]
    return [*stated, what_stands_above()]
