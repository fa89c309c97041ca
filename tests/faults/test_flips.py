"""A sample of the flipped bits of ``make faults``."""

from tests.faults.flips import run


def test_a_flipped_bit_between_two_steps_is_noticed_or_harmless() -> None:
    counts = run(flips=240)
    assert {name: one.silent for name, one in counts.items() if one.silent} == {}
    noticed = sum(one.noticed for one in counts.values())
    assert noticed > 200
