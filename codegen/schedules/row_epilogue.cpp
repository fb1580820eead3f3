#include "codegen/schedules/row_epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/schedules/direct.h"

namespace fusec {
namespace {

class RowEpilogueEmitter {
 public:
  RowEpilogueEmitter(const RowEpilogue& epilogue, KernelWriter& writer, ExprEmitter& emitter)
      : e_(epilogue),
        kernel_(epilogue.form.kernel),
        product_(epilogue.form.product),
        pool_(kernel_.pool),
        writer_(writer),
        emitter_(emitter) {}

  void emit() {
    line_ = writer_.unique("line");
    const std::string row = writer_.unique("row");
    writer_.open(fmt::format("for (int {0} = warp; {0} < {1}; {0} += {2})", line_, e_.rows, e_.threads / 32));
    writer_.line(fmt::format("const {} {} = {} + {};", integer(), row, e_.row0, line_));
    writer_.line(fmt::format("if ({} >= {}) break;", row, text(count(product_.rows))));
    bind_flat(emitter_, product_.rows, row, "mnopq");
    emitter_.reduce_hook = [this](const std::vector<ExprId>& reductions) { return reduce(reductions); };
    define_sums("0");  // so that nothing of the product is computed again ahead of the loops
    emitter_.emit_independent(roots_of(kernel_));
    store_row();
    writer_.close();
  }

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(pool_, axes); }
  std::string integer() const { return writer_.index_type(); }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }

  // The sums at one column of the row in the text from here on.
  void define_sums(const std::string& column) {
    const auto at = [&](ExprId sum) {
      return fmt::format("{}[{} * {} + {}]", e_.sums.at(sum), line_, e_.row_stride, column);
    };
    for (const auto& [reduction, rows] : e_.sums) emitter_.define(reduction, at(reduction));
    for (const auto& [sum, twin] : e_.form.twins) emitter_.define(sum, at(twin));
  }

  std::string open_lanes(const std::vector<std::uint32_t>& axes, std::string_view wish) {
    const std::string k = writer_.unique(wish);
    writer_.open(fmt::format("for ({0} {1} = warp_lane; {1} < {2}; {1} += 32)", integer(), k, text(count(axes))));
    bind_flat(emitter_, axes, k, "cdefghuvw");
    return k;
  }

  bool reduce(const std::vector<ExprId>& reductions) {
    std::vector<ExprEmitter::Accumulator> accumulators;
    for (const ExprId r : reductions) {
      accumulators.push_back(emitter_.accumulator(r));
      const ExprEmitter::Accumulator& a = accumulators.back();
      writer_.line(fmt::format("{} {}{}{};", a.type, a.name, a.extreme ? "" : " = ", a.identity));
    }
    const ExprEmitter::Mark outside = emitter_.mark();
    const std::vector<std::uint32_t>& axes = pool_[reductions[0]].axes;
    const std::string k = open_lanes(axes, "k");
    if (axes == e_.form.reduced) define_sums(k);
    emitter_.accumulate(accumulators);
    emitter_.rewind(outside);
    writer_.close();
    for (const ExprEmitter::Accumulator& a : accumulators) {
      writer_.use("combine");
      writer_.use("warp_reduce");
      if (a.extreme) writer_.use("extreme_lanes");
      writer_.line(fmt::format("{0} = warp_reduce({0}, {1});", a.name, a.combine));
      emitter_.define(a.reduction, emitter_.result(a));
    }
    return true;
  }

  void store_row() {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string column = open_lanes(product_.columns, "column");
    define_sums(column);
    const std::vector<std::string> values = emitter_.emit(roots_of(kernel_));
    for (std::size_t i = 0; i < kernel_.outputs.size(); ++i) {
      const KernelOutput& output = kernel_.outputs[i];
      // An output that lacks columns is stored where these are 0.
      std::string condition;
      for (const std::uint32_t a : product_.columns) {
        const bool runs = std::ranges::any_of(output.index, [&](const IndexExpr& e) {
          return mentions(e, {Variable::Kind::kAxis, a});
        });
        if (!runs && !pool_.extent(a).is(1))
          condition += fmt::format("{}{} == 0", condition.empty() ? "" : " && ", emitter_.index(IndexExpr::axis(a)));
      }
      const IndexExpr at = simplify(flat_index(output.type.shape, output.index), pool_.bounds());
      const std::string store = store_text(writer_, output, emitter_.index(at), values[i]);
      writer_.line(condition.empty() ? store : fmt::format("if ({}) {}", condition, store));
    }
    emitter_.rewind(mark);
    writer_.close();
  }

  const RowEpilogue& e_;
  const Kernel& kernel_;
  const Product& product_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string line_;
};

}  // namespace

void emit_row_epilogue(const RowEpilogue& epilogue, KernelWriter& writer, ExprEmitter& emitter) {
  RowEpilogueEmitter(epilogue, writer, emitter).emit();
}

}  // namespace fusec
