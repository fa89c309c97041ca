"""Whether BPE codes can have made a vocabulary: a model file holds those of the source alone."""

from collections.abc import Sequence

_ENDS_WORD = "</w>"
_FEW = 0.1
"""Share of a vocabulary that no merge makes: glossaries, and what fills an imported one."""


def types_of_other_codes(codes: str, types: Sequence[str]) -> str | None:
    """Say how many types the merges do not make, where they are too many to be a few odd ones.

    Args:
        codes: the BPE codes, a line each, below their version.
        types: of a vocabulary.

    Returns:
        "310 of 1,200", or None where the codes can have made the vocabulary.
    """
    merges = (line.split() for line in codes.splitlines()[1:])
    merged = {"".join(pair) for pair in merges}
    products = {
        one.removesuffix(_ENDS_WORD) if one.endswith(_ENDS_WORD) else f"{one}@@" for one in merged
    }
    long = [one for one in types if len(one.removesuffix("@@")) > 1]
    strange = sum(one not in products for one in long)
    return f"{strange:,} of {len(long):,}" if strange > _FEW * len(long) else None
