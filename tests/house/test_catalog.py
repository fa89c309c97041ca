"""What the Snakemake workflow catalog and snakedeploy look for, where they look for it."""

import re
from pathlib import Path

import pytest
import yaml

from configuration import as_json
from tests.support.checkout import Checkout


def test_what_the_catalog_reads_is_there_and_the_schema_in_step(root: Path) -> None:
    text = (root / ".snakemake-workflow-catalog.yml").read_text("utf-8")
    usage = yaml.safe_load(text)["usage"]
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    assert "config.yaml" in (root / "config/README.md").read_text("utf-8")
    schema = root / "workflow/schemas/config.schema.json"
    assert schema.read_text("utf-8") == as_json("config")


def test_every_place_names_the_same_least_snakemake(root: Path) -> None:
    readme, snakefile, project = (
        (root / name).read_text("utf-8")
        for name in ("README.md", "workflow/Snakefile", "pyproject.toml")
    )
    (badge,) = re.findall(r"badge/snakemake-≥([\d.]+)-", readme)
    assert f'min_version("{badge}")' in snakefile
    assert f"snakemake[reports]>={badge}," in project


def test_the_deployed_configuration_has_every_key_of_the_one_at_the_root(
    root: Path,
) -> None:
    """After a change of a class: the new config.yaml's keys go below the heading of the other."""
    own, deployed = (
        (root / file).read_text("utf-8").partition("\n\n")[2]
        for file in ("config.yaml", "config/config.yaml")
    )
    assert own == deployed


@pytest.mark.slow
def test_the_test_configuration_runs(checkout: Checkout) -> None:
    checkout.snakemake("--directory", ".test").succeeded()
    assert "BLEU" in checkout.read(".test/results/demo_en_fr/bleu.txt")


def test_another_folder_needs_no_configuration(
    planned_checkout: Checkout, tmp_path: Path
) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    done = planned_checkout.snakemake("--dry-run", "--directory", elsewhere)
    assert done.succeeded().planned["train_model"] == 2
