// The emulator against the chip: the same PTX on a GPU and on the emulator, with random operands.
//
//   compare_gpu [--rounds=N] [--seed=N] [--only=TEXT] [--report=FILE]   exit 77 where there is no GPU
//   compare_gpu --self-check                                            no GPU: emulator against the host's arithmetic
//   compare_gpu --dump=FOLDER                                           every case's PTX, for ptxas
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "gpu/test_case.h"

using namespace fusec::gpu_test;

namespace {

struct Settings {
  int rounds = 4;
  std::uint32_t seed = 1;
  bool self_check = false;
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
  std::vector<TestCase> cases = scalar_cases(), matrices = matrix_cases();
  for (TestCase& made : matrices) cases.push_back(std::move(made));
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

bool compare(const std::vector<TestCase>& cases, const Settings& settings, Executor& device, Executor& emulator) {
  std::string table = fmt::format(
      "# The emulator against the chip: {}, sm_{}, {}\n\n{} rounds of seed {}.\n\n"
      "| instruction | bound | results | wrong | worst, of the bound |\n"
      "| --- | --- | ---: | ---: | ---: |\n",
      device.name(), device.capability(), today(), settings.rounds, settings.seed);
  bool good = true;
  for (const TestCase& made : cases) {
    if (device.capability() < made.capability || (made.only_sm_90a && device.capability() != 90)) {
      table += fmt::format("| `{}` | | skipped: needs sm_{} | | |\n", made.name, made.capability);
      continue;
    }
    Verdict total;
    for (int round = 0; round < settings.rounds; ++round) {
      const TestLaunch launch = made.launch(settings.seed + static_cast<std::uint32_t>(round));
      add(total, made.judge(launch, device.run(launch), emulator.run(launch), emulator));
    }
    table += fmt::format("| `{}` | {} | {} | {} | {:.3f} |\n", made.name, made.bound, total.results, total.wrong,
                         total.worst);
    if (total.wrong == 0) continue;
    good = false;
    table += fmt::format("\n{}\n\n", total.first);
  }
  std::cout << table;
  if (!settings.report.empty()) std::ofstream(settings.report) << table;
  return good;
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
    std::cerr << "usage: compare_gpu [--self-check] [--rounds=N] [--seed=N] [--only=TEXT] [--report=FILE]\n";
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
    return compare(cases, settings, *device, *emulator) ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "compare_gpu: " << error.what() << "\n";
    return 1;
  }
}
