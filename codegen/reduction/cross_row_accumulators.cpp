#include "codegen/reduction/cross_row_accumulators.h"

#include <fmt/format.h>

#include "codegen/reduction/row_partials.h"

namespace fusec {

CrossRowAccumulators::CrossRowAccumulators(const CrossRowReduction& cross_row, KernelWriter& writer)
    : cross_row_(cross_row), writer_(writer) {
  ExprEmitter of_columns(cross_row.columns.kernel, writer);
  for (const ExprId r : cross_row.columns.reductions) results_.push_back(of_columns.accumulator(r));
}

void CrossRowAccumulators::declare(int iterations, int width) {
  iterations_ = iterations;
  width_ = width;
  std::string names, begin;
  for (const ExprEmitter::Accumulator& a : results_) {
    names += fmt::format("{}{}[{}]", names.empty() ? "" : ", ", a.name, iterations * width);
    begin += fmt::format("{}{}[i] = {}", begin.empty() ? "" : ", ", a.name, a.identity);
  }
  writer_.line("float {};  // of this thread's columns", names);
  writer_.line("#pragma unroll");
  writer_.line("for (int i = 0; i < {}; ++i) {};", iterations * width, begin);
}

void CrossRowAccumulators::take(const std::string& place, const std::vector<std::string>& values) {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const ExprEmitter::Accumulator& a = results_[i];
    const std::string here = fmt::format("{}[{}]", a.name, place);
    if (a.combine == "Sum{}") {
      writer_.line("{} += {};", here, values[i]);
    } else {
      writer_.use("combine");
      writer_.line("{0} = {1}({0}, {2});", here, a.combine, values[i]);
    }
  }
}

void CrossRowAccumulators::store_accumulators(const std::string& part) {
  const RowLayout& layout = cross_row_.layout;
  const bool several = layout.rows > 1;
  if (several) {
    join_warps(part);
    writer_.open("if (threadIdx.x < 32)");
  }
  for (const ExprEmitter::Accumulator& a : results_) store_line(a, part);
  if (several) writer_.close();
}

std::int64_t CrossRowAccumulators::shared_bytes() const {
  return cross_row_.layout.rows > 1 ? std::int64_t{4} * (cross_row_.layout.rows / 2) * 32 * iterations_ * width_ : 0;
}

// Tree reduction: in each step, the second half of the warps passes its results to the first half.
void CrossRowAccumulators::join_warps(const std::string& lane) {
  writer_.use("combine");
  const int warps = cross_row_.layout.rows, of_warp = 32 * iterations_ * width_;
  const std::string places = writer_.unique("of_warps"), half = writer_.unique("half"), warp = writer_.unique("warp"),
                    mine = writer_.unique("mine");
  writer_.use("dynamic_shared");
  writer_.line("float* const {} = (float*)dynamic_shared;", places);
  writer_.line("const int {} = threadIdx.x / 32;", warp);
  const auto over_elements = [&](const std::string& statement) {
    writer_.line("#pragma unroll");
    writer_.line("for (int i = 0; i < {}; ++i) {}", iterations_ * width_, statement);
  };
  for (const ExprEmitter::Accumulator& a : results_) {
    writer_.open("for (int {0} = {1}; {0} > 0; {0} /= 2)", half, warps / 2);
    writer_.line("float* const {} = {} + {} % {} * {} + {};", mine, places, warp, half, of_warp, lane);
    writer_.open("if ({0} >= {1} && {0} < 2 * {1})", warp, half);
    over_elements(fmt::format("{}[i * 32] = {}[i];", mine, a.name));
    writer_.close();
    writer_.line("__syncthreads();");
    writer_.open("if ({} < {})", warp, half);
    over_elements(fmt::format("{0}[i] = {1}({0}[i], {2}[i * 32]);", a.name, a.combine, mine));
    writer_.close();
    writer_.line("__syncthreads();");
    writer_.close();
  }
}

void CrossRowAccumulators::store_line(const ExprEmitter::Accumulator& a, const std::string& part) {
  const ExprPool& pool = cross_row_.columns.kernel.pool;
  const std::int64_t length = *pool.extent(cross_row_.columns.rows[0]).as_constant();
  const std::string line = row_partials(writer_, cross_row_.columns, a, IndexExpr(length) * cross_row_.layout.blocks);
  const std::string column = writer_.unique("column");
  writer_.open_unrolled("turn", iterations_);
  writer_.line("const int {} = ({} + turn * {}){};", column, part, cross_row_.layout.parts,
               width_ > 1 ? fmt::format(" * {}", width_) : "");
  const bool whole = length % (std::int64_t{cross_row_.layout.parts} * width_) == 0;
  if (!whole) writer_.open("if ({} < {})", column, length);
  const std::string place = fmt::format("{}[blockIdx.x * {} + {}]", line, length, column);
  if (width_ == 1) {
    writer_.line("{} = {}[turn];", place, a.name);
  } else {
    writer_.use("words");
    writer_.line("Words<{}> words;", width_);
    writer_.line("#pragma unroll");
    writer_.line("for (int e = 0; e < {0}; ++e) words.w[e] = __float_as_uint({1}[turn * {0} + e]);", width_, a.name);
    writer_.line("store_words(&{}, words);", place);
  }
  if (!whole) writer_.close();
  writer_.close();
}

}  // namespace fusec
