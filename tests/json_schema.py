"""The part of JSON Schema that docs/schemas uses: type, const, enum, minimum, minLength, pattern, properties, required,
additionalProperties, propertyNames, items, prefixItems, minItems, maxItems, oneOf, anyOf, allOf, not, if and then, and $ref
to one of the schema's own $defs. A whole number with a fraction, 1.0, is no integer here, as in the programs' readers."""
import functools, re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "default", "type", "const", "enum", "minimum", "minLength",
         "pattern", "properties", "required", "additionalProperties", "propertyNames", "items", "prefixItems", "minItems",
         "maxItems", "oneOf", "anyOf", "allOf", "not", "if", "then"}
PARTS = {"$ref", "allOf", "if", "not", "anyOf", "oneOf"}


def of_type(value, name):
    if name in ("integer", "number"):
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root=None, where=""):
    """The errors of the value, one line each, with JSON pointers. A schema beyond the part above raises ValueError.
    """
    root = schema if root is None else root
    if not schema.keys() <= KNOWN:
        raise ValueError(f"keywords that are not checked: {sorted(set(schema) - KNOWN)}")
    if not PARTS.isdisjoint(schema):
        found = problems_of_parts(value, schema, root, where)
        if found:
            return found
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
    if "minLength" in schema and isinstance(value, str) and len(value) < schema["minLength"]:
        return [f"{where or '/'}: {value!r} is too short"]
    found = []
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{where or '/'}: {key!r} is missing" for key in schema.get("required", []) if key not in value]
        for key, member in value.items():
            if key in known:
                found += problems(member, known[key], root, f"{where}/{key}")
            elif others is False:
                found.append(f"{where}/{key}: no such key")
            elif others is not True:
                found += problems(member, others, root, f"{where}/{key}")
            if "propertyNames" in schema:
                found += problems(key, schema["propertyNames"], root, f"{where}/{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{where or '/'}: {len(value)} items")
        first = schema.get("prefixItems", [])
        for i, item in enumerate(value):
            of_item = first[i] if i < len(first) else schema.get("items", {})
            found += problems(item, of_item, root, f"{where}/{i}")
    return found


# Of a table of a hundred ops, check only the rows that can apply to a node.
@functools.cache
def rows_by_constant(rows):
    """{constant: rows of the form "if this property is the constant"}, the property, and the other rows."""
    found, key, others = {}, None, []
    for row in rows.items:
        condition = row.get("if", {})
        (name, of_name), *more = condition.get("properties", {}).items() or [("", {})]
        if more or not of_name.keys() == {"const"} or condition.keys() != {"properties", "required"} or key not in (None, name):
            others.append(row)
            continue
        key = name
        found.setdefault(of_name["const"], []).append(row)
    return found, key, others


class Rows:
    """A list of a schema, compared by identity. The schema must outlive the cache."""

    def __init__(self, items):
        self.items = items

    def __hash__(self):
        return id(self.items)

    def __eq__(self, other):
        return self.items is other.items


def chosen(rows, value):
    if len(rows) < 8 or not isinstance(value, dict):
        return rows
    found, key, others = rows_by_constant(Rows(rows))
    named = value.get(key)
    return found.get(named, []) + others if isinstance(named, str) else others if key not in value else rows


def of_constant(rows, value):
    return [row for row in rows if row["const"] == value] if all("const" in row for row in rows) else rows


def problems_of_parts(value, schema, root, where):
    """The errors that nested schemas report for the same value."""
    found = []
    if "$ref" in schema:
        found += problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, where)
    for part in chosen(schema.get("allOf", []), value):
        found += problems(value, part, root, where)
    if "if" in schema and not problems(value, schema["if"], root, where):
        found += problems(value, schema["then"], root, where)
    if "not" in schema and not problems(value, schema["not"], root, where):
        found.append(f"{where or '/'}: {value!r:.60} is what it must not be")
    if "anyOf" in schema and all(problems(value, choice, root, where) for choice in schema["anyOf"]):
        found.append(f"{where or '/'}: {value!r:.60} fits none of {len(schema['anyOf'])} forms")
    if "oneOf" in schema:
        fitting = sum(not problems(value, choice, root, where) for choice in of_constant(schema["oneOf"], value))
        if fitting != 1:
            found.append(f"{where or '/'}: fits {fitting} of the {len(schema['oneOf'])} forms, expected one")
    return found
