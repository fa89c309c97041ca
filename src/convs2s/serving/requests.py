"""Read requests, and check that they are within the limits of the server."""

import json
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Annotated, NamedTuple

from pydantic import Field

from convs2s.api.translator import OF_A_MODEL, Translator, check_texts
from convs2s.config.decoding import SPLIT_SENTENCES, DecodingSettings
from convs2s.config.messages import validated
from convs2s.config.section import PositiveInt, Section
from convs2s.decoding.split_lines import SplitLines
from convs2s.errors import UserError, failures_of_file
from convs2s.serving.models import AUTO, Detected, Models
from convs2s.serving.settings import ServerSettings

DRAINED_BYTES = 16 << 20
"""Number of bytes up to which a request that is too large is read and discarded.

A client that sends its whole request before it reads anything would otherwise not get the answer.
"""

Texts = Annotated[list[str], Field(fail_fast=True)]
"""A list of texts. If it has wrong items, only the first one is reported.

Messages about some hundred thousand wrong items would take pydantic seconds.
"""


class RefusedError(UserError):
    """The server refuses a request. The answer has the HTTP code ``status`` and ``headers``."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})


class MediaTypeError(RefusedError):
    """The content type of a request is not one that the server accepts."""

    status = 415


class LateError(RefusedError):
    """A request did not arrive in time. Its connection is closed, as the rest may still arrive."""

    status = 408
    headers = MappingProxyType({"Connection": "close"})


class TooLargeError(RefusedError):
    """A request exceeds a limit of the server."""

    status = 413


class ModelError(RefusedError):
    """The model cannot translate, although the request is valid."""

    status = 500


class BusyError(RefusedError):
    """The server has too much to translate. The client may send the request again later."""

    status = 503


RequestOptions = Mapping[str, object]
"""The keyword arguments of `convs2s.serving.models.translate_tokens` for a request.

Requests with equal options are translated in the same batch.
"""


class CheckedRequest(NamedTuple):
    """A request within the limits, with the model that translates it."""

    lines: SplitLines  # the texts, and the sentences into which they are split
    translator: Translator
    source: Detected  # the source language, stated or detected
    beam: int
    options: RequestOptions


class Sentence(NamedTuple):
    """A sentence to translate; its ``work`` is the number of its tokens times the beam."""

    text: str
    tokens: list[str]
    work: int


class OwnRequest(Section):
    """A request in this server's own format."""

    texts: Texts  # raw texts, each on one line
    source: str = AUTO  # language code
    # Language code; empty means the target of the first model for the source language.
    target: str = ""
    beam: PositiveInt  # number of hypotheses that are kept at each step
    n_best: PositiveInt = 1  # number of hypotheses in each translation
    attention: bool = False  # whether the answer contains attention weights
    split_sentences: bool = SPLIT_SENTENCES  # False if each text is one sentence


def check_search(search: DecodingSettings, settings: ServerSettings) -> None:
    """Check that the default search settings are within the server's own limits.

    Raises:
        UserError: the default beam exceeds the largest beam, or a request may have more texts than
            may wait.
    """
    if search.beam > settings.largest_beam:
        raise UserError(
            f"--beam {search.beam}: more than --largest-beam {settings.largest_beam}: raise "
            "--largest-beam"
        )
    if settings.most_texts > settings.most_waiting:
        raise UserError(
            f"--most-texts {settings.most_texts}: more than --most-waiting "
            f"{settings.most_waiting}, so that requests with so many texts would always be "
            "refused: raise --most-waiting"
        )


async def read_body(parts: AsyncIterator[bytes], most: int) -> bytes:
    """Return the body of a request, which may have at most ``most`` bytes.

    A larger body is read to its end, or up to ``DRAINED_BYTES``, but not kept.

    Raises:
        TooLargeError: the body has more than ``most`` bytes.
    """
    body = bytearray()
    size = 0
    async for part in parts:
        size += len(part)
        if size <= most:
            body += part
        elif size > DRAINED_BYTES:
            break
    if size > most:
        raise TooLargeError(
            f"request: more than {most:,} bytes, the limit of this server: send fewer sentences at "
            "a time, or run `convs2s translate --input FILE`"
        )
    return bytes(body)


def read_json(body: bytes) -> dict[str, object]:
    """Return the JSON object in a body.

    Raises:
        UserError: the body is not UTF-8, not JSON, or not an object.
    """
    with failures_of_file("request", 'not JSON in UTF-8, such as {"texts": ["..."]}'):
        fields = json.loads(body.decode())
    if not isinstance(fields, dict):
        raise UserError('request: expected a JSON object: send {"texts": ["..."]}')
    return fields


def check_request(
    fields: Mapping[str, object],
    settings: ServerSettings,
    search: DecodingSettings,
    models: Models,
) -> CheckedRequest:
    """Check a request; return its sentences, and the model and options for their translation.

    ``fields`` are the keys and values of the request. ``search`` contains the default beam, and the
    search settings that a request cannot change. The texts are split into sentences if both the
    server and the request allow it. Otherwise each text is one sentence.

    Raises:
        TooLargeError: the request exceeds a limit of ``settings``.
        UserError: the request has an unknown key, or a value of another type or out of range; or no
            model translates between these languages; or this model cannot show attention.
    """
    request = validated(OwnRequest, {"beam": search.beam, **fields}, "request")
    if request.beam > settings.largest_beam:
        raise UserError(f"request: beam: expected at most {settings.largest_beam}")
    search = search.model_copy(update={"beam": request.beam})
    search.check_n_best(request.n_best, "request: n_best")
    if len(request.texts) > settings.most_texts:
        raise TooLargeError(
            f"request: {len(request.texts)} texts, but at most {settings.most_texts} are allowed: "
            "send them in several requests"
        )
    # A text may contain half a surrogate pair, which UTF-8 cannot encode. "surrogatepass" avoids an
    # exception here, because check_texts below refuses such a text with a better message.
    sizes = [len(text.encode(errors="surrogatepass")) for text in request.texts]
    longest = max(sizes, default=0)
    if longest > settings.longest_text:
        raise TooLargeError(
            f"request: a text of {longest:,} bytes, but at most {settings.longest_text:,} are "
            "allowed: send one sentence at a time"
        )
    # Attention has a weight for each pair of a target and a source token. A text's number of
    # characters stands for its number of tokens, which is not known yet. One text of the longest
    # length is allowed, which takes some 40 MB per layer by default.
    weights = request.n_best * sum(len(text) ** 2 for text in request.texts)
    if request.attention and weights > settings.longest_text**2:
        raise TooLargeError(
            "request: attention: too much text for attention weights: send fewer or shorter texts"
        )
    texts = check_texts(request.texts, "request: texts")
    translator, source = models.choose(request.source, request.target, texts)
    if request.attention and not translator.attends:
        raise UserError(
            "request: attention: the model of these languages has none; leave this key out"
        )
    splitting_language = None
    if settings.split_sentences and request.split_sentences:
        splitting_language = source["language"]
    lines = SplitLines(list(enumerate(texts, start=1)), splitting_language)
    if len(lines.sentences) > settings.most_waiting:
        raise TooLargeError(
            f"request: {len(lines.sentences)} sentences, but at most {settings.most_waiting} are "
            "allowed: send them in several requests"
        )
    options = {
        **search.model_dump(exclude=OF_A_MODEL),
        "translator": translator,
        "n_best": request.n_best,
        "attention": request.attention,
    }
    return CheckedRequest(lines, translator, source, request.beam, options)


def check_work(
    sentence: Sentence,
    total: int,
    translator: Translator,
    settings: ServerSettings,
) -> None:
    """Check that a sentence is not too long, and that its request is not too much work.

    ``total`` is the work of the sentences of the request up to this one. ``translator`` is the
    model, which also limits the number of tokens.

    Raises:
        TooLargeError: the sentence has too many tokens, or the request is too much work.
    """
    tokens = len(sentence.tokens)
    most = min(settings.longest_sentence, translator.most_tokens)
    if tokens > most:
        raise TooLargeError(
            f"request: a sentence of {tokens:,} tokens, but at most {most:,} are allowed: split "
            f"it: {sentence.text[:40]}..."
        )
    if total > settings.most_work:
        raise TooLargeError(
            f"request: the number of its tokens times the beam is more than "
            f"{settings.most_work:,}: send fewer sentences at a time, or choose a smaller beam"
        )
