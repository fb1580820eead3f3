// What an optional attribute is where a node leaves it out, for lists and documentation. The rows of ir/ops/ apply
// these values; tests/check_defaults.py shows that giving one compiles to the same kernel as leaving it out.
#pragma once

#include <string_view>

namespace fusec {

struct AttributeDefault {
  std::string_view value;    // JSON, as a file would give it; empty where no one value says the same
  std::string_view meaning;  // then: what an absent attribute means
};

// Both are empty where nothing is known of the attribute.
AttributeDefault attribute_default(std::string_view op, std::string_view attribute);

}  // namespace fusec
