"""The input functions of rules/lstm_figures.smk: of the figures' rows, what their first runs made."""

PHRASE_FIGURE, LENGTH_FIGURE = "lstm_figure2", "lstm_figure3"


def can_be_drawn(name):
    """Return whether what a figure shows is made here, as far as config/paper.yaml has it."""
    return any(cell.decoding or cell.phrases for cell in PLANNED.get(name, []))


LSTM_FIGURES = [name for name in (PHRASE_FIGURE, LENGTH_FIGURE) if can_be_drawn(name)]


def projections_shown():
    """The states of each row's phrases."""
    return [cell.paths[0] for cell in PLANNED[PHRASE_FIGURE]]


def rows_of_curves():
    """The cell of the translations that are shown, and that of the n-best list, if there is one."""
    rows = PLANNED[LENGTH_FIGURE]
    decoded = next(cell for cell in rows if cell.decoding)
    return decoded, next((cell for cell in rows if cell.n_best), None)


def curves_shown():
    """The translations of the figure's first row and the baseline's list, with what scores them."""
    cell, listed = rows_of_curves()
    task, folder = tasks[cell.task], layout.task(cell.task)
    text, (source, target) = layout.task(task.text_name), task.language_pair
    return {
        "system": cell.paths[0].replace(".bleu.json", ".jsonl"),
        "baseline": [baseline_list(listed)] if listed else [],
        "source": text.text("tok", cell.testset, source),
        "reference": text.text("tok", cell.testset, target),
        "vocabulary": folder.vocabulary(source),
    }


def names_of_curves():
    """What the legend calls the curves: a model and a run, or a list."""
    cell, listed = rows_of_curves()
    system = f"{cell.model} {cell.runs[0]}, {cell.decoding}"
    return [system, *([listed.n_best] if listed else [])]
