// Memory runs out inside the library: fail_allocation PLACES MODEL...
//
// A run reads a model, compiles it under every strategy and keeps the results. At PLACES allocations, spread evenly
// over a run, memory runs out: for that allocation alone, and for it and all that follow. Each time the run must end
// with fusec::Error, std::bad_alloc or the right results, leave nothing allocated, and leave the library able to make
// the right results. At a tenth of the places this is done in a fresh process, where nothing is initialized yet.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "fusec/fusec.h"

namespace {

// One thread: without NVRTC the library starts none.
struct Heap {
  std::uint64_t allocations = 0, live = 0;
  std::uint64_t failing = ~std::uint64_t{0};  // the number of the allocation that fails
  bool and_later = false;                     // those that follow it, too
};
Heap heap;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  const std::uint64_t number = heap.allocations++;
  if (number == heap.failing || (heap.and_later && number > heap.failing)) return nullptr;
  bytes = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* const block = std::aligned_alloc(alignment, bytes);
  heap.live += block != nullptr;
  return block;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* const block = allocate(bytes, alignment)) return block;
  throw std::bad_alloc();
}

void release(void* block) noexcept {
  heap.live -= block != nullptr;
  std::free(block);
}

constexpr std::size_t kAligned = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t n) {
  return allocate_or_throw(n, kAligned);
}
void* operator new[](std::size_t n) {
  return allocate_or_throw(n, kAligned);
}
void* operator new(std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, static_cast<std::size_t>(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, kAligned);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, kAligned);
}
void operator delete(void* p) noexcept {
  release(p);
}
void operator delete[](void* p) noexcept {
  release(p);
}
void operator delete(void* p, std::size_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  release(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  release(p);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  release(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  release(p);
}

namespace {

// What the library returns, as one text. Nothing but the text outlives the call.
std::string results(const std::string& json) {
  constexpr std::string_view kReported = "full";
  const fusec::Model model = fusec::Model::parse(json);
  std::string text = model.to_json() + model.to_text();
  for (const char* strategy : {"none", "tvm", "full"}) {
    const fusec::Compilation made = fusec::compile(model, {.strategy = strategy, .report = strategy == kReported});
    text += made.source + made.manifest + made.partition + made.plan + made.report;
  }
  return text;
}

std::uint64_t allocations_of(const std::string& json) {
  const std::uint64_t before = heap.allocations;
  results(json);
  return heap.allocations - before;
}

enum class Outcome { kRefused, kResults, kOther };

// A run in which memory runs out `after` so many allocations.
Outcome run_out(const std::string& json, std::uint64_t after, bool and_later, const std::string& right) {
  Outcome outcome = Outcome::kOther;
  heap.and_later = and_later;
  heap.failing = heap.allocations + after;
  try {
    const std::string made = results(json);
    if (right.empty() || made == right) outcome = Outcome::kResults;
  } catch (const fusec::Error&) {
    outcome = Outcome::kRefused;
  } catch (const std::bad_alloc&) {
    outcome = Outcome::kRefused;
  } catch (...) {  // reported below
  }
  heap.failing = ~std::uint64_t{0};
  heap.and_later = false;
  return outcome;
}

struct Place {
  std::string model;
  std::uint64_t after = 0;
  bool and_later = false;
};

bool report(const Place& place, const char* what) {
  std::printf("%s: %s when memory runs out at allocation %llu%s\n", place.model.c_str(), what,
              static_cast<unsigned long long>(place.after), place.and_later ? " and later ones" : "");
  return false;
}

bool holds_when_warm(const Place& place, const std::string& json, const std::string& right) {
  const std::uint64_t live = heap.live;
  const Outcome outcome = run_out(json, place.after, place.and_later, right);
  if (heap.live != live) return report(place, "a leak");
  if (outcome == Outcome::kOther) return report(place, "a wrong result or exception");
  if (place.after % 16 == 0 && results(json) != right) return report(place, "a wrong result afterwards");
  return true;
}

// What a run is in a process in which no model was compiled before.
struct ColdRun {
  std::uint64_t allocations = 0;
  std::size_t hash = 0;  // of its results
};

std::size_t hash_of(const std::string& text) {
  return std::hash<std::string_view>()(text);
}

ColdRun cold_run(const std::string& json) {
  ColdRun run;
  int ends[2];
  if (pipe(ends) != 0) return run;
  const pid_t child = fork();
  if (child == 0) {
    run.hash = hash_of(results(json));
    run.allocations = heap.allocations;
    _exit(write(ends[1], &run, sizeof run) == sizeof run ? 0 : 1);
  }
  if (read(ends[0], &run, sizeof run) != sizeof run) run = {};
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  return run;
}

bool holds_when_cold(const Place& place, const std::string& json, std::size_t right) {
  const pid_t child = fork();
  if (child == 0) {
    const bool clean = run_out(json, place.after, place.and_later, "") != Outcome::kOther;
    _exit(clean && hash_of(results(json)) == right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 || report(place, "a crash, or a wrong result or exception, in a fresh process");
}

std::vector<Place> spread(const std::string& model, std::uint64_t allocations, std::uint64_t places) {
  std::vector<Place> list;
  for (std::uint64_t i = 0; i < places; ++i)
    list.push_back({.model = model, .after = i * allocations / places, .and_later = i % 2 != 0});
  return list;
}

std::string text_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("usage: %s PLACES MODEL...\n", argv[0]);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const std::uint64_t places = std::strtoull(argv[1], nullptr, 10) / static_cast<std::uint64_t>(argc - 2);
  int faults = 0;
  for (int i = 2; i < argc; ++i) {
    const std::string json = text_of(argv[i]);
    const ColdRun cold = cold_run(json);
    for (const Place& place : spread(argv[i], cold.allocations, places / 10 + 1))
      faults += !holds_when_cold(place, json, cold.hash);
  }
  for (int i = 2; i < argc; ++i) {
    const std::string json = text_of(argv[i]);
    const std::string right = results(json);
    const std::uint64_t allocations = allocations_of(json);
    for (const Place& place : spread(argv[i], allocations, places)) faults += !holds_when_warm(place, json, right);
    std::printf("%s: %llu allocations, memory ran out at %llu of them\n", argv[i],
                static_cast<unsigned long long>(allocations), static_cast<unsigned long long>(places));
  }
  return faults == 0 ? 0 : 1;
}
