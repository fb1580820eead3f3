#include "codegen/schedules/gemm_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/schedules/direct.h"
#include "codegen/schedules/gemm_block.h"
#include "codegen/schedules/gemm_epilogue.h"
#include "ir/type.h"

namespace fusec {
namespace {

// The floats before the warp's first piece and eight.
std::string place_of(const GemmShares& s, const SharePlace& place, int which, ExprEmitter& emitter) {
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(e); };
  std::string plane = place.share;
  if (s.sums > 1) plane = fmt::format("({} * {} + {})", plane, s.sums, which);
  if (!place.batch.empty()) plane = fmt::format("({} * {} + {})", plane, text(s.batches), place.batch);
  return fmt::format("((({})({}) * {} + ({}) / 16) * {} + ({}) / 8) * 128", emitter.writer().index_type(), plane,
                     text(s.pieces), place.row, text(s.eights), place.column);
}

}  // namespace

GemmShares::GemmShares(int of_depth, const Product& product, const ExprPool& pool, int tile_rows, int tile_columns)
    : shares(of_depth), sums(0), batches(point_count(pool, product.batch)) {
  for (const ProductLoop& loop : product.loops) sums += static_cast<int>(loop.terms.size());
  const auto tiles = [&](const std::vector<std::uint32_t>& axes, int of_tile) {
    return ceil_div(point_count(pool, axes), of_tile);
  };
  batches = simplify(batches, pool.bounds());
  pieces = simplify(tiles(product.rows, tile_rows) * (tile_rows / 16), pool.bounds());
  eights = simplify(tiles(product.columns, tile_columns) * (tile_columns / 8), pool.bounds());
}

ShareSteps share_steps(const ExprEmitter& emitter, const std::string& share, const IndexExpr& steps, int together,
                       int shares) {
  const Bounds& bounds = emitter.kernel().pool.bounds();
  const auto text = [&](const IndexExpr& e) { return emitter.index_text().tight(simplify(e, bounds)); };
  const std::string of_all = fmt::format("{} / {}", text(ceil_div(steps, together)), shares);
  ShareSteps steps_of{.first = fmt::format("{} * {}", share, of_all),
                      .end = fmt::format("({} + 1) * {}", share, of_all)};
  if (together == 1) return steps_of;
  for (std::string* bound : {&steps_of.first, &steps_of.end}) *bound += fmt::format(" * {}", together);
  if (!proves_multiple_of(steps, together, bounds))
    steps_of.end = fmt::format("min({}, {})", steps_of.end, text(steps));
  return steps_of;
}

std::string declare_partial(KernelWriter& writer, const GemmShares& shares, ScalarType sums) {
  return writer.workspace(shares.floats_of_share() * (4 * shares.shares), 0, c_type(sums) + " partial");
}

void leave_share(ExprEmitter& emitter, const GemmShares& shares, const std::string& partial, const SharePlace& place,
                 int which, const std::string& sum, ScalarType type, int pieces, int columns, int rows_of_piece) {
  KernelWriter& writer = emitter.writer();
  writer.use("depth_shares");
  const std::string to = writer.unique("share_to");
  writer.line(
      fmt::format("{}* const {} = {} + {};", c_type(type), to, partial, place_of(shares, place, which, emitter)));
  const auto leave = [&](const std::string& at, const std::string& piece) {
    writer.line(
        fmt::format("leave_share({}, (const {} (&)[{}][4]){}, warp_lane);", at, c_type(type), columns / 8, piece));
  };
  if (rows_of_piece == 0) return leave(to, fmt::format("{}[0]", sum));
  writer.line("#pragma unroll");
  writer.open(fmt::format("for (int i = 0; i < {}; ++i)", pieces));
  leave(fmt::format("{} + i * {}", to, emitter.index_text().tight(shares.eights * 128)),
        rows_of_piece == 1 ? fmt::format("{}[i]", sum) : fmt::format("{}[i * {}]", sum, rows_of_piece));
  writer.close();
}

KernelSource add_gemm_shares(const Kernel& kernel, const Product& product, const GemmForm& form,
                             const GemmShares& shares, const Graph& graph) {
  const ExprPool& pool = kernel.pool;
  KernelWriter writer(graph, needs_wide_index(kernel, graph, point_count(pool, kernel.outputs.at(0).axes)));
  ExprEmitter emitter(kernel, writer);
  for (const std::uint32_t a : product.shared_rest) emitter.bind(a, "0");
  for (const char* part : {"dynamic_shared", "depth_shares"}) writer.use(part);
  // Fragments of any columns are lanes' of the same; in lanes, a warp's columns are as they were.
  GemmForm pieces = form;
  const int width = form.tensor_cores() ? 16 : form.tiles.warp_columns;
  pieces.tiles = {.rows = 16,
                  .columns = std::min(2 * width, form.tiles.columns),
                  .warp_rows = 16,
                  .warp_columns = width,
                  .depth = form.tiles.depth,
                  .stages = form.tiles.stages};
  const auto tiles = [&](const std::vector<std::uint32_t>& axes, int of_tile) {
    return simplify(ceil_div(point_count(pool, axes), of_tile), pool.bounds());
  };
  const IndexExpr down = tiles(product.rows, pieces.tiles.rows), across = tiles(product.columns, pieces.tiles.columns);
  const BlockPlace place = place_block(emitter, product, down, across);
  const std::string row0 = writer.unique("row0"), column0 = writer.unique("column0");
  writer.line(fmt::format("const {0} {1} = {2}.row * {3}, {4} = {2}.column * {5};", writer.index_type(), row0,
                          place.tile, pieces.tiles.rows, column0, pieces.tiles.columns));
  place_warps(writer, pieces.tiles);
  std::map<ExprId, std::string> sums;
  std::string partial;
  int which = 0;
  for (const ProductTerm& term : product.loops[0].terms) {
    const ScalarType type = pool[term.reduction].type;
    if (partial.empty()) partial = declare_partial(writer, shares, type);
    std::string& sum = sums[term.reduction] = writer.unique("sum");
    declare_sum(writer, pieces.tiles, form.tensor_cores(), type, sum);
    const std::string first = place_of(shares, {"0", place.batch, row0, column0 + " + warp_column"}, which++, emitter);
    writer.line(fmt::format("add_shares<{}>(({} (&)[{}][4]){}[0], {} + {}, {}, warp_lane);", shares.shares,
                            c_type(type), width / 8, sum, partial, first,
                            emitter.index_text().tight(shares.floats_of_share())));
  }
  emit_epilogue({.kernel = kernel,
                 .product = product,
                 .form = pieces,
                 .sums = sums,
                 .row0 = row0,
                 .column0 = column0,
                 .batch = place.batch},
                graph, writer);
  std::vector<std::string> comment = kernel_comment(graph, kernel);
  comment.push_back(fmt::format("A warp makes 16x{} of what {} blocks have summed of the depth, in their order.", width,
                                shares.shares));
  // Without a number of blocks ptxas takes 32 registers, and spills.
  KernelSource source = writer.finish(comment, pieces.tiles.threads(), 1024 / pieces.tiles.threads());
  source.name = kernel_name(graph, kernel.nodes);
  source.grid[0] = simplify(down * across * point_count(pool, product.batch), pool.bounds());
  source.dynamic_shared = staged_bytes(pieces) * pieces.tiles.threads() / 32;
  source.schedule = "gemm_shares";
  return source;
}

}  // namespace fusec
