// Reads the declarations of a model: symbols, inputs, constants with their data or weight files.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/read_context.h"
#include "ir/safetensors.h"

namespace fusec {

std::vector<Symbol> read_symbols(const ReadContext& context, Json at);

struct Declaration {
  Json name;  // a string
  TensorType type;
};
// Rules that the bounds of symbols do not decide go to `checks`.
Declaration read_input(const ReadContext& context, Json at, const SymbolNames& names, std::vector<LaunchCheck>& checks);

// Weight files of one model, each opened and checked once.
class WeightFiles {
 public:
  WeightFiles(const ReadContext& context, std::string directory)
      : context_(context), directory_(std::move(directory)) {}
  // Checks that the file is inside the model's folder and holds the tensor with this type.
  void check(Json file, Json tensor, const TensorType& type, const Symbols& symbols);

 private:
  std::string locate(Json file) const;

  const ReadContext& context_;
  std::string directory_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;
};

// Fills in the data and safetensors fields of `constant`; the caller sets its value.
Declaration read_constant(const ReadContext& context, Json at, const SymbolNames& names, WeightFiles& weights,
                          std::vector<LaunchCheck>& checks, Constant& constant);

// One element of a constant's data, rounded to the dtype. Numbers of uint64 are stored by their bits.
Scalar read_element(const ReadContext& context, Json at, DType dtype);

}  // namespace fusec
