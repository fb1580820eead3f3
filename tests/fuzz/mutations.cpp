// The driver of a target with any compiler: mutate_NAME SECONDS [SEED] executes seeded mutations of its seeds.
//
// An input that crashes, throws anything but fusec::Error, takes more than 10 s of CPU or more than 2 GiB is printed;
// the exit status is then not 0. `mutate_NAME --input=FILE` executes one file.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "fusec/error.h"
#include "fuzz/mutate.h"
#include "fuzz/target.h"

namespace {

constexpr int kMostSeconds = 10;
[[maybe_unused]] constexpr rlim_t kMostBytes = rlim_t{2} << 30;
constexpr std::size_t kLongest = 8192;  // mutants that are mutated further

// What is being executed, for the signal handler: there is no other way to hand it over.
const char* current_text = nullptr;
std::size_t current_size = 0;

extern "C" void show_and_die(int signal) {
  constexpr char kMessage[] = "\nmutations: this input crashes, throws or takes too long:\n";
  if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0 || write(STDERR_FILENO, current_text, current_size) < 0)
    _exit(2);
  _exit(128 + signal);
}

void limit_memory() {
#ifndef FUSEC_SANITIZED  // sanitizers reserve terabytes of addresses
  const rlimit limit{kMostBytes, kMostBytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

// In CPU time: on a loaded machine any input may take long.
void limit_time() {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = kMostSeconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

bool execute(const std::string& text) {
  current_text = text.data();
  current_size = text.size();
  limit_time();
  try {
    return fusec::fuzzing::execute(text);
  } catch (const fusec::Error&) {
    return false;
  }
}

int execute_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const bool taken = execute({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  std::cout << (taken ? "taken\n" : "refused\n");
  return 0;
}

int mutate_for(std::chrono::seconds seconds, unsigned seed) {
  const auto end = std::chrono::steady_clock::now() + seconds;
  std::mt19937 random(seed);
  const std::vector<std::string> seeds = fusec::fuzzing::seeds();
  // Mutants that were taken are mutated further, a few generations deep.
  std::vector<std::string> pool;
  for (const std::string& text : seeds)
    if (execute(text)) pool.push_back(text);
  const std::size_t kept = pool.size();
  std::uint64_t inputs = seeds.size(), taken = kept;
  while (kept != 0 && std::chrono::steady_clock::now() < end) {
    const bool from_pool = random() % 4 != 0;
    const std::string& from = from_pool ? pool[random() % pool.size()] : seeds[random() % seeds.size()];
    std::string text = fusec::fuzzing::mutate(from, seeds, random);
    ++inputs;
    if (!execute(text)) continue;
    ++taken;
    if (text.size() > kLongest) continue;
    if (pool.size() < kept + 512)
      pool.push_back(std::move(text));
    else
      pool[kept + random() % 512] = std::move(text);
  }
  std::cout << inputs << " inputs, " << taken << " taken, no fault\n";
  if (kept == 0) std::cerr << "no seed is valid\n";
  return kept == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.empty()) {
    std::cerr << "usage: " << argv[0] << " SECONDS [SEED] | --input=FILE\n";
    return 1;
  }
  limit_memory();
  for (int signal : {SIGPROF, SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, show_and_die);
  if (first.starts_with("--input=")) return execute_file(first.substr(8));
  return mutate_for(std::chrono::seconds(std::atoi(argv[1])), argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
}
