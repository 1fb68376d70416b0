#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py - write the parts of the package that C headers and JSON schemas define.

    python3 generate.py SOURCE OUTPUT      SOURCE: the project's folder; OUTPUT: the folder of the package

_swpipe.py has the structures, constants and functions of swpipe.h for ctypes. _documents.py has the objects that
`swsim --json` prints as typed dictionaries, from doc/schema/*.json. The headers are written in one style, which is
all that is read here: a declaration that is not understood is an error.
"""
import json
import keyword
import pathlib
import re
import sys

HEADERS = ["swpipe_status.h", "swpipe_own.h", "swpipe_policy.h", "swpipe_group.h", "swpipe_collectives.h", "swpipe_build.h", "swpipe.h"]
SCALARS = {"int": "c_int", "int64_t": "c_int64", "long long": "c_longlong", "size_t": "c_size_t", "double": "c_double"}
NOTE = "# Made by generate.py from {}: change these and make it again."


class Unknown(Exception):
    """A declaration that is not understood."""


def read_header(path):
    """The declarations of a header, each in one line."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#.*?$", "", text, flags=re.M)
    text = re.sub(r'extern "C" \{', "", text)
    text = re.sub(r"__attribute__\(\(.*?\)\)\)", "", text)
    return re.sub(r"\s+", " ", text)


def c_type(text, structures):
    """The ctypes type of a C type without a name."""
    text = re.sub(r"\bconst\b", "", text)
    stars = text.count("*")
    base = re.sub(r"[*\s]+", " ", text).strip()
    if stars == 0:
        if base == "void":
            return "None"
        if base.startswith("enum "):
            return "c.c_int"
        if base.startswith("struct "):
            name = base[len("struct "):]
            if name not in structures:
                raise Unknown(text)
            return name
        if base in SCALARS:
            return "c." + SCALARS[base]
        raise Unknown(text)
    if base == "char":
        return "c.c_char_p" if stars == 1 else "c.POINTER(c.c_char_p)"
    if base.startswith("struct ") and base[len("struct "):] in structures and stars == 1:
        return f"c.POINTER({base[len('struct '):]})"
    if base in SCALARS and stars == 1:
        return f"c.POINTER(c.{SCALARS[base]})"
    return "c.c_void_p" if stars == 1 else "c.POINTER(c.c_void_p)"


def split_name(text):
    """A type and the name behind it: "const char *name"."""
    found = re.fullmatch(r"(.*?[\s*])(\w+)", text.strip())
    if not found:
        raise Unknown(text)
    return found.group(1).strip(), found.group(2)


def arguments(text, structures):
    """The types of the parameters of a function."""
    out = []
    for part in text.split(","):
        part = part.strip()
        if part in ("void", "..."):
            continue
        if "(*" in part or "(" in part:
            raise Unknown(part)
        kind, _ = split_name(part)
        out.append(c_type(kind, structures))
    return out


def function_type(result, parameters, structures):
    """The type of a callback: texts and addresses as they are."""
    kinds = [c_type(result, structures), *arguments(parameters, structures)]
    return "c.CFUNCTYPE(" + ", ".join("c.c_void_p" if k.startswith("c.POINTER(c.c_void_p") and i == 0 else k
                                      for i, k in enumerate(kinds)) + ")"


def members(body, structures, typedefs):
    """The members of a structure: (name, type)."""
    out = []
    for line in (part.strip() for part in body.split(";")):
        if not line:
            continue
        pointer = re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", line)
        if pointer:
            out.append((pointer.group(2), function_type(pointer.group(1), pointer.group(3), structures)))
            continue
        typedef = re.fullmatch(r"(\w+) \*(\w+)", line)
        if typedef and typedef.group(1) in typedefs:
            out.append((typedef.group(2), typedef.group(1)))
            continue
        array = re.fullmatch(r"(.*?)(\w+)\[(\d+)\]", line)
        if array:
            out.append((array.group(2), c_type(array.group(1), structures) + " * " + array.group(3)))
            continue
        # "const char *const *device_only", "int warmup, measure, rounds"
        first, *others = [part.strip() for part in line.split(",")]
        kind, name = split_name(first)
        out.append((name, c_type(kind, structures)))
        base = re.sub(r"\*", "", kind).strip()
        for other in others:
            stars = other.count("*")
            out.append((other.replace("*", "").strip(), c_type(base + "*" * stars, structures)))
    return out


def declarations(text):
    """Structures, enumerations, function types and functions, in order."""
    pattern = re.compile(r"struct (\w+) \{([^{}]*)\};|enum (\w*) ?\{([^{}]*)\};|typedef ([^;()]*?)(\w+)\(([^;]*?)\);"
                         r"|((?:const |enum |struct |void |int|char |double )[^;(){}=]*?)(\w+)\(([^;{}]*?)\) ?;")
    for found in pattern.finditer(text):
        yield found


class Layout:
    """What the headers define so far, and the lines of Python for it."""

    def __init__(self):
        self.structures, self.typedefs, self.lines, self.calls = set(), set(), [], []

    def add_enum(self, body):
        value = 0
        for part in (part.strip() for part in body.split(",")):
            if not part:
                continue
            name, _, given = (word.strip() for word in part.partition("="))
            value = int(given) if given else value
            self.lines.append(f"{name} = {value}")
            value += 1
        self.lines.append("")

    def add_structure(self, name, body):
        fields = members(body, self.structures, self.typedefs)
        self.structures.add(name)
        self.lines += ["", f"class {name}(c.Structure):", "    _fields_ = ["]
        self.lines += [f'        ("{field}", {kind}),' for field, kind in fields] + ["    ]", "", ""]

    def add_function_type(self, result, name, parameters):
        self.typedefs.add(name)
        self.lines.append(f"{name} = {function_type(result, parameters, self.structures)}")

    def add_call(self, result, name, parameters):
        if "FILE" in parameters or not name.startswith("swpipe_"):
            return
        kind = "c.c_void_p" if result.replace(" ", "") == "char*" else c_type(result, self.structures)  # malloc's
        listed = []
        for part in parameters.split(","):
            callback = re.search(r"\(\*\w+\)", part)
            listed.append("void *callback" if callback else part)
        text = re.sub(r"void \(\*function\)\(void \*arg\)", "void *function", parameters)
        self.calls.append(f'    "{name}": ({kind}, [{", ".join(arguments(text, self.structures))}]),')

    def add_header(self, text):
        for found in declarations(text):
            structure, body, _, values, result, typedef, parameters, returned, call, given = found.groups()
            if structure:
                self.add_structure(structure, body)
            elif values is not None:
                self.add_enum(values)
            elif typedef:
                self.add_function_type(result, typedef, parameters)
            elif "swpipe_set_environment" in call or given is not None:
                self.add_call(returned, call, given)

    def text(self):
        head = ['"""Structures, constants and functions of swpipe.h, for ctypes."""', NOTE.format("gpu/lib/*.h"),
                "# pylint: disable=invalid-name,too-few-public-methods", "import ctypes as c", "from typing import Any", ""]
        tail = ["# name: (result, arguments)", "CALLS: dict[str, tuple[Any, list[Any]]] = {", *self.calls, "}", ""]
        return "\n".join(head + self.lines + tail)


# ---- schemas -------------------------------------------------------------------------------------


def title_of(name):
    return "".join(part.capitalize() for part in re.split(r"[_\W]+", name))


class Documents:
    """Typed dictionaries for JSON schemas."""

    def __init__(self):
        self.classes, self.names = [], set()

    def kind(self, schema, name, defs):
        """The type of a value, as text; objects become classes of their own."""
        if "$ref" in schema:
            key = schema["$ref"].rsplit("/", 1)[1]
            return self.kind(defs[key], name, defs)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self.union([self.kind(part, name, defs) for part in schema[word]])
        if "const" in schema:
            return f"Literal[{schema['const']!r}]" if schema["const"] is not None else "None"
        if "enum" in schema:
            return "Literal[" + ", ".join(repr(value) for value in schema["enum"]) + "]"
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return self.union([self.simple(word, schema, name, defs) for word in kinds]) if kinds else "Any"

    @staticmethod
    def union(kinds):
        seen = list(dict.fromkeys(kinds))
        return seen[0] if len(seen) == 1 else "Union[" + ", ".join(seen) + "]"

    def simple(self, word, schema, name, defs):
        if word == "object":
            return self.structure(schema, name, defs)
        if word == "array":
            items = schema.get("items", {})
            return f"list[{self.kind(items, name + 'Item', defs) if isinstance(items, dict) else 'Any'}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}[word]

    def structure(self, schema, name, defs):
        properties = schema.get("properties")
        if not properties or any(not key.isidentifier() or keyword.iskeyword(key) for key in properties):
            values = schema.get("additionalProperties", {})
            return f"dict[str, {self.kind(values, name + 'Value', defs) if isinstance(values, dict) and values else 'Any'}]"
        required = set(schema.get("required", []))
        fields = [(key, self.kind(value, name + title_of(key), defs), key in required, value.get("description", ""))
                  for key, value in properties.items()]
        if name in self.names:
            return f'"{name}"'
        self.names.add(name)
        self.classes.append((name, schema.get("description", ""), fields))
        return f'"{name}"'

    def add(self, path):
        schema = json.loads(path.read_text())
        if schema.get("type") == "object" and "title" in schema and schema["title"].startswith("swsim."):
            self.structure(schema, title_of(schema["title"].split("/")[0].removeprefix("swsim.")) + "Document",
                           schema.get("$defs", {}))

    def text(self):
        lines = ['"""The objects that swsim prints with --json, as typed dictionaries."""', NOTE.format("doc/schema/*.json"),
                 "# pylint: disable=too-many-lines", "from typing import Any, Literal, TypedDict, Union", ""]
        for name, description, fields in self.classes:
            total = all(required for _, _, required, _ in fields)
            lines += ["", f"class {name}(TypedDict{'' if total else ', total=False'}):",
                      f"    {json.dumps((description or 'A part of a document.').strip(), ensure_ascii=False)}", ""]
            lines += [f"    {key}: {kind}" for key, kind, _, _ in fields] or ["    pass"]
            lines += [""]
        return "\n".join(lines)


def main():
    source, output = (pathlib.Path(argument) for argument in sys.argv[1:3])
    layout, documents = Layout(), Documents()
    for header in HEADERS:
        layout.add_header(read_header(source / "gpu/lib" / header))
    for path in sorted((source / "doc/schema").glob("*.json")):
        documents.add(path)
    output.mkdir(parents=True, exist_ok=True)
    (output / "_swpipe.py").write_text(layout.text())
    (output / "_documents.py").write_text(documents.text())


if __name__ == "__main__":
    main()
