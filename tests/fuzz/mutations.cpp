// Seeded mutations of the seeds for a given time, with any compiler:
//
//   fuzz_mutations SEEDS SECONDS [SEED]
//
// A crash or an execution that hangs prints the text that caused it; the exit status is then not 0.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "fuzz/execute.h"
#include "fuzz/mutate.h"

namespace {

constexpr unsigned kHangSeconds = 30;

// What is being executed, for the signal handler: there is no other way to hand it over.
const char* current_text = nullptr;
std::size_t current_size = 0;

extern "C" void show_and_die(int signal) {
  constexpr char kMessage[] = "\nfuzz_mutations: died or hung (30 s) on this text:\n";
  if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0 || write(STDERR_FILENO, current_text, current_size) < 0)
    _exit(2);
  _exit(128 + signal);
}

std::vector<std::string> read_seeds(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

int execute(const std::string& text) {
  current_text = text.data();
  current_size = text.size();
  alarm(kHangSeconds);
  return fusec::emulator::fuzzing::execute_ptx(text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: fuzz_mutations SEEDS SECONDS [SEED]\n";
    return 1;
  }
  for (int signal : {SIGALRM, SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, show_and_die);
  const std::vector<std::string> seeds = read_seeds(argv[1]);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  std::mt19937 random(argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1);
  for (const std::string& seed : seeds) {
    if (execute(seed) != 0) continue;
    std::cerr << "a seed does not run:\n" << seed;
    return 1;
  }
  // Mutants that ran are mutated further, a few generations deep.
  std::vector<std::string> pool = seeds;
  std::uint64_t texts = 0, kernels = 0;
  while (!seeds.empty() && std::chrono::steady_clock::now() < end) {
    const std::string text = fusec::emulator::fuzzing::mutate(pool[random() % pool.size()], seeds, random);
    const int ran = execute(text);
    ++texts;
    kernels += static_cast<std::uint64_t>(ran);
    if (ran == 0 || text.size() > 8192) continue;
    if (pool.size() < 512)
      pool.push_back(text);
    else
      pool[seeds.size() + random() % (pool.size() - seeds.size())] = text;
  }
  std::cout << texts << " texts, " << kernels << " kernels ran, no crash\n";
  return texts == 0 || kernels == 0 ? 1 : 0;
}
