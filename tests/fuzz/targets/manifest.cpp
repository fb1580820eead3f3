// Models, compiled under every strategy: whatever is emitted as JSON (manifest, partition, plan, report) is JSON to the
// strict reader, and the plan is one that fusec takes back.
#include "fusec/fusec.h"
#include "fuzz/seed_files.h"
#include "fuzz/target.h"
#include "ir/json_document.h"

namespace fusec::fuzzing {

bool execute(std::string_view input) {
  const Model model = Model::parse(input, "");
  for (const char* strategy : {"none", "tvm", "full"}) {
    const Compilation made = compile(model, {.strategy = strategy, .report = true});
    JsonDocument::parse(made.manifest, "manifest");
    JsonDocument::parse(made.partition, "partition");
    JsonDocument::parse(made.report, "report");
    compile(model, {.strategy = strategy, .plan = made.plan});
  }
  return true;
}

std::vector<std::string> seeds() {
  return files_of("tests/golden", ".json", 700);  // each is compiled six times
}

}  // namespace fusec::fuzzing
