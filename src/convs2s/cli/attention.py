"""``convs2s attention``: where a model looks while it translates a sentence."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from convs2s.cli.common import write_utf8
from convs2s.cli.decoding_options import add_decoding_options, decoding_settings
from convs2s.errors import UserError

if TYPE_CHECKING:
    from convs2s.paper.attention_maps import ExampleAttention


def add_attention(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Translate a sentence and print a page (HTML) that shows, layer by layer, where the "
        "decoder looks: point at a token, or go to it by Tab and arrow keys. The page fetches "
        "nothing."
    )
    command.add_argument("model", type=Path, help="model file")
    command.add_argument("sentence", help="raw text")
    add_decoding_options(command)
    command.set_defaults(run=_attention)


def _attention(arguments: argparse.Namespace) -> None:
    from convs2s.model_file import describe_model
    from convs2s.paper.attention import example_of

    model: Path = arguments.model
    description = describe_model(model)
    if description.architecture.kind == "lstm":
        raise UserError(f"{model}: an LSTM has no attention to show")
    stand_in = description.training.get("stand_in")
    example = example_of(
        model,
        arguments.sentence,
        decoding_settings(arguments),
        {"task": description.task, "model": model.name, "run": model.parent.name, "scale": ""},
        None if stand_in is None else str(stand_in),
    )
    write_utf8()
    print(attention_page(example))


def attention_page(example: "ExampleAttention") -> str:
    """Return the report's view of a sentence's attention as a page of its own."""
    from convs2s.pages.render import asset, render_page

    is_ready = 'document.documentElement.dataset.ready = "yes";\n'
    view = asset("attention_view.js") + asset("attention.js")
    styles = map(asset, ("page.css", "attention_view.css", "attention_page.css"))
    content = {"example": example}
    return render_page("attention_page.html.j2", content, programs=[view, is_ready], styles=styles)
