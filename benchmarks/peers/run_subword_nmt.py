"""subword-nmt splits the words of lines into BPE tokens.

    python benchmarks/peers/run_subword_nmt.py --lines FILE --codes FILE

Prints one JSON object (../sample.py).
"""

import argparse
from importlib import metadata
from pathlib import Path

from environment import enter

if __name__ == "__main__":
    enter("subword_nmt", ("subword-nmt==0.3.8", "mock==5.2.0", "tqdm==4.70.1"))

from subword_nmt.apply_bpe import BPE

from sample import sample

WARM_UP_LINES = 100


def main() -> None:
    """Split and print."""
    parser = argparse.ArgumentParser(description="subword-nmt's speed.")
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--codes", type=Path, required=True)
    arguments = parser.parse_args()
    with arguments.codes.open(encoding="utf-8") as stream:
        bpe = BPE(stream)
    lines = arguments.lines.read_text("utf-8").split("\n")[:-1]
    for line in lines[:WARM_UP_LINES]:
        bpe.process_line(line)
    versions = {"subword-nmt": metadata.version("subword-nmt")}
    sample(lambda: len([bpe.process_line(line) for line in lines]), versions=versions)


if __name__ == "__main__":
    main()
