#include "codegen/convolution/grouped_implicit_gemm_epilogue.h"

#include <fmt/format.h>

#include "analysis/kernel/loads.h"
#include "codegen/access/delinearize.h"
#include "codegen/gemm/epilogue_vectors.h"

namespace fusec {
namespace {

class GroupedEpilogueEmitter {
 public:
  GroupedEpilogueEmitter(const GroupedImplicitGemm& form, const GroupAccumulators& accumulators, const Graph& graph,
                         ExprEmitter& results)
      : w_(form), s_(accumulators), graph_(graph), results_(results), writer_(results.writer()) {}

  void emit() {
    stage_sums();
    if (w_.results_are_nchw)
      finish_neighbours();
    else
      finish_channels();
  }

 private:
  IndexExpr count(const ImplicitGemmAxis& a) const {
    return a.result ? w_.kernel.pool.extent(*a.result) : IndexExpr(1);
  }
  bool whole(const ImplicitGemmAxis& a) const {
    return proves_multiple_of(count(a), a.results, w_.kernel.pool.bounds());
  }
  std::string text(const IndexExpr& e) { return results_.index_text().tight(simplify(e, w_.kernel.pool.bounds())); }

  // The position of an accumulator in shared memory.
  std::string place(const std::string& row, const std::string& column) const {
    return w_.results_are_nchw ? fmt::format("place_in_channel<{}>({}, {})", w_.nchw_pitch(), column, row)
                               : fmt::format("swizzled_accumulator<{}>({}, {})", w_.channel_vectors(), row, column);
  }

  // Stores accumulators as [result][channel of the block], with the halves of each eight swizzled so that eight threads
  // read neighbours from different banks; or, for NCHW results, as [channel of the block][result].
  void stage_sums() {
    staged_ = writer_.unique("staged");
    writer_.line("__syncthreads();  // the places' memory is free");
    writer_.line(fmt::format("{0}* const {1} = ({0}*)dynamic_shared;", s_.type, staged_));
    const std::string i = writer_.unique("i"), n = writer_.unique("n"), half = writer_.unique("half");
    const std::string row = writer_.unique("row"), column = writer_.unique("column");
    writer_.open_unrolled(i, w_.m16_tiles);
    writer_.open_unrolled(n, w_.columns());
    writer_.line(fmt::format("const int {} = {}{} * 8 + warp_lane % 4 * 2;", column,
                             s_.group == "0" ? "" : fmt::format("{} * {} + ", s_.group, w_.members), n));
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < 2; ++{0})", half));
    writer_.line(fmt::format("const int {} = {}({} * 2 + {}) * 8 + warp_lane / 4;", row,
                             s_.part == "0" ? "" : fmt::format("{} * {} + ", s_.part, 16 * w_.m16_tiles), i, half));
    const std::string accumulator = fmt::format("{}[{}][{}]", s_.accumulator, i, n);
    writer_.use(w_.results_are_nchw ? "staged_channels" : "staged_channel_vectors");
    const auto below = [&](int more) {
      return fmt::format("if ({} * 8 + warp_lane % 4 * 2 + {} < {})", n, more, w_.members);
    };
    if (w_.members % 2 == 0 && !w_.results_are_nchw) {
      if (w_.members % 8 != 0) writer_.open(below(0));
      writer_.line(fmt::format("*({0}2*)&{1}[{2}] = make_{0}2({3}[{4} * 2], {3}[{4} * 2 + 1]);", s_.type, staged_,
                               place(row, column), accumulator, half));
      if (w_.members % 8 != 0) writer_.close();
    } else {
      for (int e = 0; e < 2; ++e) {
        if (w_.members % 8 != 0) writer_.open(below(e));
        writer_.line(fmt::format("{}[{}] = {}[{} * 2 + {}];", staged_, place(row, fmt::format("{} + {}", column, e)),
                                 accumulator, half, e));
        if (w_.members % 8 != 0) writer_.close();
      }
    }
    for (int k = 0; k < 3; ++k) writer_.close();
    writer_.line("__syncthreads();");
  }

  // Binds the results' axes, and skips results that do not exist.
  void place_result(const std::string& result) {
    const std::vector<std::string> at = delinearize(
        writer_, w_.axes, result, "jihk", [](const ImplicitGemmAxis& a) { return IndexExpr(a.results); },
        [this](const IndexExpr& e) { return text(e); });
    std::string beyond;
    for (std::size_t a = 0; a < at.size(); ++a) {
      if (!w_.results[a]) continue;
      const std::string here = sum_of(s_.first[a], at[a]);
      const bool in_last_vectors = w_.results_are_nchw && w_.results[a] == w_.channel_vector;
      results_.bind(*w_.results[a], in_last_vectors && w_.width > 1 ? fmt::format("({} / {})", here, w_.width) : here);
      if (!whole(w_.axes[a]))
        beyond += fmt::format("{}{} >= {}", beyond.empty() ? "" : " || ", here, text(count(w_.axes[a])));
    }
    for (const std::uint32_t a : w_.epilogue.outputs[0].axes)
      if (!results_.bound(a) && w_.epilogue.pool.extent(a).is(1)) results_.bind(a, "0");
    if (!beyond.empty()) writer_.line(fmt::format("if ({}) continue;", beyond));
  }

  // Opens a loop over the items that threads finish, with a slow and a fast index.
  void open_items(std::int64_t items, std::int64_t fast, const std::string& outer, const std::string& inner) {
    const std::string e = writer_.unique("e");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (unsigned {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, items, w_.threads()));
    writer_.line(fmt::format("const int {} = {} % {}u;", inner, e, fast));
    writer_.line(fmt::format("const unsigned {} = {} / {}u;", outer, e, fast));
  }

  // Neighbouring threads have neighbouring channels.
  void finish_channels() {
    const std::int64_t of_block = w_.channel_vectors();
    const std::string channel_vector = writer_.unique("eight"), result = writer_.unique("result");
    open_items(w_.results_per_block() * of_block, of_block, result, channel_vector);
    place_result(result);
    const std::string first = w_.groups == w_.groups_per_block ? "0"
                              : w_.channels_per_block() == 8 * w_.groups_per_block
                                  ? s_.group0
                                  : fmt::format("{} * {} / 8", s_.group0, w_.members);
    results_.bind(w_.channel_vector, sum_of(first, channel_vector));
    const std::string accumulators = writer_.unique("sums");
    writer_.line(fmt::format("const Eight<{0}> {1} = load_channel_vector<{2}>({3}, {4}, {5});", s_.type, accumulators,
                             of_block, staged_, result, channel_vector));
    const bool ends = w_.groups * w_.members % 8 != 0;
    if (!ends) {
      emit_epilogue_vector(results_, graph_, w_.lane, w_.width, {{w_.accumulator, accumulators + ".v"}});
    } else {
      const std::string lane = writer_.unique("lane");
      writer_.open(fmt::format("for (int {0} = 0; {0} < 8 && {1} * 8 + {0} < {2}; ++{0})", lane,
                               sum_of(first, channel_vector), w_.groups * w_.members));
      results_.bind(w_.lane, lane);
      results_.define(w_.accumulator, fmt::format("{}.v[{}]", accumulators, lane));
      emit_epilogue_scalar(results_);
      writer_.close();
    }
    writer_.close();
  }

  // Neighbouring threads have neighbouring results of a channel.
  void finish_neighbours() {
    const std::int64_t of_channel = w_.results_per_block() / w_.width;
    const std::string channel = writer_.unique("channel"), part = writer_.unique("part");
    open_items(of_channel * w_.channels_per_block(), of_channel, channel, part);
    std::string result = part;
    if (w_.width > 1) {
      result = writer_.unique("result");
      writer_.line(fmt::format("const unsigned {} = {} * {};", result, part, w_.width));
    }
    place_result(result);
    if (w_.groups > 1) {
      const std::string group = w_.groups_per_block == 1 ? "0" : fmt::format("(int)({} / {}u)", channel, w_.members);
      results_.bind(w_.result_group, sum_of(s_.group0, group));
      results_.bind(w_.result_member,
                    w_.groups_per_block == 1 ? "(int)" + channel : fmt::format("(int)({} % {}u)", channel, w_.members));
    } else {
      results_.bind(w_.result_member, "(int)" + channel);
    }
    const std::string accumulators = writer_.unique("sums");
    writer_.line(fmt::format("const ChannelResults<{0}, {1}> {2} = load_results<{3}, {0}>({4}, {5}, {6});", w_.width,
                             s_.type, accumulators, w_.nchw_pitch(), staged_, channel, result));
    if (w_.width > 1) {
      emit_epilogue_vector(results_, graph_, w_.lane, w_.width, {{w_.accumulator, accumulators + ".v"}});
    } else {
      results_.bind(w_.lane, "0");
      results_.define(w_.accumulator, accumulators + ".v[0]");
      emit_epilogue_scalar(results_);
    }
    writer_.close();
  }

  const GroupedImplicitGemm& w_;
  const GroupAccumulators& s_;
  const Graph& graph_;
  ExprEmitter& results_;
  KernelWriter& writer_;
  std::string staged_;
};

}  // namespace

void emit_grouped_epilogue(const GroupedImplicitGemm& form, const GroupAccumulators& accumulators, const Graph& graph,
                           ExprEmitter& results) {
  GroupedEpilogueEmitter(form, accumulators, graph, results).emit();
}

}  // namespace fusec
