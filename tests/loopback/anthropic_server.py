"""A server of Anthropic's Messages and Message Batches APIs, with scripted misbehaviour.

with AnthropicServer() as server:
    server.script = [refuse(529, "overloaded_error"), message(stop_reason="refusal")]
    ...  # the first request is refused, the second answered so; any other one with questions

It refuses what the real API refuses: requests without key, version, `max_tokens`, or with a strict
schema of keywords that strict tools do not take. `write` is what stands in for the model.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.loopback.scripted import Exchange, Reply, Request, ScriptedServer, drip, hang, raw

__all__ = [
    "AnthropicServer",
    "Params",
    "Reply",
    "Request",
    "categories_in",
    "drip",
    "excerpts_in",
    "hang",
    "key_of",
    "message",
    "raw",
    "refuse",
    "tokens_of",
]

Params = Mapping[str, Any]
"""The parameters of one message, as they were sent."""

Write = Callable[[Params], Sequence[Mapping[str, Any]]]
"""Returns the questions for a message: each with `text`, `category` and `excerpts`."""

_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_STRICT = {
    "minimum", "maximum", "multipleOf", "minLength", "maxLength", "maxItems", "minProperties",
    "maxProperties", "uniqueItems",
}  # fmt: skip


def key_of(request: Request) -> str | None:
    """Return the API key that a request carries; SDKs send it in one of two headers."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return request.headers.get("x-api-key") or (token if scheme == "Bearer" and token else None)


def excerpts_in(params: Params) -> list[str]:
    """Return the chunks that a message holds, as a model would tell them apart."""
    text = params["messages"][0]["content"]
    mark = text.partition("<excerpt_")[2].partition(" ")[0]
    return re.findall(
        rf'<excerpt_{mark} number="\d+">\n(.*?)\n</excerpt_{mark}>', text, flags=re.DOTALL
    )


def categories_in(params: Params) -> list[str]:
    """Return the categories that a message asks for, in their order."""
    task = params["messages"][0]["content"].rpartition("</excerpt_")[2]
    return re.findall(r"^\d+\. (\S+)", task, flags=re.MULTILINE)


def plain_questions(params: Params) -> list[dict[str, Any]]:
    """Write a question a category from the words of the excerpts; it needs all of them."""
    excerpts = excerpts_in(params)
    words = [word for excerpt in excerpts for word in re.findall(r"\w{5,}", excerpt)] or ["this"]
    return [
        {
            "text": f"Which {category} rule covers {words[i % len(words)]}?",
            "category": category,
            "excerpts": list(range(1, len(excerpts) + 1)),
        }
        for i, category in enumerate(categories_in(params))
    ]


def tokens_of(value: object) -> int:
    """Return the tokens that the server bills: one for each four bytes of JSON, rounded up."""
    shown = json.dumps(value, ensure_ascii=False)
    return -(-len(shown.encode(errors="surrogatepass")) // 4)


@dataclass
class Batch:
    """A batch at work: `ended` once `end_batches` was called, or it was cancelled."""

    id: str
    requests: Sequence[Mapping[str, Any]]
    status: str = "in_progress"
    is_cancelled: bool = False
    lines: Sequence[bytes] | None = None


@dataclass(frozen=True)
class Paid:
    """A message that was billed."""

    params: Params
    usage: Mapping[str, int]
    batch: str | None = None


@dataclass
class Results:
    """What batches answer where it is no message: custom id -> the result, or all the lines."""

    instead: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    lines: list[bytes] | None = None


class AnthropicServer(ScriptedServer):
    """`write` writes the questions; `paid` lists what was billed; `batches` holds all batches.

    A batch ends with `end_batches`, or at once where `ends_at_once`.
    """

    def __init__(self, write: Write = plain_questions) -> None:
        super().__init__(_route)
        self.write = write
        self.paid: list[Paid] = []
        self.batches: dict[str, Batch] = {}
        self.results = Results()
        self.ends_at_once = False
        self._numbers = count(1)

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def next_id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers):024}"

    def end_batches(self) -> None:
        for batch in self.batches.values():
            batch.status = "ended"

    def bill(self, params: Params, usage: Mapping[str, int], batch: str | None = None) -> None:
        with self.lock:
            self.paid.append(Paid(params, usage, batch))


def message(
    *,
    content: Sequence[Mapping[str, Any]] | None = None,
    questions: Sequence[Any] | None = None,
    tool_input: object = None,
    stop_reason: str = "tool_use",
    usage: Mapping[str, Any] | None = None,
    **more: Any,  # noqa: ANN401 - JSON
) -> Reply:
    """Answer with a message.

    `content`: its blocks; else one call of the forced tool, with `tool_input`, or with `questions`,
    or with what the server's `write` returns. `usage` adds to the counts; `more` to the message.
    """

    def reply(exchange: Exchange) -> None:
        server, params = _server(exchange), exchange.request.body
        written = server.write(params) if questions is None else questions
        given = {"questions": list(written)} if tool_input is None else tool_input
        blocks = [_tool_use(server, params, given)] if content is None else list(content)
        whole = _message(server, params, blocks, stop_reason, usage) | more
        server.bill(params, whole["usage"])
        _send(exchange, 200, whole)

    return reply


def refuse(
    status: int,
    kind: str = "invalid_request_error",
    said: str = "no",
    *,
    headers: Mapping[str, str] | None = None,
    details: Mapping[str, str] | None = None,
) -> Reply:
    """Refuse as Anthropic does, with an error of this kind; nothing is billed."""
    error: dict[str, Any] = {"type": kind, "message": said}
    if details is not None:
        error["details"] = details
    whole = {"type": "error", "error": error, "request_id": "req_1"}
    return raw(status, json.dumps(whole).encode(), headers=headers)


def _route(exchange: Exchange) -> None:
    request = exchange.request
    if key_of(request) is None:
        refuse(401, "authentication_error", "an API key is required")(exchange)
        return
    if not request.headers.get("anthropic-version"):
        refuse(400, said="anthropic-version: header is required")(exchange)
        return
    path = request.path.removeprefix("/v1/messages")
    match request.method, path.strip("/").split("/"):
        case "POST", [""]:
            _answer_message(exchange)
        case "POST", ["batches"]:
            _create_batch(exchange)
        case "GET", ["batches", batch_id]:
            _with_batch(exchange, batch_id, _show_batch)
        case "GET", ["batches", batch_id, "results"]:
            _with_batch(exchange, batch_id, _show_results)
        case "POST", ["batches", batch_id, "cancel"]:
            _with_batch(exchange, batch_id, _cancel_batch)
        case _:
            refuse(404, "not_found_error", f"no {request.path}")(exchange)


def _answer_message(exchange: Exchange) -> None:
    fault = _fault_in(exchange.request.body)
    (message() if fault is None else refuse(400, said=fault))(exchange)


def _fault_in(params: Params) -> str | None:
    """Return what the API would say against a message's parameters."""
    for name in ("model", "max_tokens", "messages"):
        if not params.get(name):
            return f"{name}: Field required"
    tools = {tool["name"]: tool for tool in params.get("tools", [])}
    choice = params.get("tool_choice", {})
    if choice.get("type") == "tool" and choice["name"] not in tools:
        return f"tool_choice: Tool '{choice['name']}' not found in provided tools"
    if choice.get("type") == "tool" and params.get("thinking", {}).get("type") != "disabled":
        return "Thinking may not be enabled when tool_choice forces tool use."
    schemas = (tool["input_schema"] for tool in tools.values() if tool.get("strict"))
    return next(filter(None, map(_fault_in_schema, schemas)), None)


def _fault_in_schema(schema: object) -> str | None:
    """Return what strict tools do not take of a schema."""
    if isinstance(schema, list):
        return next(filter(None, map(_fault_in_schema, schema)), None)
    if not isinstance(schema, dict):
        return None
    wrong = sorted(_NOT_STRICT & schema.keys())
    if wrong:
        return f"tools.0.custom: For strict tools, property '{wrong[0]}' is not supported"
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "tools.0.custom: For 'object' type, 'additionalProperties' must be set to false"
    return next(filter(None, map(_fault_in_schema, schema.values())), None)


def _tool_use(server: AnthropicServer, params: Params, given: object) -> dict[str, Any]:
    name = params["tools"][0]["name"]
    return {"type": "tool_use", "id": server.next_id("toolu"), "name": name, "input": given}


def _message(
    server: AnthropicServer,
    params: Params,
    blocks: Sequence[Mapping[str, Any]],
    stop_reason: str = "tool_use",
    usage: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    counts = {"input_tokens": tokens_of(params), "output_tokens": tokens_of(list(blocks))}
    return {
        "id": server.next_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": params["model"],
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": counts | dict(usage or {}),
    }


def _create_batch(exchange: Exchange) -> None:
    server, asked = _server(exchange), exchange.request.body.get("requests", [])
    ids = [request["custom_id"] for request in asked]
    if not asked or len(set(ids)) < len(ids) or not all(map(_CUSTOM_ID.fullmatch, ids)):
        refuse(400, said="requests: custom ids must be there, unique and legible")(exchange)
        return
    batch = Batch(server.next_id("msgbatch"), asked)
    server.batches[batch.id] = batch
    if server.ends_at_once:
        batch.status = "ended"
    _show_batch(exchange, batch)


def _with_batch(exchange: Exchange, batch_id: str, show: Callable[[Exchange, Batch], None]) -> None:
    batch = _server(exchange).batches.get(batch_id)
    if batch is None:
        refuse(404, "not_found_error", f"Message batch {batch_id} not found.")(exchange)
    else:
        show(exchange, batch)


def _show_batch(exchange: Exchange, batch: Batch) -> None:
    ended = batch.status == "ended"
    url = f"{_server(exchange).url}/v1/messages/batches/{batch.id}/results"
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    counts["succeeded" if ended else "processing"] = len(batch.requests)
    shown = {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": batch.status,
        "request_counts": counts,
        "ended_at": "2026-11-30T12:00:00Z" if ended else None,
        "created_at": "2026-11-30T11:00:00Z",
        "expires_at": "2026-12-01T11:00:00Z",
        "archived_at": None,
        "cancel_initiated_at": None,
        "results_url": url if ended else None,
    }
    _send(exchange, 200, shown)


def _cancel_batch(exchange: Exchange, batch: Batch) -> None:
    if batch.status == "ended":
        refuse(400, said=f"Batch {batch.id} cannot be canceled: it has ended")(exchange)
        return
    batch.status, batch.is_cancelled = "canceling", True
    _show_batch(exchange, batch)


def _show_results(exchange: Exchange, batch: Batch) -> None:
    """Send the results in another order than that of the requests, as the real API may."""
    server = _server(exchange)
    if batch.status != "ended":
        refuse(404, "not_found_error", "the batch has not ended")(exchange)
        return
    if batch.lines is None:  # billed once, however often they are asked for
        batch.lines = [_result_line(server, batch, request) for request in reversed(batch.requests)]
    lines = batch.lines if server.results.lines is None else server.results.lines
    exchange.send(200, b"\n".join(lines) + b"\n", {"Content-Type": "application/binary"})


def _result_line(server: AnthropicServer, batch: Batch, request: Mapping[str, Any]) -> bytes:
    custom_id, params = request["custom_id"], request["params"]
    result = server.results.instead.get(custom_id)
    if result is None and batch.is_cancelled:
        result = {"type": "canceled"}
    if result is None:
        blocks = [_tool_use(server, params, {"questions": list(server.write(params))})]
        whole = _message(server, params, blocks)
        server.bill(params, whole["usage"], batch.id)
        result = {"type": "succeeded", "message": whole}
    return json.dumps({"custom_id": custom_id, "result": result}).encode()


def _send(exchange: Exchange, status: int, whole: Mapping[str, Any]) -> None:
    headers = {"Content-Type": "application/json", "request-id": "req_1"}
    exchange.send(status, json.dumps(whole).encode(), headers)


def _server(exchange: Exchange) -> AnthropicServer:
    assert isinstance(exchange.server, AnthropicServer)
    return exchange.server
