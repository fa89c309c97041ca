"""Read requests and check their limits."""

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
"""Number of bytes up to which a request that is too large is still read, and dropped.

A client that sends its whole request before it reads would otherwise not get the answer.
"""

Texts = Annotated[list[str], Field(fail_fast=True)]
"""A list of texts, of which only the first wrong item is reported.

A message about each of some hundred thousand wrong items took pydantic seconds.
"""


class RefusedError(UserError):
    """A request that the server refuses to translate, with the HTTP ``status`` of the answer."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})


class MediaTypeError(RefusedError):
    """The body of a request is of another kind than those that the server takes."""

    status = 415


class LateError(RefusedError):
    """A request did not arrive in time. Its connection is closed, as its rest may still come."""

    status = 408
    headers = MappingProxyType({"Connection": "close"})


class TooLargeError(RefusedError):
    """A request exceeds a limit of the server."""

    status = 413


class ModelError(RefusedError):
    """The model cannot translate, though the request is right."""

    status = 500


class BusyError(RefusedError):
    """There is too much to translate at the moment. The client may ask again later."""

    status = 503


RequestOptions = Mapping[str, object]
"""The keyword arguments of `convs2s.serving.models.translate_tokens` for a request.

Requests with equal options are translated in the same batch.
"""


class CheckedRequest(NamedTuple):
    """What a request wants translated, from which language, by which model, and how."""

    lines: SplitLines
    translator: Translator
    source: Detected
    beam: int
    options: RequestOptions


class Sentence(NamedTuple):
    """A sentence for the search, whose ``work`` is the number of its tokens times the beam."""

    text: str
    tokens: list[str]
    work: int


class OwnRequest(Section):
    """A request in this server's own format."""

    texts: Texts  # raw texts, each on one line
    source: str = AUTO  # language code
    target: str = (
        ""  # language code; empty means that of the first model for the source
    )
    beam: PositiveInt  # hypotheses kept at each step
    n_best: PositiveInt = 1  # number of hypotheses in each translation
    attention: bool = False  # whether each translation has its attention
    # Whether each sentence is translated by itself.
    split_sentences: bool = SPLIT_SENTENCES


def check_search(search: DecodingSettings, settings: ServerSettings) -> None:
    """Check that the server's defaults are within its own limits.

    Raises:
        UserError: the default beam exceeds the largest beam, or a request may have more texts than
            may wait.
    """
    if search.beam > settings.largest_beam:
        raise UserError(
            f"--beam {search.beam}: --largest-beam is {settings.largest_beam}: raise that"
        )
    if settings.most_texts > settings.most_waiting:
        raise UserError(
            f"--most-texts {settings.most_texts}: --most-waiting is {settings.most_waiting}: raise "
            "that, or a request with that many sentences would always be refused"
        )


async def read_body(parts: AsyncIterator[bytes], most: int) -> bytes:
    """Return the body of a request, which has at most ``most`` bytes.

    A larger body is read to its end, up to ``DRAINED_BYTES``, but not kept.

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
            f"request: more than {most:,} bytes, the most that this server takes: send fewer "
            "sentences at a time, or run `convs2s translate --input FILE`"
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
    """Return the sentences of a request, and the model and the options to translate them with.

    ``fields`` are the keys of the request. ``search`` has the values of other search settings. The
    texts are split into sentences if both the server and the request allow it; otherwise each text
    is one sentence.

    Raises:
        TooLargeError: the request exceeds a limit of ``settings``.
        UserError: the request has unknown keys, or values of another kind or out of bounds, or
            none of the ``models`` translates its languages or has the attention that it wants.
    """
    request = validated(OwnRequest, {"beam": search.beam, **fields}, "request")
    if request.beam > settings.largest_beam:
        raise UserError(f"request: beam: expected at most {settings.largest_beam}")
    search = search.model_copy(update={"beam": request.beam})
    search.check_n_best(request.n_best, "request: n_best")
    if len(request.texts) > settings.most_texts:
        raise TooLargeError(
            f"request: {len(request.texts)} texts, and {settings.most_texts} is the most: send "
            "them in several requests"
        )
    # Half a surrogate pair has no UTF-8. It must not raise here, because check_texts refuses it
    # below with a better message.
    sizes = [len(text.encode(errors="surrogatepass")) for text in request.texts]
    longest = max(sizes, default=0)
    if longest > settings.longest_text:
        raise TooLargeError(
            f"request: a text of {longest:,} bytes, and {settings.longest_text:,} is the most: "
            "send one sentence at a time"
        )
    # Attention has a weight for each pair of a target and a source token, so its size grows with
    # the square of the length: some 40 MB per layer for one text of the default longest_text.
    weights = request.n_best * sum(len(text) ** 2 for text in request.texts)
    if request.attention and weights > settings.longest_text**2:
        raise TooLargeError(
            "request: attention: too much text to show it for: send fewer or shorter texts"
        )
    texts = check_texts(request.texts, "request: texts")
    translator, source = models.choose(request.source, request.target, texts)
    if request.attention and not translator.attends:
        raise UserError(
            "request: attention: the model of these languages has none; leave this key out"
        )
    splits = settings.split_sentences and request.split_sentences
    lines = SplitLines(
        list(enumerate(texts, start=1)), source["language"] if splits else None
    )
    if len(lines.sentences) > settings.most_waiting:
        raise TooLargeError(
            f"request: {len(lines.sentences)} sentences, and {settings.most_waiting} is the most: "
            "send them in several requests"
        )
    results = {"n_best": request.n_best, "attention": request.attention}
    by = {"translator": translator}
    options = search.model_dump(exclude=OF_A_MODEL) | results | by
    return CheckedRequest(lines, translator, source, request.beam, options)


def check_work(
    sentence: Sentence,
    total: int,
    translator: Translator,
    settings: ServerSettings,
) -> None:
    """Check the limits on the search for a sentence.

    ``total`` is the work for all sentences of its request up to this one. ``translator`` has the
    limit of its model.

    Raises:
        TooLargeError: the sentence has too many tokens, or the work is too much.
    """
    tokens = len(sentence.tokens)
    most = min(settings.longest_sentence, translator.most_tokens)
    if tokens > most:
        raise TooLargeError(
            f"request: a sentence of {tokens:,} tokens, and {most:,} is the most: split it: "
            f"{sentence.text[:40]}..."
        )
    if total > settings.most_work:
        raise TooLargeError(
            f"request: its tokens times the beam are more than {settings.most_work:,}: send fewer "
            "sentences at a time, or a smaller beam"
        )
