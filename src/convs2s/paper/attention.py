"""The attention of a model's decoder layers: on a sentence, or on a line of a decoded test set."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from convs2s.config.decoding import DecodingSettings
from convs2s.decoding.inspection import attention_of
from convs2s.decoding.translate import LineTranslator
from convs2s.errors import UserError
from convs2s.files.text import read_lines, write_json
from convs2s.pages.render import asset, render_page
from convs2s.paper.attention_maps import ExampleAttention, plot_attention_maps
from convs2s.paper.ledger import RunScore


def attend_to_example(
    *,
    model: Path,
    sentence: str,
    settings: DecodingSettings,
    header: Mapping[str, str],
    stand_in: str | None,
    output: Path,
    manifest: Mapping[str, object],
) -> None:
    """Write the result of `example_of` as a JSON file, with the manifest of the job."""
    example = example_of(model, sentence, settings, header, stand_in)
    write_json(output, {**asdict(example), "manifest": manifest})


def example_of(
    model: Path,
    sentence: str,
    settings: DecodingSettings,
    header: Mapping[str, str],
    stand_in: str | None,
) -> ExampleAttention:
    """Translate a raw sentence, and return the attention weights of each decoder layer.

    ``header`` has the task, model, run and scale.
    """
    translator = LineTranslator([model], settings, "cpu")
    (translation,) = translator.translate([sentence])
    attention = translator.attention(translation).as_json()
    # The signature contains no words of the sentence, because a ledger refuses texts that a page
    # could read as markup.
    signature = (
        f"{len(translation.source_tokens)} tokens of source and {len(translation.tokens)} of "
        f"translation, {header['model']} {header['run']}"
    )
    return ExampleAttention(
        **header,
        stand_in=stand_in,
        source=sentence,
        source_tokens=attention["source"],
        translation=translation.text,
        target_tokens=attention["target"],
        layers=RunScore(len(attention["weights"]), signature),
        weights=attention["weights"],
    )


def attention_page(example: ExampleAttention) -> str:
    """Return an HTML page that shows the attention on a sentence in the way the report does.

    The last program of the page sets ``data-ready`` on the root element when the view is built.
    """
    mark_ready = 'document.documentElement.dataset.ready = "yes";\n'
    view = asset("attention_view.js") + asset("attention.js")
    styles = map(asset, ("page.css", "attention_view.css", "attention_page.css"))
    content = {"example": example}
    return render_page(
        "attention_page.html.j2", content, programs=[view, mark_ready], styles=styles
    )


def sentence_of(
    stated: str | None,
    text: str,
    line: int | None,
) -> str:
    """Return ``stated``, or if it is None, the line with number ``line`` (from 1) of a text file.

    ``text`` is the path of the text file. ``line`` may be None only if there is a ``stated``.

    Raises:
        UserError: the file does not have this line.
    """
    if stated is None and line is not None:
        stated = next(islice(read_lines(text), line - 1, None), None)
    if stated is None:
        raise UserError(
            f"config/scales: example_line is {line}, but {text} has fewer lines; name another line"
        )
    return stated


def plot_attention(
    *,
    model: Path,
    translations: Path,
    line: int,
    heading: str,
    outputs: Sequence[Path],
) -> None:
    """Draw the attention on one line (counted from 1) of a decoded test set (JSON lines)."""
    attention = attention_of(model, translations, line)
    plot_attention_maps(
        attention.weights, attention.source, attention.target, heading, outputs
    )
