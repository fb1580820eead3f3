#include "codegen/expr/compile_time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace fusec {
namespace {

constexpr double kAnyKernel = 38, kToken = 0.0122;  // kToken: per token of the text, outside of unrolling too
// Per occurrence after unrolling. kDivision: division by a variable.
constexpr double kOneOperator = 0.01, kDivision = 0.8, kLoop = 5.2, kCall = 0.2, kDoubles = 2.4;
// Factor on large functions in a kernel with warpgroup registers.
constexpr double kWithWarpgroups = 1.6;
constexpr std::string_view kOfWarpgroup = "multiply_warpgroup_";

constexpr LargeFunction kLargeFunctions[] = {
    {"sinf", 12},
    {"cosf", 12},
    {"tanf", 11},
    {"powf", 5.2, 2},
    {"fmodf", 9.5, 2},
    {"atan2f", 4, 2},
    {"asinhf", 4},
    {"acoshf", 4.2},
    {"atanhf", 3.7},
    {"log2f", 2.4},
    {"log10f", 2.4},
    {"logf", 2.1},
    {"log1pf", 1.9},
    {"expm1f", 2.3},
    {"erff", 2.3},
    {"tanhf", 1.2},
    {"sinhf", 1.9},
    {"coshf", 1.3},
    {"asinf", 1.9},
    {"acosf", 1.9},
    {"atanf", 1.9},
    {"expf", 0.9},
    {"float_floor_mod", 9, 2},
};

// Prelude functions by name prefix, with the code around a call. `by_last`: times the last template argument.
struct OfPrelude {
  std::string_view name;
  double ms;
  bool by_last = false;
};
constexpr OfPrelude kOfPrelude[] = {
    {"interleaved_reduce", 27},  // rows
    {"reduce_pieces", 15},
    {"rotate_rows", 8},
    {"stage_unaligned", 50},
    {"column_reduce", 4},
    {"block_reduce", 1},
    {"load_words", 1.4},
    {"multiply_lanes", 4.1, true},  // GEMMs: per column
    {"sync_cluster", 36},
    {"signal_written", 64},  // a warpgroup that computes an operand
    {"copy_piece", 2.4},
    {"gather_one", 0.5},
    {"widened", 0.9},  // one piece of quantized values
    {"scaled_powers", 14},
    {"stage_sums", 4.8},        // epilogue of a GEMM
    {"stage_part", 3.6, true},  // epilogue of a warpgroup: per part
    {"stage_few_sums", 11},
    {"store_split_k", 26},
    {"less_", 5},
    {"e4m3_element", 0.45},
    {"from_e8m0", 0.2},
    {"from_fp4_e2m1", 0.8},
    {"bf16_of_e8m0", 20},
    {"find_group", 24},
    {"one_plus_erf", 1.2},
    {"sigmoid", 0.3},
    {"softplus", 0.6},
    {"expm1_fast", 0.5},
    {"tanh_of_softplus", 2},
    {"to_fp8", 2.5},
    {"rintf", 1.5},
    {"sqrtf", 0.5},
    {"__syncthreads", 10.3},
};

// What a character may be. Each character of each kernel is looked up.
enum : std::uint8_t { kSpace = 1, kCodeWord = 2, kOperator = 4, kBrace = 8 };
constexpr auto kMeaning = [] {
  std::array<std::uint8_t, 256> meaning{};
  const auto add = [&](std::string_view members, std::uint8_t bit) {
    for (const char c : members) meaning[static_cast<unsigned char>(c)] |= bit;
  };
  add(" ", kSpace);
  add("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_@", kCodeWord);
  add("-+*/%<>=?&|^[(", kOperator);
  add("{}", kBrace);
  return meaning;
}();

std::uint8_t meaning_of(char c) {
  return kMeaning[static_cast<unsigned char>(c)];
}

bool is_code_word(char c) {
  return (meaning_of(c) & kCodeWord) != 0;
}

// The value of a product of numbers, such as "8 * 4" or "8"; nothing for any other text.
std::optional<double> number_of(std::string_view text) {
  double product = 1;
  while (true) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    int factor = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
    if (error != std::errc()) return std::nullopt;
    product *= factor;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text.empty()) return product;
    if (!text.starts_with('*')) return std::nullopt;
    text.remove_prefix(1);
  }
}

// The trip count of `for (int i = 0; i < 8; ++i)` or `i += 2` with constant bounds, or of a loop that starts at a
// thread's index.
std::optional<double> trip_count(std::string_view line) {
  const std::size_t assign = line.find(" = "), first = line.find(';');
  const std::size_t second = first == std::string_view::npos ? first : line.find(';', first + 1);
  const std::size_t less = line.find(" < ", first);
  if (assign > first || second == std::string_view::npos || less > second) return std::nullopt;
  std::optional<double> from = number_of(line.substr(assign + 3, first - assign - 3));
  if (line.substr(assign + 3).starts_with("threadIdx.x;")) from = 0;
  const auto to = number_of(line.substr(less + 3, second - less - 3));
  const std::size_t step = line.find("+= ", second);
  std::optional<double> by = 1;
  if (step != std::string_view::npos) by = number_of(line.substr(step + 3, line.find(')', step) - step - 3));
  if (!from || !to || !by || *by == 0) return std::nullopt;
  return std::max(0.0, (*to - *from) / *by);
}

// The factor of `#pragma unroll`, 0 for full unrolling; nothing for other lines.
std::optional<double> unrolled_by(std::string_view line) {
  constexpr std::string_view kUnroll = "#pragma unroll";
  const std::size_t at = line.find(kUnroll);
  if (at == std::string_view::npos) return std::nullopt;
  return number_of(line.substr(at + kUnroll.size())).value_or(0);
}

double ms_of_prelude(std::string_view name, std::string_view behind) {
  const auto* const found = std::ranges::find_if(
      kOfPrelude, [&](const auto& f) { return f.name.front() == name.front() && name.starts_with(f.name); });
  if (found == std::end(kOfPrelude)) return 0;
  if (!found->by_last) return found->ms;
  const std::string_view arguments = behind.substr(0, behind.find('>'));
  return found->ms * number_of(arguments.substr(arguments.find_last_of(",<") + 1)).value_or(1);
}

// The name in `const auto make_x = [&](int each) {`; "" for other lines.
std::string_view lambda_of(std::string_view line) {
  constexpr std::string_view kBefore = "const auto ", kBehind = " = [&]";
  if (!line.ends_with('{')) return "";
  const std::size_t first = line.find(kBefore), last = line.find(kBehind);
  if (first == std::string_view::npos || last == std::string_view::npos) return "";
  return line.substr(first + kBefore.size(), last - first - kBefore.size());
}

void add(CompileTime& time, const CompileTime& called, double times) {
  time.ms += times * called.ms;
  time.calls += times * called.calls;
  for (const auto& [name, copies] : called.copies) time.copies[name] += times * copies;
}

struct Counts {
  unsigned tokens = 0;  // words count as one token, other characters one each
  unsigned operators = 0;
  unsigned divisions = 0;  // by a variable
  bool has_brace = false;
};

bool divides_by_variable(std::string_view line, std::size_t at) {
  if (line[at] != '/' && line[at] != '%') return false;
  const std::size_t by = line.find_first_not_of(" (", at + 1);
  return by != std::string_view::npos && is_code_word(line[by]) &&
         std::isdigit(static_cast<unsigned char>(line[by])) == 0;
}

Counts counts_in(std::string_view line) {
  Counts counts;
  unsigned before = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const unsigned meaning = meaning_of(line[i]);
    if ((meaning & kSpace) == 0 && (meaning & before & kCodeWord) == 0) ++counts.tokens;
    before = meaning;
    if ((meaning & (kOperator | kBrace)) == 0) continue;
    if ((meaning & kBrace) != 0) counts.has_brace = true;
    if ((meaning & kOperator) != 0) ++counts.operators;
    if (divides_by_variable(line, i)) ++counts.divisions;
  }
  return counts;
}

// "e" in `for (int e = 0; `.
std::string_view variable_of(std::string_view line) {
  const std::size_t last = line.find(" = "), first = line.rfind(' ', last - 1);
  return last == std::string_view::npos || first == std::string_view::npos ? ""
                                                                           : line.substr(first + 1, last - first - 1);
}

// The divisor for the body of `if (slice == 0) {` in an unrolled loop over `slice`: the loop's repetitions, because the
// body remains in one of them. 1 for other lines.
double skipped_iterations(std::string_view line, const std::map<std::string_view, double>& loops) {
  constexpr std::string_view kIf = "if (", kIs = " == ";
  if (loops.empty() || !line.ends_with('{')) return 1;
  const std::size_t first = line.find(kIf), last = line.find(kIs);
  if (first == std::string_view::npos || last == std::string_view::npos || first + kIf.size() > last) return 1;
  const auto loop = loops.find(line.substr(first + kIf.size(), last - first - kIf.size()));
  return loop == loops.end() ? 1 : loop->second;
}

// Reads a kernel's text line by line and adds up its cost.
class TextTime {
 public:
  void read(std::string_view line);
  CompileTime finish();

 private:
  double copies_of_loop(std::string_view line, double around);
  void add_calls(std::string_view line, double here);
  void close_lambda();

  struct Lambda {
    std::string_view name;
    std::size_t depth;   // of its braces
    CompileTime around;  // cost of the text before it
  };
  CompileTime time_{.ms = kAnyKernel};
  double tokens_ = 0;
  bool of_warpgroups_ = false;
  std::vector<double> times_ = {1};           // per open brace: how often its content is repeated
  std::optional<double> unrolled_;            // factor from the line before; 0: fully
  std::map<std::string_view, double> loops_;  // unrolled loops: variable -> repetitions
  std::vector<Lambda> open_;
  std::map<std::string_view, CompileTime> lambdas_;
};

// The number of copies of a loop body if the previous line unrolls the loop; else 1. An unknown trip count adds one
// copy, for the remainder loop.
double TextTime::copies_of_loop(std::string_view line, double around) {
  const std::optional<double> by = std::exchange(unrolled_, std::nullopt);
  if (line.find("for (") == std::string_view::npos) return 1;
  if (!by) time_.ms += kLoop * around;
  if (!by) return 1;
  const std::optional<double> iterations = trip_count(line);
  const double left_over = *by > 1 && !iterations ? 1 : 0;
  const double copies = *by == 0 ? iterations.value_or(1) : std::min(*by, iterations.value_or(*by)) + left_over;
  loops_[variable_of(line)] = copies;
  return copies;
}

void TextTime::add_calls(std::string_view line, double here) {
  for_each_call(line, [&](std::size_t first, std::size_t last) {
    const std::string_view word = line.substr(first, last - first);
    if (const auto lambda = lambdas_.find(word); lambda != lambdas_.end()) return add(time_, lambda->second, here);
    if (word.starts_with("@KERNEL@_") && !word.starts_with("@KERNEL@_part")) {
      time_.calls += here;
      time_.ms += kCall * here;
    }
    of_warpgroups_ = of_warpgroups_ || word.starts_with(kOfWarpgroup);
    const auto called = large_function(word);
    time_.ms += here * (called ? called->ms() : ms_of_prelude(word, line.substr(last)));
    if (called) time_.copies.try_emplace(std::string(word), 0).first->second += here;
  });
}

void TextTime::close_lambda() {
  lambdas_[open_.back().name] = std::exchange(time_, std::move(open_.back().around));
  open_.pop_back();
}

void TextTime::read(std::string_view line) {
  if (const auto by = unrolled_by(line)) {
    unrolled_ = by;
    return;
  }
  const Counts counts = counts_in(line);
  tokens_ += counts.tokens;
  const double around = times_.back() / skipped_iterations(line, loops_), here = around * copies_of_loop(line, around);
  if (const std::string_view name = lambda_of(line); !name.empty()) {
    open_.push_back({name, times_.size(), std::exchange(time_, {})});
    times_.push_back(1);
    return;
  }
  add_calls(line, here);
  time_.ms += (kOneOperator * counts.operators + kDivision * counts.divisions) * here;
  if (!counts.has_brace) return;
  for (const char c : line) {
    if (c == '{') times_.push_back(here);
    if (c == '}' && times_.size() > 1) times_.pop_back();
    if (!open_.empty() && times_.size() == open_.back().depth) close_lambda();
  }
}

CompileTime TextTime::finish() {
  time_.ms += kToken * tokens_;
  for (const auto& [name, copies] : time_.copies)
    if (of_warpgroups_) time_.ms += (kWithWarpgroups - 1) * copies * large_function(name)->ms();
  return std::move(time_);
}

}  // namespace

double CalledFunction::ms() const {
  return function->ms * (is_double ? kDoubles : 1);
}

std::optional<CalledFunction> large_function(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (const LargeFunction& f : kLargeFunctions) {
    if (name.front() != f.name.front()) continue;
    if (name == f.name) return CalledFunction{&f, false};
    if (f.name.ends_with('f') && name == f.name.substr(0, f.name.size() - 1)) return CalledFunction{&f, true};
  }
  return std::nullopt;
}

void for_each_call(std::string_view text, const std::function<void(std::size_t, std::size_t)>& visit) {
  for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1)) {
    std::size_t last = at;
    if (last > 0 && text[last - 1] == '>') {
      int open = 0;
      do {
        --last;
        open += text[last] == '>' ? 1 : text[last] == '<' ? -1 : 0;
      } while (last > 0 && open > 0);
    }
    std::size_t first = last;
    while (first > 0 && is_code_word(text[first - 1])) --first;
    if (first < last) visit(first, last);
  }
}

CompileTime compile_time(std::string_view text) {
  TextTime read;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    read.read(line.substr(0, std::min(line.find("//"), line.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return read.finish();
}

}  // namespace fusec
