#include "codegen/launch/emit_options.h"

namespace fusec {

std::vector<std::string> requested_numerics(const EmitOptions& options) {
  std::vector<std::string> names;
  if (options.round_intermediates) names.emplace_back("round-intermediates");
  if (options.numerics.precise_math) names.emplace_back("precise-math");
  if (options.numerics.allow_tf32) names.emplace_back("allow-tf32");
  if (options.numerics.allow_atomics) names.emplace_back("allow-atomics");
  return names;
}

}  // namespace fusec
