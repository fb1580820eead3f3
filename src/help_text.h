// --help in groups, fitted to the terminal.
#pragma once

namespace CLI {
class App;
}

namespace fusec {

// Gives every option its group, and the help its form. Call it when all options are there.
void arrange_help(CLI::App& app);

}  // namespace fusec
