# SPDX-License-Identifier: Apache-2.0
"""Holds JSON objects against doc/schema, and trace stores against the SQL of `swsim schema store`.

    schema.py objects DOCUMENTS KIND... <OUTPUT   every line is an object of one of the kinds, and each kind is there
    schema.py unseen DOCUMENTS OUTPUT...          prints the keys of the documents that no line of the outputs has
    schema.py documents DOCUMENTS                 every key has a description, and jsonschema, where installed, agrees
    schema.py tables SQL STORE...                 the tables of the stores are those of the SQL, each column with a comment
    schema.py plans SCHEMA PLANS                  the plans, a line of JSON each, are as the schema says, and would not be with
                                                  a misspelt key; every key of the schema has a description

The validator knows the words of JSON Schema that the documents use, and fails at any other.
"""
import json
import os
import re
import sqlite3
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
WORDS = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "properties", "required",
         "additionalProperties", "items", "minItems", "maxItems", "enum", "const", "anyOf", "definitions", "allOf", "default",
         "minimum", "maximum", "pattern"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check_object(value, schema, root, at, seen):
    errors = [f"{at}: no key {key}" for key in schema.get("required", []) if key not in value]
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for key, item in value.items():
        if key in known:
            seen.add((id(schema), key))
            seen.add(f"{at}.{key}")
            errors += check(item, known[key], root, f"{at}.{key}", seen)
        elif others is False:
            errors.append(f"{at}: unknown key {key}")
        else:
            errors += check(item, others, root, f"{at}.{key}", seen)
    return errors


def check(value, schema, root, at, seen):
    """What is wrong with the value; `seen` gets the keys of the document that it has."""
    if set(schema) - WORDS:
        return [f"{at}: the document has {set(schema) - WORDS}, which this validator does not know"]
    if "$ref" in schema:
        _, folder, name = schema["$ref"].split("/")
        return check(value, root[folder][name], root, at, seen)
    errors = []
    if "anyOf" in schema:
        tries = [check(value, one, root, at, seen) for one in schema["anyOf"]]
        errors += [] if [] in tries else min(tries, key=len)
    for one in schema.get("allOf", []):
        errors += check(value, one, root, at, seen)
    if "const" in schema and value != schema["const"]:
        return [f"{at}: found {value!r}, expected {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at}: found {value!r}, expected one of {schema['enum']}"]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        return [f"{at}: found {value!r}, expected {types}"]
    if is_type(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        errors.append(f"{at}: {value} is out of range")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        errors.append(f"{at}: {value} has not the form {schema['pattern']}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            errors.append(f"{at}: {len(value)} items")
        for number, item in enumerate(value):
            errors += check(item, schema.get("items", {}), root, f"{at}[{number}]", seen)
    if isinstance(value, dict):
        errors += check_object(value, schema, root, at, seen)
    return errors


def no_doubles(pairs):
    keys = [key for key, _ in pairs]
    doubles = {key for key in keys if keys.count(key) > 1}
    if doubles:
        raise ValueError(f"keys stand twice: {doubles}")
    return dict(pairs)


def load_documents(folder):
    documents = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                document = json.load(file, object_pairs_hook=no_doubles)
            if "schema" not in document["properties"]:  # that of plans
                continue
            documents[document["properties"]["schema"]["const"]] = document
    return documents


def check_lines(lines, documents, seen):
    """The names of the kinds in the lines, and what is wrong."""
    kinds, errors = set(), []
    for number, line in enumerate(lines, 1):
        value = json.loads(line, object_pairs_hook=no_doubles)
        name = value.get("schema") if isinstance(value, dict) else None
        if name not in documents or next(iter(value)) != "schema":
            errors.append(f"line {number}: no object that begins with its schema: {line[:80]}")
            continue
        kinds.add(name.split(".")[1].split("/")[0])
        errors += check(value, documents[name], documents[name], f"line {number}: {name}", seen)
    return kinds, errors


def objects(folder, *wanted):
    kinds, errors = check_lines(sys.stdin, load_documents(folder), set())
    if kinds != set(wanted):
        errors.append(f"found objects {sorted(kinds)}, expected {sorted(wanted)}")
    return errors[:20]


def keys_of(schema, path):
    """Every object of a document, with its path."""
    if not isinstance(schema, dict):
        return
    if "properties" in schema:
        yield path, schema
    for key, inner in schema.get("properties", {}).items():
        yield from keys_of(inner, f"{path}.{key}")
    for word in ("items", "additionalProperties"):
        yield from keys_of(schema.get(word), path)
    for inner in schema.get("anyOf", []):
        yield from keys_of(inner, path)
    for folder in ("$defs", "definitions"):
        for name, inner in schema.get(folder, {}).items():
            yield from keys_of(inner, f"{path}:{name}")


def unseen(folder, *outputs):
    documents, seen = load_documents(folder), set()
    for output in outputs:
        with open(output, encoding="utf-8") as lines:
            check_lines(lines, documents, seen)
    return [f"{path}.{key}" for name, document in documents.items() for path, schema in keys_of(document, name)
            for key in schema["properties"] if (id(schema), key) not in seen]


def documents(folder):
    errors = []
    for name, document in load_documents(folder).items():
        for path, schema in keys_of(document, name):
            errors += [f"{path}.{key} has no description" for key, inner in schema["properties"].items()
                       if not inner.get("description") and "$ref" not in inner]
            if "additionalProperties" not in schema:
                errors.append(f"{path} allows unknown keys")
        try:
            import jsonschema
        except ImportError:
            continue
        jsonschema.Draft202012Validator.check_schema(document)
    return errors


def misspelt(value, at, known):
    """The plan with one of the known keys misspelt, for each of them."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            for other in misspelt(item, f"{at}[{number}]", known):
                yield value[:number] + [other] + value[number + 1:]
    if isinstance(value, dict):
        for key, item in value.items():
            if f"{at}.{key}" in known:
                yield {name + "_" * (name == key): inner for name, inner in value.items()}
            for other in misspelt(item, f"{at}.{key}", known):
                yield {**value, key: other}


def plans(path, lines):
    with open(path, encoding="ascii") as file:
        schema = json.load(file, object_pairs_hook=no_doubles)
    errors = [f"{at}.{key} has no description" for at, document in keys_of(schema, "plan")
              for key, inner in document["properties"].items() if not inner.get("description")]
    errors += [f"{at} allows unknown keys" for at, document in keys_of(schema, "plan")
               if document.get("additionalProperties") is not False]
    tried = set()
    with open(lines, encoding="utf-8") as file:
        values = [json.loads(line, object_pairs_hook=no_doubles) for line in file]
    if not values:
        errors.append("no plan at all")
    for value in values:
        seen = set()
        errors += check(value, schema, schema, "plan", seen)
        keys = {key for key in seen if isinstance(key, tuple)}
        if keys <= tried:  # other plans have misspelt them
            continue
        tried |= keys
        for other in misspelt(value, "plan", seen):
            if not check(other, schema, schema, "plan", set()):
                errors.append(f"a misspelt key is taken: {json.dumps(other)[:200]}")
    return errors[:20]


def describe(database):
    """Columns and indexes of each table; views."""
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    views = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall()
    return views, {table: (database.execute(f"PRAGMA table_info({table})").fetchall(),
                           database.execute(f"PRAGMA foreign_key_list({table})").fetchall(),
                           [row[1:] for row in database.execute(f"PRAGMA index_list({table})")]) for table in tables}


def tables(sql, *stores):
    with open(sql, encoding="ascii") as file:
        text = file.read()
    documented = sqlite3.connect(":memory:")
    documented.executescript(text)
    errors = [f"no comment: {line}" for line in text.splitlines()
              if re.match(r"CREATE TABLE|    [a-z]", line) and "-- " not in line
              and not re.match(r"    (id|run|agent|rank|from_span|to_span) INTEGER", line)]
    for store in stores:
        real = sqlite3.connect(store)
        for pragma in ("application_id", "user_version"):
            if real.execute(f"PRAGMA {pragma}").fetchone() != documented.execute(f"PRAGMA {pragma}").fetchone():
                errors.append(f"{store}: another {pragma}")
        if describe(real) != describe(documented):
            errors.append(f"{store}: other tables: {describe(real)}")
    return errors


def main():
    verbs = {"objects": objects, "unseen": unseen, "documents": documents, "tables": tables, "plans": plans}
    found = verbs[sys.argv[1]](*sys.argv[2:])
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
