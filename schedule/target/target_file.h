// A target of the user's own, for the cost model and for what schedules ask of it: a JSON object that names an
// architecture and says what is otherwise than on the known target of that architecture
// (docs/schemas/target.schema.json).
//
//   {"fusec_target": 1, "arch": "sm_90a", "chip": "H20", "multiprocessors": 78, "bandwidth": 4.0e12,
//    "float16_rate": 148e12, "source": "our own measurements"}
#pragma once

#include <string>
#include <string_view>

#include "schedule/target/target.h"

namespace fusec {

// `file` is what messages call the text. Throws Error(kInput) with the JSON pointer of what is wrong.
Target read_target(std::string_view text, const std::string& file);

}  // namespace fusec
