#include <fmt/format.h>

#include <algorithm>

#include "codegen/schedules/column_eights.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/few_rows_emitter.h"

namespace fusec {

std::string FewRowsEmitter::staged(std::size_t number) const {
  return fmt::format("({}*)dynamic_shared + {}", sum_type(),
                     number * static_cast<std::size_t>(form_.block.warps * of_warp()));
}

void FewRowsEmitter::stage() {
  writer_.use("stage_few_sums");
  std::size_t number = 0;
  for (const auto& [reduction, sum] : sums_)
    writer_.line(fmt::format("stage_few_sums<{}>({} + warp * {}, {}, warp_lane);", form_.along_depth, staged(number++),
                             of_warp(), sum));
  writer_.line("__syncthreads();");
}

std::map<ExprId, std::string> FewRowsEmitter::add_warps(ExprEmitter& behind, const ColumnEights& split, int width,
                                                        const std::string& row, const std::string& line,
                                                        const std::string& place) {
  std::map<ExprId, std::string> names;
  for (const auto& [reduction, sum] : split.sums) {
    if (std::ranges::find(of_row_, sum) != of_row_.end()) {
      behind.define(reduction, fmt::format("{}[{}]", sum, row));
      continue;
    }
    const std::string of_warps = fmt::format("_of_warps<{}, {}>({}, {}, {}, {});", form_.block.columns,
                                             form_.block.warps, staged(number_of(sum)), of_warp(), line, place);
    std::string& name = names[reduction] = writer_.unique(sum + "_v");
    writer_.line(width > 1 ? fmt::format("const EightSums<{}> {} = eight{}", sum_type(), name, of_warps)
                           : fmt::format("const {} {} = one{}", sum_type(), name, of_warps));
    if (width == 1) behind.define(reduction, name);
  }
  return names;
}

void FewRowsEmitter::finish() {
  const int width = columns_together(kernel_, product_);
  std::map<ExprId, std::string> made = sums_;
  for (std::size_t i = 0; i < of_row_.size(); ++i) made[form_.row_values_before[i]] = of_row_[i];
  const ColumnEights split = in_column_eights(kernel_, product_, made, width);
  ExprEmitter behind(split.kernel, writer_);
  const ExprPool& pool = split.kernel.pool;
  for (const std::uint32_t a : split.ones) behind.bind(a, "0");
  if (!split.batch.empty()) bind_flat(behind, split.batch, batch_, "bcdefgh");
  const int groups = form_.block.columns / width;
  const std::string item = writer_.unique("item"), line = writer_.unique("line"), place = writer_.unique("place");
  const std::string row = writer_.unique("row"), column = writer_.unique("column");
  writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", item, 8 * eights() * groups,
                           form_.block.warps * 32));
  if (width > 1)
    writer_.line(fmt::format("const int {0} = staged_row<{1}>({2}), {3} = {2} % {4} * {5};", line, form_.block.columns,
                             item, place, groups, width));
  else  // lanes go over eight columns of four lines, which are in different banks
    writer_.line(fmt::format("const int {0} = {1} / 8 % {2}, {3} = {1} / {4} * 8 + {1} % 8;", line, item, 8 * eights(),
                             place, 64 * eights()));
  writer_.line(fmt::format("const {} {} = row_of_line({}), {} = {}{} + {};", integer(), row, line, column, column0_,
                           columns_a_lane() > 1 ? fmt::format(" * {}", columns_a_lane()) : "", place));
  const IndexExpr columns = simplify(point_count(pool, split.columns) * width, pool.bounds());
  const auto number = [&](const IndexExpr& e) { return behind.index_text().tight(simplify(e, pool.bounds())); };
  std::string inside = fmt::format("{} < {}", row, number(point_count(pool, split.rows)));
  if (!proves_multiple_of(columns, form_.block.columns, pool.bounds()))
    inside += fmt::format(" && {} < {}", column, number(columns));
  writer_.line(fmt::format("if (!({})) continue;", inside));
  if (!split.rows.empty()) bind_flat(behind, split.rows, row, "mnopq");
  std::string flat = column;
  if (width > 1) {
    flat = writer_.unique("eight");
    writer_.line(fmt::format("const {} {} = {} / {};", integer(), flat, column, width));
  }
  bind_flat(behind, split.columns, flat, "ijlst");
  const std::map<ExprId, std::string> names = add_warps(behind, split, width, row, line, place);
  if (width > 1)
    finish_eight(behind, graph_, split, names);
  else
    finish_one(behind, split);
  writer_.close();
}

std::size_t FewRowsEmitter::number_of(const std::string& sum) const {
  std::size_t number = 0;
  for (const auto& [reduction, name] : sums_) {
    if (name == sum) break;
    ++number;
  }
  return number;
}

}  // namespace fusec
