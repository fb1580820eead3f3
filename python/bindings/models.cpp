// Models, how they are built, and the operators that they may use.
#include <fmt/format.h>

#include <algorithm>

#include "bindings.h"

namespace fusec::python {
namespace {

// A 0-d array or scalar of NumPy or PyTorch as a number of Python; anything else as it is.
nb::object plain(const nb::handle& given) {
  const bool is_array = nb::hasattr(given, "item") && nb::hasattr(given, "ndim");
  return is_array && given.attr("ndim").equal(nb::int_(0)) ? given.attr("item")() : nb::borrow(given);
}

nb::list plain_list(const nb::handle& given) {
  nb::list items;
  for (const nb::handle item : given) items.append(plain(item));
  return items;
}

bool are_integers(const nb::list& items) {
  return std::all_of(items.begin(), items.end(), [](const nb::handle& i) { return nb::isinstance<nb::int_>(i); });
}

std::int64_t integer_of(const nb::handle& given, const std::string& what) {
  std::int64_t value = 0;
  if (!nb::try_cast(given, value))
    throw Error(ErrorKind::kUsage,
                Error::Parts{.what = what, .found = nb::repr(given).c_str(), .expected = "an integer of 64 bits"});
  return value;
}

// A number or a bool as one of `Variant`.
template <typename Variant>
std::optional<Variant> number_of(const nb::handle& given, const std::string& what) {
  if (nb::isinstance<nb::bool_>(given)) return nb::cast<bool>(given);
  if (nb::isinstance<nb::int_>(given)) return integer_of(given, what);
  if (nb::isinstance<nb::float_>(given)) return nb::cast<double>(given);
  return std::nullopt;
}

ModelBuilder::Operand operand_of(const nb::handle& given) {
  if (given.is_none()) return nullptr;
  if (nb::isinstance<ModelBuilder::Value>(given)) return nb::cast<ModelBuilder::Value>(given);
  if (auto number = number_of<ModelBuilder::Operand>(plain(given), "an operand")) return *number;
  throw nb::type_error("an operand is a Value of this builder, a number, a bool or None");
}

ModelBuilder::AttributeValue attribute_of(const nb::handle& given, const std::string& name) {
  const std::string what = "attribute " + name;
  if (auto number = number_of<ModelBuilder::AttributeValue>(plain(given), what)) return *std::move(number);
  if (nb::isinstance<nb::str>(given)) return text_in(given, what.c_str());
  if (nb::isinstance<nb::sequence>(given)) {
    const nb::list items = plain_list(given);
    std::vector<std::int64_t> numbers;
    if (are_integers(items)) {
      for (const nb::handle item : items) numbers.push_back(integer_of(item, what));
      return numbers;
    }
    // Sizes and positions may be expressions of symbols: then all of them go as texts.
    std::vector<std::string> texts;
    for (const nb::handle item : items) texts.push_back(text_in(nb::str(item), what.c_str()));
    return texts;
  }
  throw nb::type_error(("attribute " + name + " is a number, a text, or a list of them").c_str());
}

std::vector<ModelBuilder::Operand> operands_of(const nb::args& given) {
  std::vector<ModelBuilder::Operand> operands;
  for (const nb::handle operand : given) operands.push_back(operand_of(operand));
  return operands;
}

std::vector<ModelBuilder::Attribute> attributes_of(const nb::kwargs& given) {
  std::vector<ModelBuilder::Attribute> attributes;
  for (const auto [key, value] : given) {
    std::string name = nb::cast<std::string>(key);
    if (name == "name" || name == "count" || value.is_none()) continue;
    ModelBuilder::AttributeValue attribute = attribute_of(value, name);
    attributes.push_back({std::move(name), std::move(attribute)});
  }
  return attributes;
}

std::string name_in(const nb::kwargs& given) {
  return given.contains("name") ? text_in(given["name"], "a node's name") : "";
}

std::string dtype_in(const nb::handle& given) {
  return text_in(given, "a dtype (\"float32\")");
}

ModelBuilder::Value add_constant(ModelBuilder& builder, const std::string& name, const nb::object& dtype,
                                 const Shape& shape, const nb::object& data) {
  const std::string type = dtype_in(dtype);
  if (data.is_none()) return builder.constant(name, type, dimensions_of(shape));
  const auto add = [&](auto elements) {
    return builder.constant(name, type, dimensions_of(shape), std::move(elements));
  };
  if (nb::hasattr(data, "__iter__")) {
    const nb::list items = plain_list(data);
    std::vector<std::int64_t> integers;  // doubles may round them
    std::vector<std::uint64_t> positive;
    std::vector<double> numbers;
    if (are_integers(items) && nb::try_cast(items, integers)) return add(std::move(integers));
    if (are_integers(items) && nb::try_cast(items, positive)) return add(std::move(positive));
    if (nb::try_cast(items, numbers)) return add(std::move(numbers));
  }
  throw nb::type_error("data of a constant is a flat sequence of numbers, in row-major order: array.ravel()");
}

void bind_registry(nb::module_& m) {
  nb::class_<TensorInfo>(m, "TensorInfo", "A tensor's dtype (an ml_dtypes name) and shape (numbers and expressions).")
      .def(
          "__init__",
          [](TensorInfo* self, const nb::object& dtype, const Shape& shape) {
            new (self) TensorInfo{dtype_in(dtype), dimensions_of(shape)};
          },
          "dtype"_a, "shape"_a, nb::sig("def __init__(self, dtype: str, shape: Sequence[int | str]) -> None"))
      .def_ro("dtype", &TensorInfo::dtype)
      .def_prop_ro("shape", [](const TensorInfo& t) { return shape_of(t.shape); })
      .def("__repr__", [](const TensorInfo& t) { return "<fusec.TensorInfo " + text_of(t) + ">"; });
  nb::class_<Registry>(m, "Registry", "The operators that models may use. A value: `with_op` gives a new one.")
      .def(nb::init<>())
      .def(
          "with_op",
          [](const Registry& self, std::string name, std::vector<std::string> operands, std::string expression,
             std::string pattern, std::string launcher,
             std::function<nb::object(const std::vector<TensorInfo>&)> infer) {
            return self.with({.name = std::move(name),
                              .operands = std::move(operands),
                              .pattern = std::move(pattern),
                              .expression = std::move(expression),
                              .launcher = std::move(launcher),
                              .infer = returning<TensorInfo>("infer returns a fusec.TensorInfo", std::move(infer))});
          },
          "name"_a, "operands"_a, "expression"_a = "", "pattern"_a = "opaque", "launcher"_a = "",
          "infer"_a.none() = nb::none(),
          nb::sig(
              "def with_op(self, name: str, operands: Sequence[str], expression: str = '', pattern: str = 'opaque', "
              "launcher: str = '', infer: Callable[[Sequence[TensorInfo]], TensorInfo] | None = None) -> Registry"))
      .def("op_names", &Registry::op_names)
      .def("__repr__",
           [](const Registry& self) { return fmt::format("<fusec.Registry: {} ops>", self.op_names().size()); });
}

void bind_model(nb::module_& m) {
  nb::class_<ModelTensor>(m, "ModelTensor", "An input, a constant or an output of a model.")
      .def_ro("name", &ModelTensor::name)
      .def_prop_ro("dtype", [](const ModelTensor& t) { return t.type.dtype; })
      .def_prop_ro("shape", [](const ModelTensor& t) { return shape_of(t.type.shape); })
      .def_ro("is_known", &ModelTensor::is_known, "A constant whose elements the model has.")
      .def("__repr__",
           [](const ModelTensor& t) { return "<fusec.ModelTensor " + t.name + ": " + text_of(t.type) + ">"; });
  nb::class_<ResourceLimits>(m, "ResourceLimits")
      .def(nb::init<>())
      .def_rw("timeout", &ResourceLimits::seconds)
      .def_rw("max_memory", &ResourceLimits::memory_bytes)
      .def_rw("max_file_size", &ResourceLimits::file_bytes)
      .def_rw("limit", &ResourceLimits::sizes);
  nb::class_<Model>(m, "Model", "A graph of tensor operators. Immutable.")
      .def_static("read", &Model::read, "path"_a, "registry"_a = Registry(), "resources"_a = ResourceLimits(),
                  Released(), "Reads a model file; \"-\" is standard input. Raises InputError.")
      .def_static(
          "parse",
          [](std::string_view text, const std::string& directory, const Registry& registry,
             const ResourceLimits& resources) { return Model::parse(text, directory, registry, resources); },
          "text"_a, "directory"_a = ".", "registry"_a = Registry(), "resources"_a = ResourceLimits(), Released(),
          "Reads a model's JSON; weight files are looked for in `directory`. Raises InputError.")
      .def_prop_ro("name", &Model::name)
      .def_prop_ro("directory", &Model::directory, "Where weight files are looked for.")
      .def_prop_ro("node_names", &Model::node_names, "In topological order.")
      .def_prop_ro("inputs", &Model::inputs, "In the order of a call.")
      .def_prop_ro("constants", &Model::constants)
      .def_prop_ro("outputs", &Model::outputs)
      .def(
          "constant_bytes",
          [](const Model& self, const std::string& name) {
            const std::vector<std::byte> bytes = self.constant_bytes(name);
            return nb::bytes(bytes.data(), bytes.size());
          },
          "name"_a, "The elements of a constant that is_known, as they lie in memory.")
      .def("to_json", &Model::to_json)
      .def("to_text", &Model::to_text)
      .def("__repr__", [](const Model& self) {
        return "<fusec.Model " + self.name() + ": " + std::to_string(self.node_names().size()) + " nodes, " +
               std::to_string(self.inputs().size()) + " inputs, " + std::to_string(self.constants().size()) +
               " constants, " + std::to_string(self.outputs().size()) + " outputs>";
      });
}

void bind_builder(nb::module_& m) {
  nb::class_<ModelBuilder::Value>(m, "Value", "A value of a model under construction.")
      .def_ro("name", &ModelBuilder::Value::name)
      .def("__repr__", [](const ModelBuilder::Value& self) { return "<fusec.Value " + self.name + ">"; });
  nb::class_<ModelBuilder>(m, "ModelBuilder", "Builds a model call by call.")
      .def(nb::init<std::string, Registry>(), "name"_a, "registry"_a = Registry())
      .def(
          "symbol",
          [](ModelBuilder& self, const std::string& name, std::int64_t min, std::int64_t max, std::int64_t multiple_of,
             std::optional<std::int64_t> hint) {
            self.symbol(name, {.min = min, .max = max, .multiple_of = multiple_of, .hint = hint});
          },
          "name"_a, "min"_a = 1, "max"_a = 2147483647, "multiple_of"_a = 1, "hint"_a = nb::none(),
          "Declares a symbolic dimension with its bounds; `hint` is the value that costs take.")
      .def(
          "input",
          [](ModelBuilder& self, const std::string& name, const nb::object& dtype, const Shape& shape) {
            return self.input(name, dtype_in(dtype), dimensions_of(shape));
          },
          "name"_a, "dtype"_a, "shape"_a,
          nb::sig("def input(self, name: str, dtype: str, shape: Sequence[int | str]) -> Value"))
      .def("constant", &add_constant, "name"_a, "dtype"_a, "shape"_a, "data"_a = nb::none(),
           nb::sig("def constant(self, name: str, dtype: str, shape: Sequence[int | str], "
                   "data: Sequence[float] | None = None) -> Value"),
           "A tensor known before run time. Without `data` (row-major elements) it is given by name at a call.")
      .def(
          "op",
          [](ModelBuilder& self, const std::string& op, const nb::args& operands, const nb::kwargs& attributes) {
            return self.op(op, operands_of(operands), attributes_of(attributes), name_in(attributes));
          },
          "op"_a, "operands"_a, "attributes"_a,
          nb::sig("def op(self, op: str, *operands: Value | bool | int | float | None, name: str = '', "
                  "**attributes: object) -> Value"),
          "A node with one result. Attributes have PyTorch's names.")
      .def(
          "op_several",
          [](ModelBuilder& self, const std::string& op, std::size_t count, const nb::args& operands,
             const nb::kwargs& attributes) {
            return self.op_several(op, count, operands_of(operands), attributes_of(attributes), name_in(attributes));
          },
          "op"_a, "count"_a, "operands"_a, "attributes"_a,
          nb::sig("def op_several(self, op: str, count: int, *operands: Value | bool | int | float | None, "
                  "name: str = '', **attributes: object) -> list[Value]"),
          "A node with `count` results (split, topk).")
      .def("output", &ModelBuilder::output, "value"_a)
      .def("build", &ModelBuilder::build, "resources"_a = ResourceLimits(), Released(),
           "Checks the whole model and infers its types. Raises InputError with the JSON pointer of what is wrong.")
      .def("__repr__", [](const ModelBuilder& self) { return "<fusec.ModelBuilder " + self.name() + ">"; });
}

}  // namespace

Shape shape_of(const std::vector<Dimension>& dimensions) {
  Shape shape;
  for (const Dimension& d : dimensions) shape.push_back(d.value);
  return shape;
}

std::vector<Dimension> dimensions_of(const Shape& shape) {
  std::vector<Dimension> dimensions;
  for (const auto& extent : shape) {
    if (const auto* number = std::get_if<std::int64_t>(&extent))
      dimensions.emplace_back(*number);
    else
      dimensions.emplace_back(std::get<std::string>(extent));
  }
  return dimensions;
}

std::string text_of(const TensorInfo& type) {
  std::string shape;
  for (const Dimension& d : type.shape) {
    if (!shape.empty()) shape += ", ";
    shape += std::visit([](const auto& extent) { return fmt::format("{}", extent); }, d.value);
  }
  return type.dtype + "[" + shape + "]";
}

std::string text_in(const nb::handle& given, const char* what) {
  std::string text;
  if (!nb::isinstance<nb::str>(given) || !nb::try_cast(given, text))
    throw nb::type_error(fmt::format("{} is a str, not {}", what, nb::repr(given).c_str()).c_str());
  return text;
}

void bind_models(nb::module_& m) {
  bind_registry(m);
  bind_model(m);
  bind_builder(m);
}

}  // namespace fusec::python
