// The declarations of a model: symbols, inputs, constants with their data or weight files.
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
// What the bounds of symbols do not decide goes to `checks`.
Declaration read_input(const ReadContext& context, Json at, const SymbolNames& names, std::vector<LaunchCheck>& checks);

// Weight files of one model, each opened and checked once.
class WeightFiles {
 public:
  WeightFiles(const ReadContext& context, std::string directory)
      : context_(context), directory_(std::move(directory)) {}
  // Checks that the tensor is there with this type, in a file that lies inside the model's folder.
  void check(Json file, Json tensor, const TensorType& type, const Symbols& symbols);

 private:
  std::string locate(Json file) const;

  const ReadContext& context_;
  std::string directory_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> open_;
};

// `constant` gets data and safetensors; its value is the caller's.
Declaration read_constant(const ReadContext& context, Json at, const SymbolNames& names, WeightFiles& weights,
                          std::vector<LaunchCheck>& checks, Constant& constant);

// One element of a constant's data, rounded to the dtype (64-bit unsigned numbers as their bits).
Scalar read_element(const ReadContext& context, Json at, DType dtype);

}  // namespace fusec
