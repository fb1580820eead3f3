// The header files of the stand-in for the CUDA runtime; the build embeds them from runtime/host_part/stand_in/.
#pragma once

#include <span>
#include <string_view>

namespace fusec {

struct StandInHeader {
  std::string_view name, text;
};

std::span<const StandInHeader> stand_in_headers();

}  // namespace fusec
