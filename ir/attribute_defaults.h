// Default values of optional attributes, for lists and documentation. The op rows in ir/ops/ apply the defaults
// themselves; tests/check_defaults.py shows that writing a default out compiles to the same kernel as omitting it.
#pragma once

#include <string_view>

namespace fusec {

struct AttributeDefault {
  std::string_view value;    // JSON, as a model file writes it; empty when the default is not one fixed value
  std::string_view meaning;  // in words what an absent attribute means; set only when `value` is empty
};

// Both fields are empty for an attribute that is not listed.
AttributeDefault attribute_default(std::string_view op, std::string_view attribute);

}  // namespace fusec
