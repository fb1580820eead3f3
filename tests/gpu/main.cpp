// The emulator against the chip: the same PTX on a GPU and on the emulator, with random operands.
//
//   compare_gpu [--rounds=N] [--seed=N] [--only=TEXT] [--report=FILE]   exit 77 where there is no GPU
//   compare_gpu --rows [--skip=N] ...                                   rows as JSON, for bench/gpu/watchdog.py
//   compare_gpu --self-check                                            no GPU: emulator against the host's arithmetic
//   compare_gpu --dump=FOLDER                                           every case's PTX, for ptxas
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "gpu/test_case.h"

using namespace fusec::gpu_test;

namespace {

constexpr int kStartAgain = 3;  // the exit status with --rows after a case that failed

struct Settings {
  int rounds = 4;
  std::uint32_t seed = 1;
  std::size_t skip = 0;
  bool self_check = false, rows = false;
  std::string only, report, dump;
};

bool parse(int argc, char** argv, Settings& settings) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "--self-check")
      settings.self_check = true;
    else if (name == "--rows")
      settings.rows = true;
    else if (name == "--skip")
      settings.skip = static_cast<std::size_t>(std::max(0, std::atoi(value.c_str())));
    else if (name == "--rounds")
      settings.rounds = std::max(1, std::atoi(value.c_str()));
    else if (name == "--seed")
      settings.seed = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    else if (name == "--only")
      settings.only = value;
    else if (name == "--report")
      settings.report = value;
    else if (name == "--dump")
      settings.dump = value;
    else
      return false;
  }
  return true;
}

std::vector<TestCase> chosen_cases(const std::string& only) {
  std::vector<TestCase> cases = matrix_cases(), scalars = scalar_cases();
  std::stable_partition(cases.begin(), cases.end(),
                        [](const TestCase& made) { return made.only_sm_90a; });  // wgmma first
  for (TestCase& made : scalars) cases.push_back(std::move(made));
  std::erase_if(cases, [&only](const TestCase& made) { return made.name.find(only) == std::string::npos; });
  return cases;
}

void add(Verdict& total, const Verdict& part) {
  total.results += part.results;
  total.wrong += part.wrong;
  total.worst = std::max(total.worst, part.worst);
  if (total.first.empty()) total.first = part.first;
}

// Emulator against the model where there is one; and that a result which is wrong is found.
bool self_check(const std::vector<TestCase>& cases, const Settings& settings, Executor& emulator) {
  bool good = true;
  std::uint64_t results = 0, modelled = 0;
  for (const TestCase& made : cases) {
    const TestLaunch launch = made.launch(settings.seed);
    const std::vector<std::uint32_t> emulated = emulator.run(launch);
    std::vector<std::uint32_t> other = made.model ? made.model(launch) : emulated;
    Verdict verdict = made.judge(launch, other, emulated, emulator);
    results += verdict.results;
    if (made.model) modelled += verdict.results;
    for (std::size_t i = 0; i < 16; ++i) other[(other.size() / 16 * i) & ~std::size_t{1}] ^= 0x40004000u;
    const bool notices = made.judge(launch, other, emulated, emulator).wrong > verdict.wrong;
    if (verdict.wrong == 0 && notices) continue;
    good = false;
    std::cout << fmt::format("{}: {} of {} wrong{}; {}\n", made.name, verdict.wrong, verdict.results,
                             notices ? "" : ", and a planted error is not noticed", verdict.first);
  }
  std::cout << fmt::format("self-check: {} cases, {} results, {} of them against the host's arithmetic: {}\n",
                           cases.size(), results, modelled, good ? "good" : "BAD");
  return good;
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%d", std::gmtime(&now));
  return text;
}

// Where rows go as they come: standard output, and a report.
class Rows {
 public:
  explicit Rows(const std::string& report) {
    if (!report.empty()) file_.open(report);
  }
  void add(const std::string& text) {
    std::cout << text << std::flush;
    if (file_.is_open()) file_ << text << std::flush;
  }

 private:
  std::ofstream file_;
};

std::string quoted(std::string text) {
  for (char& c : text)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '\'';
  return '"' + text + '"';
}

std::string json_row(const TestCase& made, const Verdict& v) {
  return fmt::format("{{\"name\": {}, \"results\": {}, \"wrong\": {}, \"worst\": {:.3f}, \"first\": {}}}\n",
                     quoted(made.name), v.results, v.wrong, v.worst, quoted(v.first));
}

std::string table_row(const TestCase& made, const Verdict& v) {
  const std::string row =
      fmt::format("| `{}` | {} | {} | {} | {:.3f} |\n", made.name, made.bound, v.results, v.wrong, v.worst);
  return v.wrong == 0 ? row : row + fmt::format("\n{}\n\n", v.first);
}

// The cases from settings.skip on. A case that throws is a row too. With --rows the program ends there, since the
// device may be unusable from then on, and the caller starts it again with --skip.
int compare(const std::vector<TestCase>& cases, const Settings& settings, Executor& device, Executor& emulator) {
  Rows rows(settings.report);
  if (!settings.rows)
    rows.add(
        fmt::format("# The emulator against the chip: {}, sm_{}, {}\n\n{} rounds of seed {}.\n\n"
                    "| instruction | bound | results | wrong | worst, of the bound |\n"
                    "| --- | --- | ---: | ---: | ---: |\n",
                    device.name(), device.capability(), today(), settings.rounds, settings.seed));
  bool good = true;
  for (std::size_t i = settings.skip; i < cases.size(); ++i) {
    const TestCase& made = cases[i];
    if (settings.rows) rows.add(fmt::format("{{\"begins\": {}}}\n", quoted(made.name)));
    if (device.capability() < made.capability || (made.only_sm_90a && device.capability() != 90)) {
      rows.add(settings.rows
                   ? fmt::format("{{\"name\": {}, \"skipped\": \"needs sm_{}\"}}\n", quoted(made.name), made.capability)
                   : fmt::format("| `{}` | | skipped: needs sm_{} | | |\n", made.name, made.capability));
      continue;
    }
    try {
      Verdict total;
      for (int round = 0; round < settings.rounds; ++round) {
        const TestLaunch launch = made.launch(settings.seed + static_cast<std::uint32_t>(round));
        add(total, made.judge(launch, device.run(launch), emulator.run(launch), emulator));
      }
      rows.add(settings.rows ? json_row(made, total) : table_row(made, total));
      good = good && total.wrong == 0;
    } catch (const std::exception& error) {
      good = false;
      if (!settings.rows)
        rows.add(fmt::format("| `{}` | {} | failed: {} | | |\n", made.name, made.bound, error.what()));
      if (!settings.rows) continue;
      rows.add(fmt::format("{{\"name\": {}, \"failed\": {}}}\n", quoted(made.name), quoted(error.what())));
      return kStartAgain;
    }
  }
  return good ? 0 : 1;
}

void dump(const std::vector<TestCase>& cases, const std::string& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const TestCase& made : cases) {
    const TestLaunch launch = made.launch(1);
    std::ofstream(std::filesystem::path(folder) /
                  fmt::format("{:03}_sm_{}{}.ptx", number++, made.capability, made.only_sm_90a ? "a" : ""))
        << launch.ptx;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (!parse(argc, argv, settings)) {
    std::cerr << "usage: compare_gpu [--self-check] [--rounds=N] [--seed=N] [--only=TEXT] [--report=FILE] [--rows] "
                 "[--skip=N]\n";
    return 1;
  }
  try {
    const std::vector<TestCase> cases = chosen_cases(settings.only);
    const std::unique_ptr<Executor> emulator = emulator_executor();
    if (!settings.dump.empty()) {
      dump(cases, settings.dump);
      return 0;
    }
    if (settings.self_check) return self_check(cases, settings, *emulator) ? 0 : 1;
    const std::unique_ptr<Executor> device = cuda_executor();
    if (device == nullptr) {
      std::cout << "skipped: no CUDA device\n";
      return 77;
    }
    return compare(cases, settings, *device, *emulator);
  } catch (const std::exception& error) {
    std::cerr << "compare_gpu: " << error.what() << "\n";
    return 1;
  }
}
