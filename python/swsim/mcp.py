# SPDX-License-Identifier: Apache-2.0
"""A read-only server of the Model Context Protocol over standard input and output: swsim-mcp, or python -m swsim.mcp.

An agent can ask whether a wait may be moved, and gets a proof or the story of a violation. Messages are JSON-RPC 2.0, one
on each line (modelcontextprotocol.io, "stdio"). A plan is given as text, or as a path that this process may read. No tool
writes a file.
"""
from __future__ import annotations

import json
import sys
from typing import Any, Callable, Iterator, Mapping, Optional

import swsim

PROTOCOLS = ("2025-06-18", "2025-03-26", "2024-11-05")
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, WRONG_PARAMETERS = -32700, -32600, -32601, -32602

_PLAN = {"type": "string", "description": "a plan as YAML or JSON text, or the path of one"}
_DRIVER = {"type": "string", "enum": ["clock", "dataflow", "both"], "description": "pipelines: which driver"}


def _verify(given: Mapping[str, Any]) -> Any:
    verdict = swsim.verify(given["plan"], driver=given.get("driver"), faults=bool(given.get("faults")),
                           limit=f"time={given.get('seconds', 60)}s")
    return {"documents": list(verdict.documents), "repaired_plan": verdict.repair}


def _predict(given: Mapping[str, Any]) -> Any:
    predictions = swsim.predict(given["plan"], driver=given.get("driver"), iterations=given.get("iterations"))
    return {"documents": [prediction.document for prediction in predictions]}


def _what_if(given: Mapping[str, Any]) -> Any:
    predictions = swsim.what_if(given["plan"], given["changes"], driver=given.get("driver"))
    return {"documents": [prediction.document for prediction in predictions]}


def _why(given: Mapping[str, Any]) -> Any:
    """The parts of a prediction that say what limits an iteration."""
    keys = ("plan", "driver", "iteration_ns", "makespan_ns", "steady_exact_ns", "critical_cycle", "critical_path",
            "exposed_ns", "slack_ns", "streams")
    predictions = swsim.predict(given["plan"], driver=given.get("driver"), iterations=given.get("iterations"),
                                critical_path=True, exposed=True)
    return {"documents": [{key: prediction.document[key] for key in keys if key in prediction.document}  # type: ignore[literal-required]
                          for prediction in predictions]}


def _meanings(schema: Any, word: str, where: str) -> Iterator[dict[str, str]]:
    """The descriptions of a key, or of the word of a list, anywhere in a schema."""
    if isinstance(schema, list):
        for part in schema:
            yield from _meanings(part, word, where)
    if not isinstance(schema, dict):
        return
    for key, part in schema.items():
        named = isinstance(part, dict) and key == word and "description" in part
        if named:
            yield {"where": where, "meaning": part["description"]}
        if isinstance(part, dict) and word in part.get("enum", []) and "description" in part:
            yield {"where": f"{where}, a value of {key}", "meaning": part["description"]}
        yield from _meanings(part, word, where if key in ("properties", "$defs", "definitions") else f"{where}.{key}")


def _explain(given: Mapping[str, Any]) -> Any:
    word, found = given["word"], []
    for name in swsim.schema_names():
        for schema in swsim.schema(name):
            found += [meaning for meaning in _meanings(schema, word, name) if meaning not in found]
    if not found:
        raise swsim.UsageError(f"neither a key of plans nor of answers is called {word!r}")
    return {"word": word, "meanings": found}


def _import(given: Mapping[str, Any]) -> Any:
    job = swsim.import_trace(given["files"])
    return {"plan": job.plan, "documents": [job.document], "messages": job.messages}


def _schema(given: Mapping[str, Any]) -> Any:
    return {"documents": swsim.schema(given["name"])}


# name: (what it does, properties, required ones, the call)
_TOOLS: dict[str, tuple[str, dict[str, Any], list[str], Callable[[Mapping[str, Any]], Any]]] = {
    "verify": ("Prove that a plan of overlapped GPU work has no deadlock, race or mismatch in any interleaving, or tell how it "
               "goes wrong, with a repair that is proved.",
               {"plan": _PLAN, "driver": _DRIVER, "faults": {"type": "boolean", "description": "failure safety, too"},
                "seconds": {"type": "integer", "minimum": 1, "description": "undecided after this time; 60"}},
               ["plan"], _verify),
    "predict": ("Simulate a plan: how long an iteration takes, and what every stream waits for.",
                {"plan": _PLAN, "driver": _DRIVER, "iterations": {"type": "integer", "minimum": 1}}, ["plan"], _predict),
    "what_if": ("Simulate a plan as it is and with changed times.",
                {"plan": _PLAN, "driver": _DRIVER,
                 "changes": {"type": "object", "additionalProperties": {"type": "string"},
                             "description": "task: factor or time, as {\"Forward\": \"0.8x\", \"H2D\": \"2ms\"}"}},
                ["plan", "changes"], _what_if),
    "why": ("Say what limits an iteration of a plan: the chain of work that determines its time, how much shorter it would be "
            "without each task, how much longer a task could take, and what streams wait for.",
            {"plan": _PLAN, "driver": _DRIVER, "iterations": {"type": "integer", "minimum": 1}}, ["plan"], _why),
    "explain": ("Say what a key of plans or of answers means: globally_ordered, retire, exposed_ns, ...",
                {"word": {"type": "string"}}, ["word"], _explain),
    "import_trace": ("Make a plan of the traces of a job (PyTorch's profiler, Nsight Systems) or of the dumps of a hang.",
                     {"files": {"type": "array", "items": {"type": "string"}, "description": "files or folders"}},
                     ["files"], _import),
    "schema": ("The JSON Schema of plans, or of an answer: plan, verdict, prediction, ...",
               {"name": {"type": "string"}}, ["name"], _schema),
}


def _listed() -> list[dict[str, Any]]:
    return [{"name": name, "description": text, "annotations": {"readOnlyHint": True},
             "inputSchema": {"type": "object", "properties": properties, "required": required,
                             "additionalProperties": False}}
            for name, (text, properties, required, _) in _TOOLS.items()]


class _Refused(Exception):
    """An error of the protocol: its code and text."""


def _call(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a tool. What is wrong with a plan is a result, too, so that the agent reads it."""
    name, given = parameters.get("name"), parameters.get("arguments") or {}
    if name not in _TOOLS:
        raise _Refused(WRONG_PARAMETERS, f"there is no tool {name!r}")
    _, properties, required, call = _TOOLS[name]
    missing, unknown = [key for key in required if key not in given], [key for key in given if key not in properties]
    if missing or unknown:
        raise _Refused(WRONG_PARAMETERS, f"{name}: missing {missing}, unknown {unknown}")
    try:
        out = call(given)
    except swsim.Error as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return {"content": [{"type": "text", "text": json.dumps(out)}], "structuredContent": out, "isError": False}


def _initialize(parameters: Mapping[str, Any]) -> dict[str, Any]:
    wanted = parameters.get("protocolVersion")
    return {"protocolVersion": wanted if wanted in PROTOCOLS else PROTOCOLS[0], "capabilities": {"tools": {}},
            "serverInfo": {"name": "swsim", "version": swsim.version()}}


_METHODS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "initialize": _initialize, "ping": lambda _: {}, "tools/list": lambda _: {"tools": _listed()}, "tools/call": _call}


def answer(line: str) -> Optional[dict[str, Any]]:
    """The answer to one message; None: it wants none."""
    number = None
    try:
        try:
            message = json.loads(line)
        except ValueError as error:
            raise _Refused(PARSE_ERROR, f"not JSON: {error}") from error
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            raise _Refused(INVALID_REQUEST, "expected one request with a method")
        if "id" not in message:
            return None  # a notification
        number = message["id"]
        if message["method"] not in _METHODS:
            raise _Refused(NO_METHOD, f"there is no method {message['method']!r}")
        return {"jsonrpc": "2.0", "id": number, "result": _METHODS[message["method"]](message.get("params") or {})}
    except _Refused as refused:
        code, text = refused.args
        return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def main() -> None:
    """Answer line by line until the input ends."""
    for line in sys.stdin:
        if line.strip():
            out = answer(line)
            if out is not None:
                print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
