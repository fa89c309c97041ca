"""The description of what the server can be asked, by the classes that check it."""

from typing import Any

from convs2s import __version__
from convs2s.config.decoding import DecodingSettings
from convs2s.config.section import Schema, schema_of
from convs2s.serving.libretranslate import LibreTranslateRequest
from convs2s.serving.requests import TranslationRequest
from convs2s.serving.settings import ServerSettings

_TEXT: Schema = {"type": "string"}
_ONE_OR_MORE: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_FAULT = {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]}
_LANGUAGE = {"code": _TEXT, "name": _TEXT, "targets": {"type": "array", "items": _TEXT}}
_TRANSLATIONS = {
    "translations": {"type": "array", "items": {"type": "object", "required": ["text", "score"]}}
}
_LIBRETRANSLATE = {"translatedText": _ONE_OR_MORE, "alternatives": {"type": "array"}}


def openapi(settings: ServerSettings, search: DecodingSettings) -> Schema:
    """Return the OpenAPI description of a server with these bounds."""
    own = dict(schema_of(TranslationRequest))
    beam = {"maximum": settings.largest_beam, "default": search.beam}
    own["properties"] = own["properties"] | {"beam": own["properties"]["beam"] | beam}
    own["required"] = ["texts"]
    bodies = [own, schema_of(LibreTranslateRequest)]
    told = {"oneOf": [_object(_TRANSLATIONS), _object(_LIBRETRANSLATE)]}
    form = {"schema": schema_of(LibreTranslateRequest)}
    json = {"schema": {"oneOf": bodies}}
    translate = _operation("Translate texts, in this server's form or LibreTranslate's", told)
    translate["requestBody"] = {
        "required": True,
        "content": {"application/json": json, "application/x-www-form-urlencoded": form},
    }
    languages: Schema = {"type": "array", "items": _object(_LANGUAGE)}
    asked = {
        "/health": _operation("State, model and bounds", {"type": "object"}),
        "/languages": _operation("Languages, as LibreTranslate lists them", languages),
        "/metrics": _operation("Counts, for Prometheus", _TEXT, "text/plain"),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "convs2s serve", "version": __version__},
        "paths": {"/translate": {"post": translate}}
        | {path: {"get": operation} for path, operation in asked.items()},
    }


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def _operation(summary: str, schema: Schema, media: str = "application/json") -> dict[str, Any]:
    fault = {
        "description": "What was expected",
        "content": {"application/json": {"schema": _FAULT}},
    }
    answer = {"description": "The answer", "content": {media: {"schema": schema}}}
    return {"summary": summary, "responses": {"200": answer, "default": fault}}
