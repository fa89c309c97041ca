"""eflomal aligns the words of a corpus in both directions, by sampling, as it comes.

    python benchmarks/peers/run_eflomal.py --source FILE --target FILE

It needs a C compiler to be installed. Prints one JSON object (../sample.py).
"""

import argparse
import tempfile
from importlib import metadata
from pathlib import Path

from environment import enter

if __name__ == "__main__":
    enter("eflomal", ("eflomal==2.0.0", "Cython==3.3.1", "numpy==2.4.6"))

from eflomal import Aligner

from sample import sample


def main() -> None:
    """Align and print."""
    parser = argparse.ArgumentParser(description="eflomal's speed.")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    arguments = parser.parse_args()
    sides = [
        path.read_text("utf-8").split("\n")[:-1]
        for path in (arguments.source, arguments.target)
    ]

    def align() -> int:
        with tempfile.TemporaryDirectory() as folder:
            names = {
                f"links_filename_{way}": str(Path(folder) / way)
                for way in ("fwd", "rev")
            }
            Aligner().align(*sides, **names)
        return len(sides[0])

    sample(align, versions={"eflomal": metadata.version("eflomal")})


if __name__ == "__main__":
    main()
