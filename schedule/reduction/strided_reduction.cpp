#include "schedule/reduction/strided_reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "ir/type.h"
#include "schedule/reduction/blocks_per_row.h"
#include "schedule/reduction/extra_outputs.h"
#include "schedule/reduction/register_resident_strip.h"
#include "schedule/reduction/strided_reduction_layout.h"
#include "schedule/reduction/strided_reduction_threads.h"
#include "schedule/target/target.h"

namespace fusec {
namespace {

bool has_wide_values(const RowForm& form) {
  const ExprPool& pool = form.kernel.pool;
  return std::ranges::any_of(form.reductions, [&](ExprId r) { return is_wide(pool[pool[r].args[0]].type); });
}

// Instructions per element in all loops; each loop computes its values from the loads again.
int code_of_loops(const RowForm& form) {
  int code = 0;
  for (const ReductionLoop& loop : reduction_loops(form)) code += code_of_element(form, loop.bodies(form.kernel.pool));
  std::vector<ExprId> of_elements = roots_of_extra_outputs(form);
  std::ranges::copy(roots_of(outputs_of(form, false)), std::back_inserter(of_elements));
  return code + code_of_element(form, of_elements);
}

// The maximum number of vectors of a group's rows, over all its blocks.
std::int64_t most_vectors(const StridedReduction& plan) {
  const int of_line = plan.in_strips ? plan.lanes() * plan.width : plan.columns();
  return range_of(plan.lines() * of_line, plan.form.kernel.pool.bounds()).max / plan.width;
}

// Instructions with which a group's threads combine their results.
std::int64_t code_of_joining(const StridedReduction& plan) {
  constexpr int kJoining = 40;  // per result of a lane
  return static_cast<std::int64_t>(plan.form.reductions.size()) * plan.width * kJoining;
}

// Plans the vectors kept in registers. Register arrays need constant indices, so the loops are unrolled; if that is too
// much code, more threads take fewer iterations each. False if even one vector (two for unaligned rows) is too much.
bool plan_register_vectors(StridedReduction& plan, const StridedReductionWork& work) {
  const std::int64_t most = most_vectors(plan), code = code_of_loops(plan.form) * plan.width;
  const auto iterations = [&](int parts) { return (most + parts - 1) / parts; };
  if (2 * code > kMaxUnrolledInstructions) return false;
  if (plan.form.columns.empty() && stage_count(plan.form) == 1) return true;  // one loop
  if (plan.chunks > 1 || iterations(plan.parts) < 1 || iterations(plan.parts) > kMaxRegisterVectors) return true;
  while (plan.groups_per_block == 1 && iterations(plan.parts) > 1 &&
         iterations(plan.parts) * code + code_of_joining(plan) > kMaxUnrolledInstructions &&
         may_have_threads(2 * plan.group_threads, plan, work)) {
    plan.group_threads *= 2;
    plan.parts = working_threads(plan.group_threads, plan);
  }
  if (iterations(plan.parts) * code <= kMaxUnrolledInstructions)
    plan.register_vectors = static_cast<int>(iterations(plan.parts));
  return true;
}

// Returns the pair of reductions that one pass makes: moments with a mean that depends on the sum alone, or
// exponentials if `may_be_exponentials`.
std::optional<RowOnePass> one_pass_of(const StridedReduction& plan, bool may_be_exponentials) {
  const ExprPool& pool = plan.form.kernel.pool;
  const std::optional<RowOnePass> pass = row_one_pass(plan.form);
  if (!pass) return std::nullopt;
  if (pass->kind == RowOnePass::Kind::kExponentials) return may_be_exponentials ? pass : std::nullopt;
  return dependences(pool)[pool[pass->mean].args[1]].empty() ? pass : std::nullopt;
}

// Chooses the threads. `again`: operands may be read twice, for online softmax or by blocks that share a strip of rows
// with several elements per line. Nothing if other schedules are faster.
std::optional<StridedReduction> with_threads(StridedReduction plan, int widest_bits, bool again, const Target& target) {
  const std::optional<RowOnePass> one_pass = one_pass_of(plan, again);
  StridedReductionWork work = strided_reduction_work(plan, widest_bits, one_pass);
  work.again = again;
  if (!choose_threads(plan, work, target)) return std::nullopt;
  if (!plan_register_vectors(plan, work)) return std::nullopt;
  if (plan.register_vectors == 0) plan.one_pass = one_pass;
  // Without kept vectors, these rows are read again here. The layouts of row_layout may keep them instead.
  const bool shared = again && plan.elements_per_line > 1 && plan.in_strips && plan.chunks > 1;
  if ((plan.elements_per_line > 1 || plan.unaligned) && plan.register_vectors == 0 &&
      (work.stages > 1 || (!plan.form.columns.empty() && !shared)))
    return std::nullopt;
  return plan;
}

// The maximum number of vectors that a thread can keep, limited by registers and code size.
std::int64_t max_register_vectors(const StridedReduction& plan) {
  const int code = std::max(1, code_of_loops(plan.form) * plan.width);
  return std::min({std::int64_t{kMaxRegisterVectors}, std::int64_t{kMaxRegisterWords} / words_of_vectors(plan),
                   (kMaxUnrolledInstructions - code_of_joining(plan)) / code});
}

// Sets `group_threads` and the least number of blocks, or slightly more, that keep their rows on chip together.
bool shape_resident_blocks(StridedReduction& plan, int group_threads, StridedReductionWork work, const Target& target) {
  plan.group_threads = group_threads;
  plan.parts = working_threads(group_threads, plan);
  if (const int even = interleaved_threads(group_threads, 2 * plan.columns(), plan.width); !plan.in_strips && even > 0)
    plan.parts = even;
  const std::int64_t iterations = max_register_vectors(plan), most = most_vectors(plan);
  if (plan.parts == 0 || plan.group_threads < plan.rows || iterations < 1 ||
      !may_have_threads(group_threads, plan, work))
    return false;
  if (plan.in_strips) work.groups *= value_at_hint(plan.strips(), plan.form.kernel.pool.bounds().symbols);
  if (most > iterations * plan.parts * max_resident_blocks(target)) return false;
  plan.chunks = resident_blocks_of_columns(rows_to_reduce(plan, work),
                                           (most + iterations * plan.parts - 1) / (iterations * plan.parts), target);
  if (plan.chunks == 0) return false;
  const std::int64_t at_once = std::int64_t{plan.parts} * plan.chunks;
  plan.register_vectors = static_cast<int>((most + at_once - 1) / at_once);
  plan.resident_blocks = true;
  return true;
}

bool has_few_partials(const StridedReduction& plan, const StridedReductionWork& work) {
  return plan.chunks <= max_blocks_with_few_partials(rows_to_reduce(plan, work));
}

// Plans rows that one block's registers do not hold and that would be read again: co-resident blocks keep them. Strips
// have whole sectors and share little with their neighbours. For rows with several elements per line, they are narrow
// enough to occupy all multiprocessors.
std::optional<StridedReduction> kept_by_resident_blocks(StridedReduction plan, int widest_bits, const Target& target) {
  const StridedReductionWork work = strided_reduction_work(plan, widest_bits, std::nullopt);
  const auto shaped = [&](std::int64_t columns) -> std::optional<StridedReduction> {
    for (const int group_threads : {kMaxStridedThreads / 2, kMaxStridedThreads}) {
      StridedReduction found = plan;
      if (plan.in_strips) found.rows = static_cast<int>(columns / plan.elements_per_line);
      if (shape_resident_blocks(found, group_threads, work, target)) return found;
    }
    return std::nullopt;
  };
  if ((plan.elements_per_line > 1 && !plan.in_strips) || (plan.unaligned && !plan.form.columns.empty()))
    return std::nullopt;
  if (!plan.in_strips || plan.unaligned) return shaped(0);
  constexpr int kWide = 32;  // lanes
  const Bounds& bounds = plan.form.kernel.pool.bounds();
  const int fewest = columns_of_strip(plan, work);
  const std::int64_t line = value_at_hint(plan.line_stride, bounds.symbols);
  const auto is_enough = [&](const StridedReduction& found) {
    const std::int64_t blocks = work.groups * value_at_hint(found.strips(), bounds.symbols) * found.chunks;
    return has_few_partials(found, work) && (plan.elements_per_line == 1 || blocks >= target.multiprocessors);
  };
  std::optional<StridedReduction> found;
  for (std::int64_t strips = std::max<std::int64_t>(1, line / (kWide * plan.width)); strips <= line; strips *= 2) {
    std::int64_t columns = (line + strips - 1) / strips;
    if (strips > 1) columns = (columns + fewest - 1) / fewest * fewest;
    if (std::optional<StridedReduction> narrower = shaped(columns)) found = narrower;
    if (columns <= fewest || (found && is_enough(*found))) break;
  }
  return found;
}

// True if a thread reads its operands several times, once in each loop.
bool reads_again(const StridedReduction& plan) {
  const bool once = plan.one_pass || stage_count(plan.form) == 1;
  return plan.register_vectors == 0 && !(once && plan.form.columns.empty());
}

// True if reading the rows again takes less time than one more launch, at the hints.
bool is_cheap_to_reread(const StridedReduction& plan, int widest_bits, const Target& target) {
  const ExprPool& pool = plan.form.kernel.pool;
  const std::int64_t elements =
      value_at_hint(point_count(pool, plan.outer) * plan.lines() * plan.line_stride, pool.bounds().symbols);
  const double bytes = static_cast<double>(elements) * widest_bits / 8 * (stage_count(plan.form) - 1);
  return bytes < target.launch_seconds * target.bandwidth;
}

// Plans rows that independent blocks reduce.
std::optional<StridedReduction> by_blocks(const StridedReductionLayout& lines, bool again, const Target& target) {
  StridedReduction plan = lines.plan;
  const RowForm& form = plan.form;
  std::optional<StridedReduction> found = with_threads(plan, lines.widest_bits, again, target);
  // If rows are read again, they should be kept, or moments should be made in one pass. Interleaved rows are good if
  // there are few.
  const bool is_well_found =
      found && (found->register_vectors > 0 || (found->one_pass && found->columns() <= kMaxStripRows));
  if (!plan.in_strips && plan.elements_per_line == 1 && lines.may_be_unaligned && !is_well_found &&
      stage_count(form) > 1) {
    plan.in_strips = plan.unaligned = true;
    std::optional<StridedReduction> strips = with_threads(plan, lines.widest_bits, again, target);
    if (strips || form.columns.empty()) return strips ? strips : found;
    plan.in_strips = plan.unaligned = false;
  }
  // A few rows that are read again are better as kept strips.
  if (form.columns.empty() || (found && found->register_vectors > 0) || plan.in_strips || plan.elements_per_line > 1 ||
      plan.width == 1 || !proves_multiple_of(plan.line_stride, plan.width, form.kernel.pool.bounds()))
    return found;
  plan.in_strips = true;
  std::optional<StridedReduction> strips = with_threads(plan, lines.widest_bits, again, target);
  return strips && strips->register_vectors > 0 ? strips : found;
}

// True if unaligned strips read fewer sectors than strips of whole words (`pieces`). A piece of one word shares its
// sectors with both neighbours on every access.
bool reads_less(const StridedReduction& unaligned, const StridedReduction& pieces, int narrowest_bits) {
  return unaligned.register_vectors > 0 && pieces.width * narrowest_bits <= 32;
}

}  // namespace

std::optional<StridedReduction> strided_reduction(const RowForm& original, const Graph& graph, const Target& target) {
  const RowForm form = with_extra_outputs(with_rows_merged(original, graph));
  // 8-byte results of several lanes would have bank conflicts in shared memory, except for one-pass moments.
  const bool reads_twice = stage_count(form) > 1 || !form.columns.empty(), wide = has_wide_values(form);
  if (wide && reads_twice && !(form.columns.empty() && row_one_pass(form))) return std::nullopt;
  const std::optional<StridedReductionLayout> lines = strided_reduction_layout(form, graph);
  std::optional<StridedReduction> found = lines ? by_blocks(*lines, false, target) : std::nullopt;
  if (reads_twice && !wide)
    if (std::optional<StridedReduction> kept = register_resident_strip(form, graph, target))
      return found && found->unaligned && reads_less(*found, *kept, lines->narrowest_bits) ? found : kept;
  if (!lines) return std::nullopt;
  if (wide && reads_twice) return found && found->one_pass ? found : std::nullopt;
  const IndexExpr length = lines->plan.lines();
  if (found ? !reads_again(*found)
            : value_at_hint(length * lines->plan.elements_per_line, form.kernel.pool.bounds().symbols) <=
                  kOnChipOfColumns)
    return found;
  const bool one_launch = found && found->chunks == 1 && is_cheap_to_reread(lines->plan, lines->widest_bits, target);
  if (!one_launch && (!form.columns.empty() || !one_pass_of(lines->plan, true)))
    if (std::optional<StridedReduction> kept = kept_by_resident_blocks(lines->plan, lines->widest_bits, target))
      return kept;
  std::optional<StridedReduction> once = by_blocks(*lines, true, target);
  return once && !(one_launch && once->chunks > 1) ? once : found;
}

int words_of_vectors(const StridedReduction& plan) {
  const ExprPool& pool = plan.form.kernel.pool;
  std::map<ValueId, int> words;
  for (const ExprId load : plan.loads) words[pool[load].source] = std::max(1, plan.width * bits(pool[load].dtype) / 32);
  int per_iteration = 0;
  for (const auto& [tensor, count] : words) per_iteration += count;
  return per_iteration;
}

int launches_of(const StridedReduction& plan) {
  if (plan.chunks == 1) return 1;
  return plan.one_pass || plan.resident_blocks ? 2 : 1 + stage_count(plan.form);
}

std::string name_of(const StridedReduction& plan) {
  const char* how = plan.elements_per_line > 1 ? "rows of pieces side by side"
                    : plan.in_strips           ? "rows side by side"
                                               : "interleaved rows";
  return fmt::format("{} threads for {} {}, {} {}blocks each", plan.parts, plan.rows, how, plan.chunks,
                     plan.resident_blocks ? "waiting " : "");
}

}  // namespace fusec
