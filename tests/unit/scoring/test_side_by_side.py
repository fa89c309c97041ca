"""Two outputs side by side: what differs, in which order, and what is told of the whole."""

import pytest

from convs2s.errors import UserError
from convs2s.scoring.bleu import compare
from convs2s.scoring.side_by_side import Part, SideBySide, as_text, marked, side_by_side

REFERENCE = ["the man sees two red cars .", "a dog runs .", "she is here now .", "yes ."]
BASELINE = ["the man sees a red car .", "a dog runs .", "she is here now .", "no ."]
SYSTEM = ["the man sees two red cars .", "a dog runs .", "she was there now .", "no !"]


def found(most: int = 10, source: list[str] | None = None) -> SideBySide:
    return side_by_side(
        BASELINE,
        SYSTEM,
        REFERENCE,
        kind="tokenized",
        names=("old", "new"),
        most=most,
        source=source,
    )


def test_words_of_one_output_alone_are_marked() -> None:
    one, other = marked(BASELINE[0], SYSTEM[0])
    assert one == (
        Part("the man sees", False),
        Part("a", True),
        Part("red", False),
        Part("car", True),
        Part(".", False),
    )
    assert [part.text for part in other if part.differs] == ["two", "cars"]
    assert marked("", "x") == ((), (Part("x", True),))


def test_lines_go_from_the_largest_gain_to_the_largest_loss() -> None:
    shown = found().shown
    assert shown[0].number == 1
    assert shown[-1].number == 3
    differences = [line.difference for line in shown]
    assert differences == sorted(differences, reverse=True)
    assert differences[0] > 0 > differences[-1]
    # Few lines are those that differ most, whichever way.
    assert len(found(most=1).shown) == 1
    assert abs(found(most=1).shown[0].difference) == max(map(abs, differences))


def test_the_whole_is_the_paired_bootstraps() -> None:
    one = found()
    assert one.whole == compare(BASELINE, SYSTEM, REFERENCE, kind="tokenized")
    assert (one.lines, one.same) == (4, 1)
    assert one.better + one.worse <= 3
    text = "\n".join(as_text(found(source=["s1", "s2", "s3", "s4"])))
    assert f"p = {one.whole.p_value:.4f}" in text
    assert "baseline   the man sees [-a-] red [-car-] ." in text
    assert "system     the man sees {+two+} red {+cars+} ." in text
    assert "source     s1" in text


def test_files_of_different_lengths_are_refused() -> None:
    with pytest.raises(UserError, match="the source has 1 lines, but new has 4"):
        found(source=["s1"])
    with pytest.raises(UserError, match="old: 3 lines"):
        side_by_side(
            BASELINE[:3], SYSTEM, REFERENCE, kind="tokenized", names=("old", "new"), most=1
        )
