#include <fmt/format.h>

#include <algorithm>

#include "codegen/access/direct.h"
#include "codegen/gemm/epilogue_vectors.h"
#include "codegen/gemm/skinny_gemm_emitter.h"

namespace fusec {

std::string SkinnyGemmEmitter::staged(std::size_t number) const {
  return fmt::format("({}*)dynamic_shared + {}", accumulator_type(),
                     number * static_cast<std::size_t>(form_.block.warps * of_warp()));
}

void SkinnyGemmEmitter::stage() {
  writer_.use("stage_few_sums");
  std::size_t number = 0;
  for (const auto& [reduction, sum] : accumulators_)
    writer_.line(fmt::format("stage_few_sums<{}>({} + warp * {}, {}, warp_lane);", form_.k_major, staged(number++),
                             of_warp(), sum));
  writer_.line("__syncthreads();");
}

std::map<ExprId, std::string> SkinnyGemmEmitter::reduce_warps(ExprEmitter& epilogue, const EpilogueVectors& split,
                                                              int width, const std::string& row,
                                                              const std::string& line, const std::string& place) {
  std::map<ExprId, std::string> names;
  for (const auto& [reduction, sum] : split.accumulators) {
    if (std::ranges::find(row_value_names_, sum) != row_value_names_.end()) {
      epilogue.define(reduction, fmt::format("{}[{}]", sum, row));
      continue;
    }
    const std::string of_warps = fmt::format("_of_warps<{}, {}>({}, {}, {}, {});", form_.block.columns,
                                             form_.block.warps, staged(number_of(sum)), of_warp(), line, place);
    const std::string name = writer_.unique(sum + "_v");
    names[reduction] = name + ".v";
    writer_.line(width > 1 ? fmt::format("const EightSums<{}> {} = eight{}", accumulator_type(), name, of_warps)
                           : fmt::format("const {} {} = one{}", accumulator_type(), name, of_warps));
    if (width == 1) epilogue.define(reduction, name);
  }
  return names;
}

void SkinnyGemmEmitter::finish() {
  const int width = epilogue_vector_width(kernel_, contraction_);
  std::map<ExprId, std::string> made = accumulators_;
  for (std::size_t i = 0; i < row_value_names_.size(); ++i) made[form_.row_values_before[i]] = row_value_names_[i];
  const EpilogueVectors split = with_epilogue_vectors(kernel_, contraction_, made, width);
  ExprEmitter epilogue(split.kernel, writer_);
  const ExprPool& pool = split.kernel.pool;
  for (const std::uint32_t a : split.unit_axes) epilogue.bind(a, "0");
  if (!split.batch.empty()) bind_flat(epilogue, split.batch, batch_, "bcdefgh");
  const int groups = form_.block.columns / width;
  const std::string item = writer_.unique("item"), line = writer_.unique("line"), place = writer_.unique("place");
  const std::string row = writer_.unique("row"), column = writer_.unique("column");
  writer_.open_strided(item, 8 * row_tiles() * groups, form_.block.warps * 32);
  if (width > 1)
    writer_.line(fmt::format("const int {0} = staged_row<{1}>({2}), {3} = {2} % {4} * {5};", line, form_.block.columns,
                             item, place, groups, width));
  else  // lanes cover eight columns of four lines, in different banks
    writer_.line(fmt::format("const int {0} = {1} / 8 % {2}, {3} = {1} / {4} * 8 + {1} % 8;", line, item,
                             8 * row_tiles(), place, 64 * row_tiles()));
  writer_.line(fmt::format("const {} {} = row_of_line({}), {} = {}{} + {};", integer(), row, line, column, column0_,
                           columns_per_lane() > 1 ? fmt::format(" * {}", columns_per_lane()) : "", place));
  const IndexExpr columns = simplify(point_count(pool, split.columns) * width, pool.bounds());
  const auto number = [&](const IndexExpr& e) { return epilogue.index_text().tight(simplify(e, pool.bounds())); };
  std::string inside = fmt::format("{} < {}", row, number(point_count(pool, split.rows)));
  if (!proves_multiple_of(columns, form_.block.columns, pool.bounds()))
    inside += fmt::format(" && {} < {}", column, number(columns));
  writer_.line(fmt::format("if (!({})) continue;", inside));
  if (!split.rows.empty()) bind_flat(epilogue, split.rows, row, "mnopq");
  std::string flat = column;
  if (width > 1) {
    flat = writer_.unique("eight");
    writer_.line(fmt::format("const {} {} = {} / {};", integer(), flat, column, width));
  }
  bind_flat(epilogue, split.columns, flat, "ijlst");
  const std::map<ExprId, std::string> names = reduce_warps(epilogue, split, width, row, line, place);
  if (width > 1)
    emit_epilogue_vector(epilogue, graph_, split.lane, width, names);
  else
    emit_epilogue_scalar(epilogue);
  writer_.close();
}

std::size_t SkinnyGemmEmitter::number_of(const std::string& sum) const {
  std::size_t number = 0;
  for (const auto& [reduction, name] : accumulators_) {
    if (name == sum) break;
    ++number;
  }
  return number;
}

}  // namespace fusec
