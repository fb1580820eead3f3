// Models built call by call.
#include <algorithm>

#include "c_api/handles.h"

using namespace fusec;
using namespace fusec::c_api;

namespace {

ModelBuilder::Operand operand_of(const fusec_operand& given) {
  switch (given.kind) {
    case FUSEC_VALUE:
      require(given.value, "an operand's value");
      return ModelBuilder::Value{given.value};
    case FUSEC_INTEGER:
      return given.integer;
    case FUSEC_REAL:
      return given.real;
    case FUSEC_BOOL:
      return given.integer != 0;
    case FUSEC_ABSENT:
      return nullptr;
    default:
      throw Error(ErrorKind::kUsage, {.what = "the kind of an operand", .found = std::to_string(given.kind)});
  }
}

ModelBuilder::AttributeValue attribute_value(const fusec_attribute& given) {
  switch (given.kind) {
    case FUSEC_INTEGER:
      return given.integer;
    case FUSEC_REAL:
      return given.real;
    case FUSEC_BOOL:
      return given.integer != 0;
    case FUSEC_TEXT:
      require(given.text, "an attribute's text");
      return std::string(given.text);
    case FUSEC_INTEGERS:
      require_list(given.integers, given.count, "an attribute's integers");
      return std::vector<std::int64_t>(given.integers, given.integers + given.count);
    case FUSEC_TEXTS:
      return texts(given.texts, given.count, "an attribute's texts");
    default:
      throw Error(ErrorKind::kUsage, {.what = "the kind of an attribute", .found = std::to_string(given.kind)});
  }
}

std::vector<ModelBuilder::Attribute> attributes_of(const fusec_attribute* given, std::size_t count) {
  require_list(given, count, "the attributes");
  std::vector<ModelBuilder::Attribute> attributes;
  for (std::size_t i = 0; i < count; ++i) {
    require(given[i].name, "an attribute's name");
    attributes.push_back({given[i].name, attribute_value(given[i])});
  }
  return attributes;
}

// Names of the results, whose text stays while the builder does.
void add_node(fusec_builder& builder, const std::string& op, std::vector<ModelBuilder::Operand> operands,
              std::vector<ModelBuilder::Attribute> attributes, const std::string& name, std::size_t count,
              const char** results) {
  std::vector<ModelBuilder::Value> values;
  if (count == 1)
    values.push_back(builder.builder.op(op, std::move(operands), std::move(attributes), name));
  else
    values = builder.builder.op_several(op, count, std::move(operands), std::move(attributes), name);
  std::vector<const char*> names;
  for (ModelBuilder::Value& value : values) names.push_back(builder.names.insert(std::move(value.name)).first->c_str());
  if (results) std::ranges::copy(names, results);
}

struct Declared {
  const char *name, *dtype;
  const fusec_dimension* shape;
  std::size_t rank;
};

std::vector<Dimension> checked(fusec_builder* builder, const Declared& declared) {
  require(builder, "the builder");
  require(declared.name, "the tensor's name");
  require(declared.dtype, "the tensor's dtype");
  return dimensions_of(declared.shape, declared.rank);
}

}  // namespace

std::vector<Dimension> c_api::dimensions_of(const fusec_dimension* shape, std::size_t rank) {
  require_list(shape, rank, "the shape");
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < rank; ++i)
    dimensions.push_back(shape[i].expression ? Dimension(shape[i].expression) : Dimension(shape[i].extent));
  return dimensions;
}

fusec_status fusec_builder_new(const char* name, const fusec_registry* registry, fusec_builder** builder,
                               fusec_error** error) {
  return guarded_new(builder, error, [&] {
    require(name, "the model's name");
    return new fusec_builder{ModelBuilder(name, registry_of(registry)), {}};
  });
}

fusec_status fusec_builder_symbol(fusec_builder* builder, const char* name, int64_t min, int64_t max,
                                  int64_t multiple_of, const int64_t* hint, fusec_error** error) {
  return guarded(error, [&] {
    require(builder, "the builder");
    require(name, "the symbol's name");
    SymbolRange range{.min = min, .max = max, .multiple_of = multiple_of, .hint = {}};
    if (hint) range.hint = *hint;
    builder->builder.symbol(name, range);
  });
}

fusec_status fusec_builder_input(fusec_builder* builder, const char* name, const char* dtype,
                                 const fusec_dimension* shape, size_t rank, fusec_error** error) {
  return guarded(error, [&] {
    std::vector<Dimension> dimensions = checked(builder, {name, dtype, shape, rank});
    builder->builder.input(name, dtype, std::move(dimensions));
  });
}

fusec_status fusec_builder_constant(fusec_builder* builder, const char* name, const char* dtype,
                                    const fusec_dimension* shape, size_t rank, fusec_error** error) {
  return guarded(error, [&] {
    std::vector<Dimension> dimensions = checked(builder, {name, dtype, shape, rank});
    builder->builder.constant(name, dtype, std::move(dimensions));
  });
}

fusec_status fusec_builder_constant_data(fusec_builder* builder, const char* name, const char* dtype,
                                         const fusec_dimension* shape, size_t rank, const double* elements,
                                         size_t count, fusec_error** error) {
  return guarded(error, [&] {
    std::vector<Dimension> dimensions = checked(builder, {name, dtype, shape, rank});
    require_list(elements, count, "the constant's elements");
    builder->builder.constant(name, dtype, std::move(dimensions), std::vector<double>(elements, elements + count));
  });
}

fusec_status fusec_builder_op(fusec_builder* builder, const char* op, const fusec_operand* operands,
                              size_t operand_count, const fusec_attribute* attributes, size_t attribute_count,
                              const char* name, size_t result_count, const char** results, fusec_error** error) {
  for (std::size_t i = 0; results && i < result_count; ++i) results[i] = nullptr;
  return guarded(error, [&] {
    require(builder, "the builder");
    require(op, "the op");
    require_list(operands, operand_count, "the operands");
    std::vector<ModelBuilder::Operand> given;
    for (std::size_t i = 0; i < operand_count; ++i) given.push_back(operand_of(operands[i]));
    add_node(*builder, op, std::move(given), attributes_of(attributes, attribute_count), text_or_empty(name),
             result_count, results);
  });
}

fusec_status fusec_builder_output(fusec_builder* builder, const char* value, fusec_error** error) {
  return guarded(error, [&] {
    require(builder, "the builder");
    require(value, "the output's name");
    builder->builder.output({value});
  });
}

fusec_status fusec_builder_build(const fusec_builder* builder, const fusec_options* options, fusec_model** model,
                                 fusec_error** error) {
  return guarded_new(model, error, [&] {
    require(builder, "the builder");
    return new fusec_model{builder->builder.build(options_of(options).resources)};
  });
}

void fusec_builder_free(fusec_builder* builder) {
  delete builder;
}
