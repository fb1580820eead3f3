#include "codegen/gemm/split_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/access/direct.h"
#include "codegen/gemm/gemm_block.h"
#include "codegen/gemm/gemm_epilogue.h"
#include "ir/type.h"

namespace fusec {
namespace {

// The offset, in floats, of the warp's first 16x8 block.
std::string place_of(const SplitKPartials& s, const SplitPosition& place, int which, ExprEmitter& emitter) {
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(e); };
  std::string plane = place.split;
  if (s.accumulators > 1) plane = fmt::format("({} * {} + {})", plane, s.accumulators, which);
  if (!place.batch.empty()) plane = fmt::format("({} * {} + {})", plane, text(s.batches), place.batch);
  return fmt::format("((({})({}) * {} + ({}) / 16) * {} + ({}) / 8) * 128", emitter.writer().index_type(), plane,
                     text(s.m16_tiles), place.row, text(s.n8_tiles), place.column);
}

}  // namespace

SplitKPartials::SplitKPartials(int splits, const Contraction& contraction, const ExprPool& pool, int tile_rows,
                               int tile_columns)
    : split_k(splits),
      accumulators(static_cast<int>(term_count(contraction))),
      batches(point_count(pool, contraction.batch)) {
  const auto tiles = [&](const std::vector<std::uint32_t>& axes, int of_tile) {
    return ceil_div(point_count(pool, axes), of_tile);
  };
  batches = simplify(batches, pool.bounds());
  m16_tiles = simplify(tiles(contraction.rows, tile_rows) * (tile_rows / 16), pool.bounds());
  n8_tiles = simplify(tiles(contraction.columns, tile_columns) * (tile_columns / 8), pool.bounds());
}

SplitSteps split_steps(const ExprEmitter& emitter, const std::string& split, const IndexExpr& steps, int unsplit_steps,
                       int split_k) {
  const Bounds& bounds = emitter.kernel().pool.bounds();
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(simplify(e, bounds)); };
  const std::string of_all = fmt::format("{} / {}", text(ceil_div(steps, unsplit_steps)), split_k);
  SplitSteps steps_of{.first = fmt::format("{} * {}", split, of_all),
                      .end = fmt::format("({} + 1) * {}", split, of_all)};
  if (unsplit_steps == 1) return steps_of;
  for (std::string* bound : {&steps_of.first, &steps_of.end}) *bound += fmt::format(" * {}", unsplit_steps);
  if (!proves_multiple_of(steps, unsplit_steps, bounds))
    steps_of.end = fmt::format("min({}, {})", steps_of.end, text(steps));
  return steps_of;
}

std::string declare_partial(KernelWriter& writer, const SplitKPartials& split_k, ScalarType accumulators) {
  return writer.workspace(split_k.floats_per_split() * (4 * split_k.split_k), 0, c_type(accumulators) + " partial");
}

void store_partial(ExprEmitter& emitter, const SplitKPartials& split_k, const std::string& partial,
                   const SplitPosition& place, int which, const std::string& sum, ScalarType type, int m16_tiles,
                   int columns, int rows_per_m16_tile) {
  KernelWriter& writer = emitter.writer();
  writer.use("split_k_sums");
  const std::string to = writer.unique("share_to");
  writer.line(
      fmt::format("{}* const {} = {} + {};", c_type(type), to, partial, place_of(split_k, place, which, emitter)));
  const auto store = [&](const std::string& at, const std::string& piece) {
    writer.line(
        fmt::format("store_split_k({}, (const {} (&)[{}][4]){}, warp_lane);", at, c_type(type), columns / 8, piece));
  };
  if (rows_per_m16_tile == 0) return store(to, fmt::format("{}[0]", sum));
  writer.open_unrolled("i", m16_tiles);
  store(fmt::format("{} + i * {}", to, emitter.index_text().tight(split_k.n8_tiles * 128)),
        rows_per_m16_tile == 1 ? fmt::format("{}[i]", sum) : fmt::format("{}[i * {}]", sum, rows_per_m16_tile));
  writer.close();
}

namespace {

// The reduction kernel's tiles have 16 rows. On tensor cores the partial sums of all columns have the same layout, so
// the width is free; without them the warp's columns stay as they were.
GemmForm with_m16_tiles(const GemmForm& form) {
  GemmForm m16_tiles = form;
  const int width = form.tensor_cores() ? 16 : form.tiles.warp_columns;
  m16_tiles.tiles = {.rows = 16,
                     .columns = std::min(2 * width, form.tiles.columns),
                     .warp_rows = 16,
                     .warp_columns = width,
                     .k = form.tiles.k,
                     .stages = form.tiles.stages};
  return m16_tiles;
}

class SplitKReductionEmitter {
 public:
  SplitKReductionEmitter(const Kernel& kernel, const Contraction& contraction, const GemmForm& form,
                         const SplitKPartials& split_k, const Graph& graph, KernelWriter& writer)
      : kernel_(kernel),
        contraction_(contraction),
        m16_form_(with_m16_tiles(form)),
        partials_(split_k),
        graph_(graph),
        pool_(kernel.pool),
        writer_(writer),
        emitter_(kernel, writer) {}

  KernelSource emit() {
    for (const std::uint32_t a : contraction_.shared_rest) emitter_.bind(a, "0");
    for (const char* part : {"dynamic_shared", "split_k_sums"}) writer_.use(part);
    row0_ = writer_.unique("row0"), column0_ = writer_.unique("column0");
    place();
    place_warps(writer_, m16_form_.tiles);
    first_.column += " + warp_column";
    const std::map<ExprId, std::string> accumulators = add_up();
    emit_epilogue({.kernel = kernel_,
                   .contraction = contraction_,
                   .form = m16_form_,
                   .accumulators = accumulators,
                   .row0 = row0_,
                   .column0 = column0_,
                   .batch = batch_},
                  graph_, writer_);
    // Without this bound ptxas limits the kernel to 32 registers, and spills.
    const int threads = m16_form_.tiles.threads();
    KernelSource source = writer_.finish(comment(), threads, 1024 / threads);
    source.name = kernel_name(graph_, kernel_.nodes);
    source.grid[0] = simplify(blocks_, pool_.bounds());
    source.dynamic_shared = staged_bytes(m16_form_) * threads / 32;
    source.schedule = {KernelKind::kSplitKReduction};
    return source;
  }

 private:
  IndexExpr count_tiles(const std::vector<std::uint32_t>& axes, int of_tile) const {
    return simplify(ceil_div(point_count(pool_, axes), of_tile), pool_.bounds());
  }

  void place() {
    const GemmTiles& t = m16_form_.tiles;
    const IndexExpr down = count_tiles(contraction_.rows, t.rows),
                    across = count_tiles(contraction_.columns, t.columns);
    blocks_ = down * across * point_count(pool_, contraction_.batch);
    const BlockPosition block = place_block(emitter_, contraction_, down, across);
    batch_ = block.batch;
    writer_.line(fmt::format("const {0} {1} = {2}.row * {3}, {4} = {2}.column * {5};", writer_.index_type(), row0_,
                             block.tile, t.rows, column0_, t.columns));
    first_ = {"0", batch_, row0_, column0_};
  }

  std::map<ExprId, std::string> add_up() {
    std::map<ExprId, std::string> accumulators;
    std::string partial;
    int which = 0;
    for (const ContractionTerm& term : contraction_.loops[0].terms) {
      const ScalarType type = pool_[term.reduction].type;
      if (partial.empty()) partial = declare_partial(writer_, partials_, type);
      std::string& sum = accumulators[term.reduction] = writer_.unique("sum");
      declare_accumulator(writer_, m16_form_.tiles, m16_form_.tensor_cores(), type, sum);
      writer_.line(fmt::format("sum_split_k(({} (&)[{}][4]){}[0], {} + {}, {}, {}, warp_lane);", c_type(type),
                               m16_form_.tiles.warp_columns / 8, sum, partial,
                               place_of(partials_, first_, which++, emitter_), partials_.split_k,
                               emitter_.index_text().tight(partials_.floats_per_split())));
    }
    return accumulators;
  }

  std::vector<std::string> comment() const {
    std::vector<std::string> lines = kernel_comment(graph_, kernel_);
    lines.push_back(fmt::format("A warp makes 16x{} of what {} blocks have summed of the depth, in their order.",
                                m16_form_.tiles.warp_columns, partials_.split_k));
    return lines;
  }

  const Kernel& kernel_;
  const Contraction& contraction_;
  const GemmForm m16_form_;
  const SplitKPartials& partials_;
  const Graph& graph_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::string row0_, column0_, batch_;
  SplitPosition first_;  // of the warp's accumulators
  IndexExpr blocks_;
};

}  // namespace

KernelSource emit_split_k_reduction(const Kernel& kernel, const Contraction& contraction, const GemmForm& form,
                                    const SplitKPartials& split_k, const Graph& graph) {
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(kernel.pool, kernel.outputs.at(0).axes)));
  return SplitKReductionEmitter(kernel, contraction, form, split_k, graph, writer).emit();
}

}  // namespace fusec
