"""A request's body, within limits of size and time, as one of the schemas. Whatever is wrong with it is one line."""

import asyncio
from typing import TypeVar
from urllib.parse import parse_qs

from fastapi import Request
from pydantic import BaseModel, ValidationError

from dragoman.web.serve.limits import Limits
from dragoman.web.serve.problem import ClientGone, Problem

DRAINED_BYTES = 32 * 1024 * 1024  # so much is read and forgotten, so that the client reads why it was refused
MAX_FIELDS = 2_000
_MEANINGS = {
    "q": "a text or a list of texts",
    "source": "the code of a language, or auto",
    "target": "the code of a language",
    "format": "text, html or markdown",
    "alternatives": "a number from 0",
    "alignments": "true or false",
    "api_key": "a text",
}

Schema = TypeVar("Schema", bound=BaseModel)


async def read_request(request: Request, schema: type[Schema], limits: Limits) -> Schema:
    body = await _read_body(request, limits)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded" or (not body and request.url.query):
            return schema.model_validate(_fields(body, request.url.query))
        if kind.endswith("json") or body.lstrip()[:1] == b"{":
            return schema.model_validate_json(body)
    except ValidationError as error:
        raise Problem(400, _what_is_wrong(error)) from None
    raise Problem(400, "the body must be JSON, or a form (application/x-www-form-urlencoded)")


async def _read_body(request: Request, limits: Limits) -> bytes:
    too_large = Problem(413, f"the request is larger than {limits.max_body_bytes:,} bytes")
    if "expect" in request.headers and _said_length(request) > limits.max_body_bytes:
        raise too_large  # it asked before it sends
    body = bytearray()
    num_bytes = 0
    try:
        async with asyncio.timeout(limits.read_seconds):
            while num_bytes <= DRAINED_BYTES:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                num_bytes += len(message.get("body", b""))
                if num_bytes <= limits.max_body_bytes:
                    body += message.get("body", b"")
                if not message.get("more_body"):
                    break
    except TimeoutError:
        raise Problem(408, f"the request did not arrive within {limits.read_seconds:g} s") from None
    if num_bytes > limits.max_body_bytes:
        raise too_large
    return bytes(body)


def _said_length(request: Request) -> int:
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


def _fields(body: bytes, query: str) -> dict[str, str | list[str]]:
    """Of a form, and of the address as old clients write it; `q` may stand there several times."""
    found: dict[str, list[str]] = {}
    try:
        for part in (query, body.decode()):
            found |= parse_qs(part, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise Problem(400, "the form is not valid UTF-8") from None
    except ValueError:
        raise Problem(400, f"the form has more than {MAX_FIELDS:,} fields") from None
    return {name: values if name == "q" and len(values) > 1 else values[-1] for name, values in found.items()}


def _what_is_wrong(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return f"the body is not valid JSON: {first['msg'].removeprefix('Invalid JSON: ')}"
    if not first["loc"]:
        return "the body must be a JSON object"
    name = str(first["loc"][0])
    return f"{name} is missing" if first["type"] == "missing" else f"{name} must be {_MEANINGS[name]}"
