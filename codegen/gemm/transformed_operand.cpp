#include "codegen/gemm/transformed_operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/kernel/copy_expr.h"
#include "codegen/access/direct.h"
#include "codegen/access/vector_access.h"
#include "codegen/gemm/dequantize.h"

namespace fusec {
namespace {

using Axes = std::vector<std::uint32_t>;

// The operand's value as a kernel. A piece has `parts` parts of `lanes` neighbours, each with an axis of its own.
struct TransformKernel {
  Kernel kernel;
  ExprId value = kNoExpr;
  std::vector<ExprId> loads;  // loads that are copied
  Axes across, k, batch, unit_axes, expert_index;
  std::uint32_t part = 0, lane = 0;
  int parts = 1, lanes = 1;
};

TransformKernel in_pieces(const OperandTransform& p, int parts) {
  TransformKernel made;
  made.parts = parts;
  made.lanes = p.piece / parts;
  const ExprPool& from = p.kernel.pool;
  made.kernel.pool = ExprPool(from.bounds().symbols);
  made.kernel.exact_steps = p.kernel.exact_steps;
  made.kernel.numerics = p.kernel.numerics;
  ExprPool& to = made.kernel.pool;
  ExprCopier copier(from, to);
  const Axes& line = p.operand.k_major ? p.axes.k : p.axes.across;
  std::uint32_t last = line.back();
  for (const std::uint32_t a : line)
    if (!from.extent(a).is(1)) last = a;
  const auto add = [&](const Axes& axes, Axes& now) {
    for (const std::uint32_t a : axes) {
      const bool split = a == last;
      now.push_back(to.new_axis(split ? simplify(floor_div(from.extent(a), p.piece), from.bounds()) : from.extent(a)));
      copier.axis[a] = IndexExpr::axis(now.back());
      if (!split) continue;
      made.part = to.new_axis(made.parts);
      made.lane = to.new_axis(made.lanes);
      IndexExpr index_in_piece = IndexExpr::axis(made.lane);
      if (parts > 1) index_in_piece = IndexExpr::axis(made.part) * made.lanes + index_in_piece;
      copier.axis[a] = IndexExpr::axis(now.back()) * p.piece + index_in_piece;
    }
  };
  add(p.batch, made.batch);
  add(p.axes.across, made.across);
  add(p.axes.k, made.k);
  add(p.unit_axes, made.unit_axes);
  if (p.expert_index) add({*p.expert_index}, made.expert_index);
  if (p.axes.holds)
    copier.finish_load = [&](ExprId load, ExprId copied) {
      if (from[load].args[0] == kNoExpr || !p.axes.holds(from[load].args[0])) return copied;
      const ExprNode& n = to[copied];
      return to.load(n.source, n.dtype, n.indices);
    };
  made.value = copier.copy(p.operand.value);
  for (const GemmOperand& copied : p.operand.copies) made.loads.push_back(copier.copy(copied.load));
  return made;
}

bool depends_on(const TransformKernel& transform_kernel, std::uint32_t axis) {
  const auto depends = dependences(transform_kernel.kernel.pool);
  return std::ranges::any_of(reachable(transform_kernel.kernel.pool, std::span(&transform_kernel.value, 1)),
                             [&](ExprId id) {
                               return transform_kernel.kernel.pool[id].op == ExprOp::kLoad &&
                                      std::ranges::find(transform_kernel.loads, id) == transform_kernel.loads.end() &&
                                      std::ranges::binary_search(depends[id], axis);
                             });
}

// The fewest parts of a piece such that other loads are constant in each part: a scale per 20 elements needs eight
// parts of a piece of 32, a scale per 32 one part. Returns 1 if elements need their own loads.
int parts_of(const OperandTransform& p) {
  for (int parts = 1; parts < p.piece; parts *= 2)
    if (const TransformKernel transform_kernel = in_pieces(p, parts);
        !depends_on(transform_kernel, transform_kernel.lane))
      return parts;
  return 1;
}

class OperandTransformEmitter {
 public:
  explicit OperandTransformEmitter(const OperandTransform& p)
      : p_(p),
        transform_kernel_(in_pieces(p, parts_of(p))),
        pool_(transform_kernel_.kernel.pool),
        writer_(p.writer),
        emitter_(transform_kernel_.kernel, p.writer) {}

  std::string emit() {
    writer_.use("words");
    bind();
    for (std::size_t i = 0; i < transform_kernel_.loads.size(); ++i) {
      const ExprNode& n = pool_[transform_kernel_.loads[i]];
      words_[transform_kernel_.loads[i]] = writer_.unique(writer_.preferred_name(n.source) + "_w");
      writer_.line(fmt::format("const Words<{}> {} = {};", bits(n.dtype) * p_.piece / 32,
                               words_[transform_kernel_.loads[i]], p_.words(i)));
    }
    if (transform_kernel_.parts == 1)
      if (const std::string made = widened(); !made.empty()) return made;
    return element_by_element();
  }

 private:
  int words() const { return bits(p_.multiplied) * p_.piece / 32; }

  void bind() {
    const std::string by = fmt::format(" / {}", p_.piece);
    for (const std::uint32_t a : transform_kernel_.unit_axes) emitter_.bind(a, "0");
    for (const std::uint32_t a : transform_kernel_.expert_index) emitter_.bind(a, p_.matrix);
    const auto loads_or_places = [&](ExprId id) {
      return !words_.contains(id) && std::ranges::find(transform_kernel_.loads, id) == transform_kernel_.loads.end() &&
             (pool_[id].op == ExprOp::kLoad || pool_[id].op == ExprOp::kIndex);
    };
    const std::vector<ExprId> all = reachable(pool_, std::span(&transform_kernel_.value, 1));
    if (std::ranges::none_of(all, loads_or_places)) {  // the copies suffice
      for (const Axes* axes : {&transform_kernel_.batch, &transform_kernel_.across, &transform_kernel_.k})
        for (const std::uint32_t a : *axes) emitter_.bind(a, "0");
      return;
    }
    if (!transform_kernel_.batch.empty()) bind_flat(emitter_, transform_kernel_.batch, p_.batch_number, "bcdefgh");
    const auto place = [&](const Axes& axes, const std::string& at, bool in_pieces, std::string_view names) {
      const std::string flat = writer_.unique("at");
      writer_.line(
          fmt::format("const {} {} = {};", writer_.index_type(), flat, in_pieces ? fmt::format("({}){}", at, by) : at));
      bind_flat(emitter_, axes, flat, names);
    };
    place(transform_kernel_.across, p_.across_at, !p_.operand.k_major, "mnopq");
    place(transform_kernel_.k, p_.k_at, p_.operand.k_major, "kluvw");
  }

  // Dequantizes a copied load, with a scale per piece or per element, eight values at a time. Returns "" for other
  // values.
  std::string widened() {
    ExprId value = transform_kernel_.value;
    if (pool_[value].op == ExprOp::kRound && pool_[value].dtype == p_.multiplied) value = pool_[value].args[0];
    const auto quantized = find_dequantize(emitter_, value, p_.multiplied, transform_kernel_.lane);
    const auto copied = quantized ? words_.find(quantized->quantized) : words_.end();
    if (copied == words_.end() || (quantized->per_element_scale && !has_words(quantized->scale))) return "";
    const std::string made = writer_.unique("made");
    const std::string zero = zero_text(*quantized, p_.multiplied, emitter_);
    const std::string scale =
        quantized->per_element_scale ? words_.at(quantized->scale) : scale_text(*quantized, p_.multiplied, emitter_);
    const std::string text = dequantize_text(*quantized, p_.multiplied, words(), copied->second, zero, scale, writer_);
    writer_.line(fmt::format("const Words<{}> {} = {};", words(), made, text));
    return made;
  }

  // Loads the words of scales that are not copied. Returns false if a piece's scales are not contiguous.
  bool has_words(ExprId scale) {
    if (words_.contains(scale)) return true;
    scale_loads_.emplace(emitter_, p_.graph, transform_kernel_.lane, p_.piece);
    const auto types = scale_loads_->vector_loads({scale});
    if (types.size() != 1 || types[0].first != scale) return false;
    scale_loads_->declare({scale}, "0", [&](ExprId, const VectorLoads::Fill& fill) {
      std::string& words = words_[scale] = writer_.unique(writer_.preferred_name(pool_[scale].source) + "_w");
      writer_.line(fmt::format("{} {};", types[0].second, words));
      fill(words);
      return words;
    });
    return true;
  }

  std::string element_by_element() {
    ExprId value = transform_kernel_.value;
    if (pool_[value].op == ExprOp::kRound && pool_[value].dtype == p_.multiplied) value = pool_[value].args[0];
    VectorLoads loads(emitter_, p_.graph, transform_kernel_.lane, p_.piece);
    const std::string lane = writer_.unique("e");
    if (transform_kernel_.parts == 1)
      loads.declare({value}, lane, [&](ExprId load, const VectorLoads::Fill&) {
        const auto copied = words_.find(load);
        return copied == words_.end() ? std::string() : copied->second;
      });
    const std::string part = transform_kernel_.parts > 1 ? writer_.unique("part") : "";
    const std::string element_number =
        part.empty() ? lane : fmt::format("{} * {} + {}", part, transform_kernel_.lanes, lane);
    emitter_.load_text = [&, others = emitter_.load_text](ExprId load) {
      const auto copied = words_.find(load);
      if (copied != words_.end()) return element_text(pool_[load].dtype, copied->second, element_number, writer_);
      return others ? others(load) : std::string();
    };
    emitter_.emit_independent({value});
    const std::string made = writer_.unique("made");
    const bool packs = bits(p_.multiplied) == 16 && pool_[value].type == ScalarType::kFloat32;
    const std::string values = packs ? writer_.unique("values") : "";
    writer_.line(packs ? fmt::format("float {}[{}];", values, p_.piece)
                       : fmt::format("Words<{}> {} = {{}};", words(), made));
    const auto open = [&](const std::string& number, int count, std::uint32_t axis) {
      writer_.open_unrolled(number, count);
      emitter_.bind(axis, number);
    };
    if (!part.empty()) {
      open(part, transform_kernel_.parts, transform_kernel_.part);
      emitter_.emit_independent({value});
    }
    open(lane, transform_kernel_.lanes, transform_kernel_.lane);
    const std::string element = emitter_.emit(value);
    writer_.line(packs ? fmt::format("{}[{}] = {};", values, element_number, element)
                       : put_text(p_.multiplied, made, element_number, element, writer_));
    writer_.close();
    if (!part.empty()) writer_.close();
    if (packs) {
      writer_.use("packed_words");
      writer_.line(fmt::format("const Words<{}> {} = {}_words({});", words(), made, short_name(p_.multiplied), values));
    }
    return made;
  }

  const OperandTransform& p_;
  TransformKernel transform_kernel_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> words_;     // by copied load
  std::optional<VectorLoads> scale_loads_;  // the emitter refers to it
};

}  // namespace

IndexExpr in_storage(const IndexExpr& elements, const GemmOperand& operand, const Bounds& bounds) {
  return operand.element_bits == 4 ? simplify(floor_div(elements, 2), bounds) : elements;
}

std::string emit_transformed_piece(const OperandTransform& pieces) {
  return OperandTransformEmitter(pieces).emit();
}

}  // namespace fusec
