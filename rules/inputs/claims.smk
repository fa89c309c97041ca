"""The input functions of rules/claims.smk."""


def claims_and_tables(wildcards):
    """The claims and the tables whose rows they name, as plain values."""
    return [
        {name: section.model_dump(mode="json") for name, section in sections.items()}
        for sections in (settings.claims, settings.paper)
    ]
