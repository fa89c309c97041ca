"""Targets whose names look like those of the grammar, and are none: nothing is planned for them."""

import pytest

from tests.support.checkout import Checkout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("models/demo/seed01/model.safetensors", "unknown run 'seed01'; expected a seed, such as"),
        ("dataset/train.9-of-2.arrow", "unknown file 'train.9-of-2.arrow'; did you mean"),
    ],
)
def test_a_name_that_is_none_is_no_target(checkout: Checkout, name: str, said: str) -> None:
    done = checkout.snakemake("--dry-run", f"results/demo_en_fr/{name}")
    assert done.code == 1
    assert said in done.said
    assert "Traceback" not in done.said
