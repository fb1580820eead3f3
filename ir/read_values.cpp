#include "ir/read_values.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

#include "ir/budget.h"
#include "ir/error.h"
#include "ir/float_formats.h"
#include "ir/spelling.h"
#include "ir/type_rules.h"

namespace fusec {
namespace {

Symbol read_symbol(const ReadContext& context, Json at) {
  const std::string name(at.key_text());
  if (!is_identifier(name))
    context.fail(at, "a symbol's name", in_quotes(name), "an identifier: letters, digits and _, no digit first");
  enum { kMin, kMax, kMultipleOf, kHint };
  const Fields fields(context, at, "a symbol",
                      {{"min", false}, {"max", false}, {"multiple_of", false}, {"hint", false}});
  Symbol symbol{.name = name};
  if (fields[kMin]) symbol.min = context.integer(*fields[kMin], "a symbol's min", 0);
  if (fields[kMax]) symbol.max = context.integer(*fields[kMax], "a symbol's max", 0);
  if (fields[kMultipleOf]) symbol.multiple_of = context.integer(*fields[kMultipleOf], "a symbol's multiple_of", 1);
  // The allowed values are the multiples in [min, max]; the first one may lie beyond 63 bits.
  const std::int64_t m = symbol.multiple_of;
  std::int64_t first = symbol.min / m * m;
  const bool beyond = first < symbol.min && __builtin_add_overflow(first, m, &first);
  if (beyond || first > symbol.max)
    context.fail(at, "bounds that leave no value",
                 fmt::format("min {}, max {}, multiple_of {}", symbol.min, symbol.max, m),
                 "a multiple between min and max");
  symbol.hint = std::max(first, std::min<std::int64_t>(symbol.max, 2048) / m * m);
  if (!fields[kHint]) return symbol;
  const std::int64_t hint = context.integer(*fields[kHint], "a symbol's hint", 0);
  if (hint < symbol.min || hint > symbol.max || hint % m != 0)
    context.unfit(*fields[kHint], "a symbol's hint",
                  fmt::format("a value that the bounds allow: {} to {}, a multiple of {}", symbol.min, symbol.max, m));
  symbol.hint = hint;
  return symbol;
}

// The extents of a shape without symbols; nothing for other shapes.
std::optional<std::vector<std::int64_t>> constant_shape(const Shape& shape) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape) {
    count_step();
    if (!dim.is_constant()) return std::nullopt;
    sizes.push_back(dim.constant_term());
  }
  return sizes;
}

std::vector<Scalar> read_data(const ReadContext& context, Json at, const TensorType& type, const Symbols& symbols) {
  context.array(at, "a constant's data");
  if (!constant_shape(type.shape))
    context.fail(at, "data of a symbolic shape", shape_text(type.shape, symbols), "a shape of integers");
  const std::int64_t count = element_count(type.shape)->constant_term();
  if (at.size() != count)
    context.fail(at, "data of the wrong length", fmt::format("{} elements", at.size()),
                 fmt::format("{}, as the shape {} says", count, shape_text(type.shape, symbols)));
  std::vector<Scalar> data;
  data.reserve(at.size());
  for (const Json element : at) data.push_back(read_element(context, element, type.dtype));
  return data;
}

std::string range_text(DType dtype) {
  if (dtype == DType::kUInt64) return fmt::format("0 to {}", std::numeric_limits<std::uint64_t>::max());
  return fmt::format("{} to {}", least_integer(dtype), greatest_integer(dtype));
}

Scalar read_integer_element(const ReadContext& context, Json at, DType dtype) {
  const auto out_of_range = [&] {
    context.unfit(at, fmt::format("data out of the range of {}", name(dtype)), range_text(dtype));
  };
  if (!at.is_number()) context.unfit(at, fmt::format("data of {}", name(dtype)), "a number");
  if (at.is(JsonKind::kHuge)) out_of_range();
  if (at.is(JsonKind::kUnsigned)) {
    if (dtype != DType::kUInt64) out_of_range();
    return Scalar::whole(std::bit_cast<std::int64_t>(at.unsigned_()));
  }
  if (at.is(JsonKind::kInteger)) {
    const std::int64_t value = at.integer();
    if (value < least_integer(dtype)) out_of_range();
    if (value > 0 && static_cast<std::uint64_t>(value) > greatest_integer(dtype)) out_of_range();
    return Scalar::whole(value);
  }
  const double rounded = std::nearbyint(at.number());
  const double greatest =
      std::ldexp(1.0, bits(dtype) - (info(dtype).is_signed ? 1 : 0));  // the first value out of range
  if (rounded < static_cast<double>(least_integer(dtype)) || rounded >= greatest) out_of_range();
  if (dtype == DType::kUInt64 && rounded >= 0x1p63)
    return Scalar::whole(std::bit_cast<std::int64_t>(static_cast<std::uint64_t>(rounded)));
  return Scalar::whole(static_cast<std::int64_t>(rounded));
}

Scalar read_float_element(const ReadContext& context, Json at, DType dtype) {
  const std::string what = fmt::format("data out of the range of {}", name(dtype));
  const bool has_infinity = std::isinf(round_to_float(dtype, std::numeric_limits<double>::infinity()));
  if (at.is(JsonKind::kString)) {
    const bool negative = at.text() == "-inf";
    if (negative || at.text() == "inf") {
      if (!has_infinity) context.unfit(at, what, "a finite number: the format has no infinity");
      return Scalar::floating(negative ? -std::numeric_limits<double>::infinity()
                                       : std::numeric_limits<double>::infinity());
    }
    if (at.text() == "nan") {
      if (dtype == DType::kFloat4E2M1FN) context.unfit(at, what, "a number: the format has no NaN");
      return Scalar::floating(std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (!at.is_number())
    context.unfit(at, fmt::format("data of {}", name(dtype)), "a number, \"nan\", \"inf\" or \"-inf\"");
  const double value = at.number();
  if (dtype == DType::kFloat8E8M0FNU && value <= 0) context.unfit(at, what, "a positive number");
  // float4_e2m1fn saturates; 7 is halfway between its greatest value, 6, and the next step.
  const bool overflow =
      dtype == DType::kFloat4E2M1FN ? std::fabs(value) >= 7 : !std::isfinite(round_to_float(dtype, value));
  if (overflow) context.unfit(at, what, fmt::format("at most {} in magnitude", greatest_finite(dtype)));
  return Scalar::floating(round_to_float(dtype, value));
}

}  // namespace

std::vector<Symbol> read_symbols(const ReadContext& context, Json at) {
  context.object(at, "the model's symbols");
  std::vector<Symbol> symbols;
  for (const Json member : at) symbols.push_back(read_symbol(context, member));
  return symbols;
}

Declaration read_input(const ReadContext& context, Json at, const SymbolNames& names,
                       std::vector<LaunchCheck>& checks) {
  enum { kName, kDType, kShape };
  const Fields fields(context, at, "an input", {{"name", true}, {"dtype", true}, {"shape", true}});
  context.name(*fields[kName], "an input's name");
  const std::string what = names.symbols().empty() ? "" : "input " + in_quotes(fields[kName]->text());
  return {*fields[kName], read_type(context, *fields[kDType], *fields[kShape], names, &checks, what)};
}

Scalar read_element(const ReadContext& context, Json at, DType dtype) {
  if (dtype == DType::kBool) {
    if (!at.is(JsonKind::kBool)) context.unfit(at, "data of bool", "true or false");
    return Scalar::boolean(at.boolean());
  }
  return is_integer(dtype) ? read_integer_element(context, at, dtype) : read_float_element(context, at, dtype);
}

Declaration read_constant(const ReadContext& context, Json at, const SymbolNames& names, WeightFiles& weights,
                          std::vector<LaunchCheck>& checks, Constant& constant) {
  enum { kName, kDType, kShape, kData, kSafetensors };
  const Fields fields(context, at, "a constant",
                      {{"name", true}, {"dtype", true}, {"shape", true}, {"data", false}, {"safetensors", false}});
  context.name(*fields[kName], "a constant's name");
  const std::string what = names.symbols().empty() ? "" : "constant " + in_quotes(fields[kName]->text());
  Declaration declaration{*fields[kName], read_type(context, *fields[kDType], *fields[kShape], names, &checks, what)};
  if (fields[kData] && fields[kSafetensors])
    context.fail(*fields[kSafetensors], "a constant with two values", "data and safetensors", "one of them");
  if (fields[kData])
    constant.data = std::make_shared<const std::vector<Scalar>>(
        read_data(context, *fields[kData], declaration.type, names.symbols()));
  if (fields[kSafetensors]) {
    const Fields place(context, *fields[kSafetensors], "a place in a weight file", {{"file", true}, {"tensor", true}});
    constant.safetensors_file = context.name(*place[0], "a weight file's name");
    constant.safetensors_tensor = context.string(*place[1], "a tensor's name").text();
    weights.check(*place[0], *place[1], declaration.type, names.symbols());
  }
  return declaration;
}

std::string WeightFiles::locate(Json file) const {
  namespace fs = std::filesystem;
  const auto outside = [&] {
    context_.unfit(file, "a weight file lies outside the model's folder", "a path inside it");
  };
  const std::string name(file.text());
  const fs::path relative = fs::path(name).lexically_normal();
  if (relative.is_absolute() || *relative.begin() == "..") outside();
  std::error_code error;
  const fs::path folder = fs::canonical(directory_.empty() ? "." : directory_, error);
  const fs::path path = error ? fs::path() : fs::canonical(folder / relative, error);
  if (error || name.find('\0') != std::string::npos || !fs::is_regular_file(path, error))
    context_.unfit(file, "a weight file is missing", "a file that can be read");
  // A symbolic link may lead out of the folder.
  if (std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first != folder.end()) outside();
  return path.string();
}

void WeightFiles::check(Json file, Json tensor, const TensorType& type, const Symbols& symbols) {
  std::unique_ptr<SafetensorsFile>& opened = open_[std::string(file.text())];
  if (!opened) {
    const std::string path = locate(file);
    try {
      opened = std::make_unique<SafetensorsFile>(path);
    } catch (const Error& error) {
      // Report the error at the model's element, without the path of the weight file.
      const Error::Parts& parts = error.parts();
      context_.fail(file,
                    "a weight file is unusable: " + parts.what + (parts.pointer.empty() ? "" : " at #" + parts.pointer),
                    parts.found, parts.expected);
    }
  }
  const SafetensorsFile::Tensor* stored = opened->find(tensor.text());
  if (!stored) {
    std::vector<std::string_view> names;
    for (const auto& entry : opened->tensors()) names.push_back(entry.first);
    context_.unfit(tensor, "a weight file has no such tensor", "the name of one of its tensors",
                   did_you_mean(tensor.text(), names));
  }
  const auto shape = constant_shape(type.shape);
  const StoredType wanted = shape ? stored_type(type.dtype, *shape) : StoredType{};
  if (!shape || stored->type != wanted)
    context_.fail(tensor, "a weight's type does not agree with its file", to_string(stored->type),
                  shape ? to_string(wanted) : to_string(type, symbols));
}

}  // namespace fusec
