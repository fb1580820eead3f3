// Parses declarations of variables: state space, alignment, type, extents, initial values.
#pragma once

#include <optional>
#include <vector>

#include "runtime/emulator/ptx_module.h"
#include "runtime/emulator/ptx_token_reader.h"

namespace fusec::emulator {

std::optional<Space> accept_variable_space(TokenReader& in);
// Parses what follows the state space: `.align 4 .b8 name[16] = {...}, other;`
std::vector<PtxVariable> parse_variables(TokenReader& in, Space space, bool is_extern);
// Parses what follows `.param` in a list of parameters.
PtxVariable parse_parameter(TokenReader& in);

}  // namespace fusec::emulator
