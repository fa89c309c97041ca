"""Two learned metrics: COMET and BLEURT, by packages and models that you install yourself.

Run it: install `unbabel-comet`, or BLEURT from its repository; state below where the model is; put
`extensions: [examples/learned_metrics.py]` into config.yaml and `metrics: [COMET]` into a task's
file, and ask for the task's bleu.txt; or score a file:

    convs2s score bleu --metric COMET --source test.en --reference test.fr < translations.fr

It shows a metric that reads the source sentences, and one that says what a score rests on: the
package's version, and the model by the first digits of its checksum. Nothing is downloaded.
"""

import hashlib
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

from convs2s.errors import UserError
from convs2s.files.checksums import sha256
from convs2s.scoring.bleu import Score

COMET_MODEL = "models/wmt22-comet-da.ckpt"  # a file
BLEURT_MODEL = "models/BLEURT-20"  # a folder
BATCH = 32  # sentences that are scored at a time

Texts = Sequence[str]


def comet(translations: Texts, references: Texts, *, source: Texts) -> Score:
    """Return the mean over the lines, in hundredths: 100 is about the best."""
    about = rests_on("unbabel-comet", COMET_MODEL)
    lines = zip(source, translations, references, strict=True)
    rows = [dict(zip(("src", "mt", "ref"), line, strict=True)) for line in lines]
    model = import_module("comet").load_from_checkpoint(COMET_MODEL)
    # On the CPU: a GPU is another job's.
    scored = model.predict(rows, batch_size=BATCH, gpus=0, progress_bar=False)
    return Score(100 * fmean(map(float, scored.scores)), about)


def bleurt(translations: Texts, references: Texts) -> Score:
    """Return the mean over the lines, in hundredths: 100 is about the best."""
    about = rests_on("BLEURT", BLEURT_MODEL)
    scorer = import_module("bleurt.score").BleurtScorer(BLEURT_MODEL)
    scored = scorer.score(
        references=list(references), candidates=list(translations), batch_size=BATCH
    )
    return Score(100 * fmean(map(float, scored)), about)


def rests_on(package: str, model: str) -> str:
    """Return the version of a package, and a digest of the model; a UserError says what lacks."""
    path = Path(model)
    try:
        installed = version(package)
    except ModuleNotFoundError:
        raise UserError(f"{__file__}: the package {package} is not installed") from None
    if not path.exists():
        raise UserError(f"{model}: no such model; state in {__file__} where it is")
    files = [path, *sorted(path.rglob("*"))]
    digests = [
        f"{sha256(file)}  {file.relative_to(path)}\n"
        for file in files
        if file.is_file()
    ]
    digest = hashlib.sha256("".join(digests).encode()).hexdigest()
    return f"version:{installed}|model:{path.name}@{digest[:8]}"


METRICS = {"COMET": comet, "BLEURT": bleurt}
