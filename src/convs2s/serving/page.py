"""The server's web page, on which people translate texts and documents."""

from starlette.responses import Response

from convs2s.config.decoding import DecodingSettings
from convs2s.documents.read import SERVED
from convs2s.pages.render import asset, policy_digest, render_page, script
from convs2s.serving.models import Models, example_text
from convs2s.serving.settings import ServerSettings
from convs2s.text.languages import language_name

HTML = "text/html; charset=utf-8"


def server_page(
    models: Models,
    search: DecodingSettings,
    settings: ServerSettings,
) -> Response:
    """Return the HTTP answer that consists of the server's page and its security policy."""
    listed = []
    for translator in models.translators:
        languages = translator.languages
        source = language_name(languages["source"])
        target = language_name(languages["target"])
        listed.append(
            {
                **languages,
                "label": f"{source} to {target}, model {translator.task}",
                "example": example_text(languages["source"]),
                "attends": translator.attends,
            }
        )
    content = {
        "models": listed,
        "beam": search.beam,
        "settings": settings,
        "suffixes": ",".join(SERVED),
    }
    style = asset("attention_view.css") + asset("serve.css")
    program = asset("attention_view.js") + asset("serve.js")
    page = render_page("serve.html.j2", content, programs=[program], styles=[style])
    # The page may run only its own program, with its own style, and send requests only to its own
    # server.
    policy = (
        f"default-src 'none'; script-src '{policy_digest(script(program))}'; "
        f"style-src '{policy_digest(style)}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return Response(page, headers={"Content-Security-Policy": policy}, media_type=HTML)
