"""The JSON Schema of model files, docs/schemas/model.schema.json, from the table of ops.

What a file's text decides without types and names of other elements is in the schema; docs/graph_format.md lists what is
not."""
import json

from .tables import Operands

IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
          "float4_e2m1fn", "int64", "int32", "int16", "int8", "int4", "uint64", "uint32", "uint16", "uint8", "uint4", "bool"]
KINDS = ["elemwise", "broadcast", "injective", "comm_reduce", "out_ewise_fusable", "tuple", "opaque"]
NOT_NUMBERS = ["nan", "inf", "-inf"]


def ref(name):
    return {"$ref": "#/$defs/" + name}


def an_object(description, properties, required, **more):
    return {"description": description, "type": "object", "properties": properties, "required": required,
            "additionalProperties": False, **more}


def one_or_many(item):
    return {"anyOf": [item, {"type": "array", "items": item}]}


ATTRIBUTE_TYPES = {
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "string": {"type": "string"},
    "dtype": ref("dtype"),
    "scalar": ref("scalar"),
    "dimension": ref("signed_dimension"),
    "integer or integers": one_or_many({"type": "integer"}),
    "dimension or dimensions": one_or_many(ref("signed_dimension")),
    "integer, integers or string": one_or_many({"type": "integer"}),
    "scalar or dimension": {"anyOf": [{"type": ["number", "boolean"]}, ref("expression")]},
}


def attribute(row):
    schema = dict(ATTRIBUTE_TYPES[row["type"]])
    choices = {"type": "string", "enum": row.get("choices", [])}
    if row["type"] == "integer, integers or string":
        schema = {"anyOf": schema["anyOf"] + [choices]}
    elif "choices" in row:
        schema = choices
    if "absent" in row:
        schema["description"] = "Where absent: " + row["absent"] + "."
    if "default" in row:
        schema["default"] = row["default"]
    return schema


def operands(row):
    known = Operands(row)
    listed = row["operands"]
    schema = {"description": "Operands: " + ", ".join(listed) + ("." if listed else "none."), "minItems": known.least}
    if known.names:
        schema["prefixItems"] = [dict(ref("optional_operand" if optional else "operand"), description=name)
                                 for name, optional in zip(known.names, known.optional)]
    if not known.repeated:
        schema["maxItems"] = len(known.names)
    else:
        schema["items"] = ref("optional_operand" if known.rest_optional else "operand")
    return schema


def of_op(row):
    """What else holds of a node of this op."""
    attributes = row["attributes"]
    required = [a["name"] for a in attributes if a["required"]]
    properties = {
        "attrs": an_object(f"Attributes of {row['name']}.", {a["name"]: attribute(a) for a in attributes}, required),
        "inputs": operands(row)}
    if row["several_results"]:
        properties["outputs"] = {"minItems": 1}
    else:
        properties["outputs"] = {"minItems": 1, "maxItems": 1}
    schema = {"description": f"{row['name']}({', '.join(row['operands'])}): {row['summary']}", "properties": properties}
    if required:
        schema["required"] = ["attrs"]
    return schema


def custom_op():
    return {
        "description": "A custom op: its outputs declare their dtype and shape.",
        "required": ["outputs"],
        "properties": {
            "outputs": {"minItems": 1, "items": {"type": "object", "required": ["name", "dtype", "shape"]}},
            "attrs": {"type": "object", "properties": {
                "symbol": {"description": "The launcher that the emitted host part calls.", "type": "string",
                           "pattern": f"^{IDENTIFIER}$"},
                "expr": {"description": "The formula, with $0, $1, ... for the operands.", "type": "string",
                         "minLength": 1}}}}}


def node(ops):
    names = [row["name"] for row in ops]
    properties = {
        "name": {"description": "Unique among nodes; names the result where `outputs` is absent.", **ref("name")},
        "op": {"description": "An operator of `fusec --list-ops`, or a custom operator, which declares its outputs.",
               "anyOf": [{"oneOf": [{"const": row["name"], "description": row["summary"]} for row in ops]},
                         {"type": "string", "minLength": 1}]},
        "inputs": {"description": "Operands, in order.", "type": "array", "items": ref("optional_operand")},
        "outputs": {"description": "Names of the results; absent: the node's name, or name.0, name.1, ... of several.",
                    "type": "array", "items": ref("output")},
        "attrs": {"description": "The operator's attributes.", "type": "object"},
        "pattern": {"description": "The pattern kind, where the front end overrules the derived one.", "enum": KINDS},
        "fuse": {"description": "false: the node stays a kernel of its own.", "type": "boolean"}}
    choices = [{"if": {"properties": {"op": {"const": row["name"]}}, "required": ["op"]}, "then": ref("op." + row["name"])}
               for row in ops]
    choices.append({"if": {"properties": {"op": {"not": {"enum": names}}}, "required": ["op"]}, "then": ref("custom_op")})
    return an_object("One operator.", properties, ["name", "op", "inputs"], allOf=choices)


def data_of(dtypes, element):
    return {"if": {"properties": {"dtype": {"enum": dtypes}}, "required": ["dtype"]},
            "then": {"properties": {"data": {"items": element}}}}


def constant():
    where = an_object("A tensor of a safetensors file.", {
        "file": {"description": "Relative to the model's folder, which it must not leave.", **ref("name")},
        "tensor": {"type": "string"}}, ["file", "tensor"])
    properties = {
        "name": ref("name"), "dtype": ref("dtype"), "shape": ref("shape"),
        "data": {"description": "The elements in row-major order.", "type": "array"}, "safetensors": where}
    floats = [d for d in DTYPES if d.startswith(("float", "bfloat"))]
    numbers = {"anyOf": [{"type": "number"}, {"enum": NOT_NUMBERS}]}
    return an_object(
        "A tensor known before the first launch. Without data and safetensors its value is given at run time.",
        properties, ["name", "dtype", "shape"], **{
            "not": {"required": ["data", "safetensors"]},
            "allOf": [data_of(["bool"], {"type": "boolean"}),
                      data_of([d for d in DTYPES if d.startswith(("int", "uint"))], {"type": "number"}),
                      data_of(floats, numbers)]})


def symbol():
    whole = {"type": "integer", "minimum": 0}
    return an_object("The values that a symbolic dimension may have.", {
        "min": {"description": "The least value.", "default": 1, **whole},
        "max": {"description": "The greatest value.", "default": 2147483647, **whole},
        "multiple_of": {"description": "Every value is a multiple of this.", "type": "integer", "minimum": 1, "default": 1},
        "hint": {"description": "The value that costs and reports assume; absent: the largest allowed up to 2048.",
                 **whole}}, [])


def definitions(ops):
    expression = {"description": "An integer polynomial of symbols: \"tokens\", \"2*tokens + 1\"; also //, %, min, max.",
                  "type": "string", "pattern": r"^[A-Za-z0-9_+*/%(),\s-]*[A-Za-z0-9_)]\s*$"}
    name = {"type": "string", "minLength": 1}
    tensor = {"name": ref("name"), "dtype": ref("dtype"), "shape": ref("shape")}
    found = {
        "name": name,
        "dtype": {"description": "The type of a tensor's elements.", "enum": DTYPES},
        "expression": expression,
        "dimension": {"description": "A non-negative integer, or an expression of symbols.",
                      "anyOf": [{"type": "integer", "minimum": 0}, ref("expression")]},
        "signed_dimension": {"anyOf": [{"type": "integer"}, ref("expression")]},
        "shape": {"description": "One dimension after the other; [] is a scalar.", "type": "array",
                  "items": ref("dimension")},
        "scalar": {"anyOf": [{"type": ["number", "boolean"]}, {"enum": NOT_NUMBERS}]},
        "operand": {"description": "A value's name, a weakly typed number or boolean, or the value of a dimension.",
                    "anyOf": [{"type": ["string", "number", "boolean"]},
                              an_object("The value of a dimension, as an integer.", {"dim": ref("signed_dimension")},
                                        ["dim"])]},
        "optional_operand": {"anyOf": [ref("operand"), {"type": "null"}]},
        "output": {"description": "A result's name, or an object that also declares its type.", "anyOf": [
            ref("name"), an_object("A result and its type, which the inferred type must agree with.", tensor, ["name"])]},
        "input": an_object("A tensor that every launch is given.", tensor, ["name", "dtype", "shape"]),
        "constant": constant(),
        "symbol": symbol(),
        "node": node(ops),
        "custom_op": custom_op()}
    for row in ops:
        found["op." + row["name"]] = of_op(row)
    return found


def model_schema(ops):
    arrays = {key: {"description": text, "type": "array", "items": ref(item)} for key, item, text in [
        ("inputs", "input", "Tensors that every launch is given, in the order of the arguments."),
        ("constants", "constant", "Tensors known before the first launch: weights and scalars."),
        ("nodes", "node", "Operators, in any order.")]}
    properties = {
        "fusec": {"description": "The version of the format.", "type": "integer", "const": 1},
        "name": {"description": "The model's name.", "type": "string"},
        "symbols": {"description": "Symbolic dimensions.", "type": "object", "propertyNames": {"pattern": f"^{IDENTIFIER}$"},
                    "additionalProperties": ref("symbol")},
        **arrays,
        "outputs": {"description": "Names of values, in the order of the results.", "type": "array",
                    "items": {"type": "string"}, "minItems": 1},
        "aliases": {"description": "{output: input}: the output is written into that input's buffer.", "type": "object",
                    "additionalProperties": {"type": "string"}},
        "metadata": {"description": "Anything; ignored."}}
    top = an_object("A graph of tensor operators (docs/graph_format.md). Generated by scripts/generate_docs.py.", properties,
                    ["fusec", "inputs", "nodes", "outputs"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "fusec model, format version 1", **top,
            "$defs": definitions(ops)}


def text(schema):
    """The schema as JSON, a definition a line."""
    lines = [f"  {json.dumps(name)}: {json.dumps(part)}" for name, part in schema["$defs"].items()]
    rest = {key: part for key, part in schema.items() if key != "$defs"}
    return json.dumps(rest, indent=1)[:-2] + ',\n "$defs": {\n' + ",\n".join(lines) + "\n }\n}\n"
