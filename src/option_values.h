// What an option's value may be. CLI11's own checks tell limits and units as raw numbers and lists, and their errors
// have no parts; these throw an Error(kUsage) that names the option.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace fusec {

// Each adds its check to the option, and returns it.
CLI::Option* one_of(CLI::Option* option, std::vector<std::string> names);
CLI::Option* whole_number(CLI::Option* option, int least);
CLI::Option* seconds_of_time(CLI::Option* option);
CLI::Option* size_in_bytes(CLI::Option* option);  // "512M", becomes a number

}  // namespace fusec
