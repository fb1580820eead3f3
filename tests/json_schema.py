"""The part of JSON Schema that docs/schemas uses: type, const, enum, minimum, properties, required,
additionalProperties: false, items, oneOf, pattern, and $ref to one of the schema's own $defs."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "minimum", "properties",
         "required", "additionalProperties", "items", "oneOf", "pattern"}


def of_type(value, name):
    if name in ("integer", "number"):
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root=None, where=""):
    """What is wrong with the value, a line each, by JSON pointer; a schema beyond the part above is a ValueError."""
    root = schema if root is None else root
    if set(schema) - KNOWN:
        raise ValueError(f"keywords that are not checked: {sorted(set(schema) - KNOWN)}")
    if "$ref" in schema:
        return problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, where)
    if "oneOf" in schema:
        answers = [problems(value, choice, root, where) for choice in schema["oneOf"]]
        fitting = sum(not answer for answer in answers)
        return [] if fitting == 1 else [f"{where or '/'}: fits {fitting} of the {len(answers)} forms, expected one"]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(of_type(value, name) for name in types):
        return [f"{where or '/'}: {value!r:.60} is no {' or '.join(types)}"]
    if "const" in schema and (value != schema["const"] or isinstance(value, bool)):
        return [f"{where or '/'}: {value!r:.60}, expected {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where or '/'}: {value!r:.60} is none of {schema['enum']}"]
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        return [f"{where or '/'}: {value!r:.60} does not match {schema['pattern']}"]
    if "minimum" in schema and of_type(value, "number") and value < schema["minimum"]:
        return [f"{where or '/'}: {value} is less than {schema['minimum']}"]
    found = []
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{where or '/'}: {key!r} is missing" for key in schema.get("required", []) if key not in value]
        for key, member in value.items():
            if key in known:
                found += problems(member, known[key], root, f"{where}/{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}/{key}: no such key")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += problems(item, schema["items"], root, f"{where}/{i}")
    return found
