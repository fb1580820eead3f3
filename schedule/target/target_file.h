// Reads a user's own target: a JSON object that names an architecture and overrides figures of its known target
// (docs/schemas/target.schema.json).
//
//   {"fusec_target": 1, "arch": "sm_90a", "chip": "H20", "multiprocessors": 78, "bandwidth": 4.0e12,
//    "float16_rate": 148e12, "source": "our own measurements"}
#pragma once

#include <string>
#include <string_view>

#include "schedule/target/target.h"

namespace fusec {

// `file` names the text in messages. Throws Error(kInput) with a JSON pointer to the error.
Target read_target(std::string_view text, const std::string& file);

}  // namespace fusec
