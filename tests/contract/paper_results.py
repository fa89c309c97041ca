"""A results folder as a run of the paper leaves it, small and made up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from convs2s.config.load import load
from convs2s.config.paper import Table
from convs2s.config.settings import Settings
from convs2s.files.text import write_lines
from convs2s.paper.cells import Cell, CellAddress
from convs2s.paper.ledger import LedgerEntry, RunNames, RunScore, fingerprint_of
from convs2s.paper.report.write import write_report

HOSTILE = "<script>alert('text')</script><img src=https://example.org/x onerror=alert(1)> & </td>"
"""Text of a corpus that would do harm if it were taken for HTML."""

STAND_IN = "made up & <b>small</b>"

# One claim with a comparison, one of a trend that a pair of rows refutes, one without.
CLAIMS = """{"scale": "tiny", "claims": [
  {"name": "positions", "says": "Positions help", "source": "section 5.4", "verdict": "held",
   "findings": [{"comparison": "A better than B", "verdict": "held", "value": 0.71, "note": null,
                 "interval": [0.31, 1.2], "p": 0.004, "runs": "2 against 2"}],
   "untested": null},
  {"name": "depth", "says": "Depth helps", "source": "section 5.4", "verdict": "not held",
   "findings": [{"comparison": "A better than B", "verdict": "not held", "value": 0.71,
                 "p_reversal": 0.001, "note": "3 beats 5"}],
   "untested": null},
  {"name": "beam", "says": "HOSTILE", "source": "table 3", "verdict": "not run",
   "findings": [], "untested": "HOSTILE"}
]}"""

EPOCH = (
    '{"epoch": %d, "learning_rate": 0.25, "tokens": 36000, "tokens_per_second": 100, '
    '"train_loss": 4, "updates": 10, "valid_loss": 5, "valid_perplexity": %f%s}\n'
)

RECORD = """{"best_epoch": 10, "epochs": 10, "updates": 100, "parameters": 2943170,
"validation_perplexity": 1.65, "stop_reason": "HOSTILE", "manifest": {%s
  "threads": 2, "workers": 1, "processor": "HOSTILE", "python": "3.11.7",
  "packages": {"torch": "2.13.0", "eflomal": null}
}}"""

LINE = (
    '{"line": %d, "source": "HOSTILE %d", "text": "Satz %d", "text_before": "", %s}\n'
)
WORDS = '"words": ["Ja", "."], "words_before": ["Ja", "."], "replacements": []'
UNKNOWN_WORDS = (
    '"words": ["Der", "<unk>", "in", "<unk>", "."], '
    '"words_before": ["Der", "<unk>", "in", "<unk>", "."], "replacements": ['
    '{"word": "Hund", "source_word": "dog", "by": "dictionary"}, '
    '{"word": "Zürich", "source_word": "Zürich", "by": "copied"}]'
)

EXAMPLE = """{"task": "task", "model": "model1", "run": "seed1", "scale": "tiny",
  "stand_in": "made up & <b>small</b>", "layers": {"score": 8, "signature": "a sentence"},
  "source": "We built this festival <b>", "translation": "Wir haben dieses Festival",
  "source_tokens": ["We", "built", "this", "festival", "<b>", "</s>"],
  "target_tokens": ["Wir", "haben", "dieses", "Festival", "</s>"],
  "weights": %s}"""

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="90"><circle r="80"/></svg>'


@dataclass(frozen=True)
class PaperResults:
    """The folder.

    Attributes:
        folder: of the results, ``paper``, ``logs`` and the tasks below it.
        settings: the configuration, of two models of one task.
        cells: of each table.
        inputs: the files that the rule hands to the report.
    """

    folder: Path
    settings: Settings
    cells: dict[str, list[Cell]]
    inputs: list[str]

    @property
    def tables(self) -> Mapping[str, Table]:
        """The exhibits, by name."""
        return self.settings.paper

    @property
    def output(self) -> Path:
        """Where the report goes."""
        return self.folder / "paper/report.html"

    def report(
        self, *, stand_in: str | None = STAND_IN, without: str = "nothing"
    ) -> str:
        """Write the report without those inputs whose path holds some words; return its text."""
        scale = self.settings.scale.model_copy(update={"stand_in": stand_in})
        write_report(
            replace(self.settings, scale=scale),
            cells=self.cells,
            failures={},
            inputs=[path for path in self.inputs if without not in path],
            output=self.output,
        )
        return self.output.read_text("utf-8")

    def write(self, path: str, text: str) -> None:
        """Write a file that the rule hands to the report."""
        file = self.folder / path
        write_lines(file, text.replace("HOSTILE", HOSTILE).splitlines())
        self.inputs.append(str(file))


def write_paper_results(folder: Path, root: Path) -> PaperResults:
    """Write the files of runs of two of every three rows of every table, two seeds each."""
    loaded = load(root, {"scale": "demo"})
    tables = {}
    for name, table in loaded.paper.items():
        rows = [row.model_copy(update={"note": HOSTILE}) for row in table.rows]
        tables[name] = table.model_copy(update={"rows": rows})
    settings = replace(
        loaded,
        tasks={**loaded.tasks, "task": loaded.tasks["demo_en_fr"]},
        paper=tables,
        options=loaded.options.model_copy(update={"scale": "tiny"}),
    )
    results = PaperResults(folder, settings, {name: [] for name in tables}, [])
    ledger: list[LedgerEntry] = []
    for name, table in tables.items():
        for row in settings.scale.shown_rows(table):
            if table.rows[row].kind == "ours":
                columns = [CellAddress(name, row, one.key) for one in table.columns]
                entries = _entries(folder, columns)
                for address in columns:
                    cell = Cell(
                        address,
                        measure="bleu_tokenized",
                        task="task",
                        model=entries[0].run.model,
                        testset="test",
                        decoding="beam5",
                        phrases=None,
                        records=entries,
                    )
                    results.cells[name].append(cell)
                if (row + 1) % 3:
                    ledger += entries
    # The speed of a run is of no test set, and rests on its history.
    run = folder / "task/models/model1/seed1"
    speed = replace(
        ledger[0],
        file=f"{run}/training.speed.json",
        fingerprint=fingerprint_of({}),
        inputs={},
        table_cells=(),
        run=RunNames("task", "model1", "seed1", None, None),
        lines=None,
        sha256={f"{run}/history.jsonl": "0c" * 32},
    )
    lines = [f"{entry.line()}\n" for entry in (*ledger, speed)]
    results.write("paper/ledger.jsonl", "".join(lines))
    results.write("paper/claims.json", CLAIMS)
    _write_runs(results)
    return results


def _entries(folder: Path, columns: Sequence[CellAddress]) -> list[LedgerEntry]:
    """Return the BLEU of two seeds, which all columns of a row show."""
    table, row = columns[0].table, columns[0].row
    model = f"model{(row + 1) % 3}"
    entries = []
    for seed in (1, 2):
        inputs = {"row": f"{table} {row}", "seed": seed}
        translations = f"{folder}/task/models/{model}/seed{seed}/test.beam5.jsonl"
        reference = f"{folder}/task/corpus/raw/test.de"
        entry = LedgerEntry(
            fingerprint=fingerprint_of(inputs),
            file=translations.replace("jsonl", "bleu.json"),
            table_cells=tuple(map(str, columns)),
            run=RunNames("task", model, f"seed{seed}", "test", "beam5"),
            scale="tiny",
            scores={"bleu_tokenized": RunScore(20 + row % 7 + 0.2 * seed, "nrefs:1")},
            lines=500,
            sha256={translations: "0a" * 32, reference: "0b" * 32},
            processor="a processor",
            revision="0123456789abcdef+",
            date=f"2026-01-0{seed}",
            inputs=inputs,
        )
        entries.append(entry)
    return entries


def _write_runs(results: PaperResults) -> None:
    """Write histories of ten epochs, records and logs, then twelve translations of one run.

    Every fifth translation had unknown words. Beside them are their references, the attention of
    an example and a picture of phrases.
    """
    for model in ("model1", "model2"):
        for seed in (1, 2):
            run = f"task/models/{model}/seed{seed}"
            history = ""
            for epoch in range(1, 11):
                bleu = f', "valid_bleu": {epoch}' if model == "model2" else ""
                history += EPOCH % (epoch, 100 / epoch + seed, bleu)
            results.write(f"{run}/history.jsonl", history + '{"stop": "HOSTILE"}\n')
            gpu = '"gpu": "A GPU",' if seed == 2 else ""
            results.write(f"{run}/training.json", RECORD % gpu)
            log = results.folder / f"logs/task/{model}/seed{seed}/train.log"
            write_lines(log, ["trained"])
    lines = references = ""
    for number in range(1, 13):
        words = WORDS if number % 5 else UNKNOWN_WORDS
        lines += LINE % (number, number, number, words)
        references += f"Bezug {number}\n"
    translations = "task/models/model1/seed1/test.beam5"
    results.write(f"{translations}.jsonl", lines)
    results.write("task/corpus/raw/test.de", references)
    layer = [[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]] * 5
    results.write(f"{translations}.example.json", EXAMPLE % ([layer] * 8))
    results.write("paper/lstm_figure2.svg", PICTURE)
