"""What the Snakemake workflow catalog and snakedeploy look for, where they look for it."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from configuration import as_json
from tests.support.checkout import Checkout


def test_standardized_usage_is_described(root: Path) -> None:
    settings = yaml.safe_load(
        (root / ".snakemake-workflow-catalog.yml").read_text("utf-8")
    )
    assert set(settings) == {"usage"}
    assert set(settings["usage"]["mandatory-flags"]) == {"desc", "flags"}
    assert settings["usage"]["software-stack-deployment"]["conda"] is False
    assert (root / "workflow/Snakefile").is_file()
    assert "config.yaml" in (root / "config/README.md").read_text("utf-8")


def test_the_schema_is_where_the_catalog_reads_it(root: Path) -> None:
    assert (root / "workflow/schemas/config.schema.json").read_text("utf-8") == as_json(
        "config"
    )


def test_the_readme_names_the_least_snakemake(root: Path) -> None:
    (badge,) = re.findall(
        r"badge/snakemake-≥([\d.]+)-", (root / "README.md").read_text("utf-8")
    )
    assert f'min_version("{badge}")' in (root / "workflow/Snakefile").read_text("utf-8")
    assert f"snakemake[reports]>={badge}," in (root / "pyproject.toml").read_text(
        "utf-8"
    )


@pytest.mark.parametrize("file", ["config/config.yaml", ".test/config/config.yaml"])
def test_configurations_for_deployment_meet_the_schema(root: Path, file: str) -> None:
    text = (root / file).read_text("utf-8")
    (schema,) = re.findall(
        r"^# yaml-language-server: \$schema=(\S+)$", text, re.MULTILINE
    )
    rule = json.loads((root / file).parent.joinpath(schema).read_text("utf-8"))
    Draft202012Validator(rule).validate(yaml.safe_load(text))


def test_the_deployed_configuration_has_every_key_of_the_one_at_the_root(
    root: Path,
) -> None:
    """After a change of a class: the new config.yaml's keys go below the heading of the other."""
    texts = [
        (root / file).read_text("utf-8")
        for file in ("config.yaml", "config/config.yaml")
    ]
    assert len({text.partition("\n\n")[2] for text in texts}) == 1


@pytest.mark.slow
def test_the_test_configuration_runs(checkout: Checkout) -> None:
    checkout.snakemake("--directory", ".test").succeeded()
    assert "BLEU" in (checkout / ".test/results/demo_en_fr/bleu.txt").read_text("utf-8")


def test_another_folder_needs_no_configuration(
    checkout: Checkout, tmp_path: Path
) -> None:
    done = checkout.snakemake(
        "--dry-run", "--directory", str(tmp_path / "elsewhere")
    ).succeeded()
    assert done.planned["train_model"] == 2
