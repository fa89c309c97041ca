"""``convs2s serve``: a model behind an address, with a page that asks it."""

import argparse
from importlib.util import find_spec

from convs2s.cli.common import add_device, add_models, add_threads
from convs2s.cli.decoding_options import add_decoding_options, decoding_settings
from convs2s.config.messages import validated
from convs2s.config.section import schema_of
from convs2s.errors import UserError
from convs2s.serving.settings import ServerSettings

NEEDS = ("starlette", "uvicorn")


def add_serve(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.description = (
        "Translate what other programs and a page in a browser ask (docs/serving.md). It listens "
        "on this machine alone unless --host says otherwise; requests that come together are "
        "translated together. Ctrl-C or SIGTERM: it finishes what it was asked, then ends."
    )
    add_models(command)
    for name, schema in schema_of(ServerSettings)["properties"].items():
        default = ServerSettings.model_fields[name].default
        command.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(default),
            default=default,
            help=f"{schema['description']} [{default}]",
        )
    command.add_argument(
        "--pretokenized",
        action="store_true",
        help="texts are the model's own tokens, separated by blanks, such as lo@@ w",
    )
    add_device(command)
    add_threads(command)
    add_decoding_options(command)
    command.set_defaults(run=_serve)


def _serve(arguments: argparse.Namespace) -> None:
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise UserError(
            f"serve: {' and '.join(missing)} not installed: pip install 'convs2s[serve]' (in a "
            "clone: pip install -c constraints.txt -e '.[serve]')"
        )
    from convs2s.serving.server import serve

    stated = {name: getattr(arguments, name) for name in ServerSettings.model_fields}
    serve(
        arguments.model,
        decoding_settings(arguments),
        validated(ServerSettings, stated, "options"),
        device=arguments.device,
        threads=arguments.threads,
        pretokenized=arguments.pretokenized,
    )
