"""sacremoses normalizes and tokenizes English lines, as fairseq's scripts have Moses do it.

    python benchmarks/peers/run_sacremoses.py --lines FILE

Prints one JSON object (../sample.py).
"""

import argparse
from importlib import metadata
from pathlib import Path

from environment import enter

if __name__ == "__main__":
    packages = (
        "sacremoses==0.2.0",
        "click==8.5.1",
        "cloudpickle==3.1.2",
        "joblib==1.6.0",
    )
    enter("sacremoses", (*packages, "regex==2026.11.15", "tqdm==4.70.1"))

from sacremoses import MosesPunctNormalizer, MosesTokenizer

from sample import sample

WARM_UP_LINES = 100


def main() -> None:
    """Tokenize and print."""
    parser = argparse.ArgumentParser(description="sacremoses' speed.")
    parser.add_argument("--lines", type=Path, required=True)
    lines = parser.parse_args().lines.read_text("utf-8").split("\n")[:-1]
    normalize = MosesPunctNormalizer("en", perl_parity=True).normalize
    tokenizer = MosesTokenizer("en")

    def tokenize(line: str) -> str:
        words: str = tokenizer.tokenize(
            normalize(line), aggressive_dash_splits=True, return_str=True
        )
        return words

    for line in lines[:WARM_UP_LINES]:
        tokenize(line)
    versions = {"sacremoses": metadata.version("sacremoses")}
    sample(lambda: len([tokenize(line) for line in lines]), versions=versions)


if __name__ == "__main__":
    main()
