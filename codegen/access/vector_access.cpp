#include "codegen/access/vector_access.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/kernel/loads.h"
#include "ir/error.h"
#include "ir/type.h"
#include "schedule/movement/lane_uniform.h"

namespace fusec {
std::string element_text(DType dtype, const std::string& words, const std::string& lane, KernelWriter& writer) {
  const bool wide = bits(dtype) == 64;
  writer.use(wide ? "words64" : "words");
  if (dtype == DType::kFloat16 || dtype == DType::kFloat8E4M3FN) {
    const char* element = dtype == DType::kFloat16 ? "fp16_element" : "e4m3_element";
    writer.use(element);
    return fmt::format("{}({}, {})", element, words, lane);
  }
  return value_of_bits(dtype,
                       wide ? fmt::format("element64({}, {})", words, lane)
                            : fmt::format("element<{}>({}, {})", bits(dtype), words, lane),
                       writer);
}

std::string put_text(DType dtype, const std::string& words, const std::string& lane, const std::string& value,
                     KernelWriter& writer) {
  if (bits(dtype) == 64) {
    writer.use("words64");
    const std::string raw = dtype == DType::kFloat64
                                ? fmt::format("(unsigned long long)__double_as_longlong({})", value)
                                : fmt::format("(unsigned long long)({})", value);
    return fmt::format("put_element64({}, {}, {});", words, lane, raw);
  }
  writer.use("words");
  writer.use(dtype);
  std::string raw;
  if (dtype == DType::kFloat32)
    raw = fmt::format("__float_as_uint({})", value);
  else if (is_float(dtype))
    raw = narrow(dtype, value);
  else
    raw = compute_type(dtype) == ScalarType::kUInt32 ? value : fmt::format("(unsigned)({})", value);
  return fmt::format("put_element<{}>({}, {}, {});", bits(dtype), words, lane, raw);
}

namespace {

int word_count(DType dtype, int width) {
  return std::max(1, bits(dtype) * width / 32);
}

IndexExpr at_first_lane(const IndexExpr& e, std::uint32_t lane_axis) {
  return substitute(e, [&](Variable v) {
    return v.kind == Variable::Kind::kAxis && v.id == lane_axis ? std::optional<IndexExpr>(0) : std::nullopt;
  });
}

// Removes the terms that are always multiples of `by`.
IndexExpr remainder(const IndexExpr& e, int by) {
  IndexTerms left(e.terms().size());
  for (const IndexTerm& term : e.terms())
    if (term.coefficient % by != 0) left.push_back(term);
  return from_terms(std::move(left), e.constant_term());
}

}  // namespace

std::string address(const std::string& pointer, DType dtype, const IndexExpr& position, const IndexText& text,
                    const Bounds& bounds, bool written) {
  const IndexExpr at = bits(dtype) == 4 ? simplify(floor_div(position, 2), bounds) : position;
  // Numbered vectors need one multiplication for their byte address.
  const std::span<const IndexTerm> terms = at.terms();
  if (!text.wide && at.constant_term() == 0 && terms.size() == 1 && terms[0].factors.size() == 1 &&
      terms[0].coefficient * std::max(8, bits(dtype)) == 128) {
    const IndexExpr number = from_terms({{.coefficient = 1, .factors = terms[0].factors}}, 0);
    return fmt::format("({}uint4*){} + {}", written ? "" : "const ", pointer, text.tight(number));
  }
  return at.is(0) ? pointer : fmt::format("{} + {}", pointer, text.tight(at));
}

std::string value_of_bits(DType dtype, const std::string& raw, KernelWriter& writer) {
  writer.use(dtype);
  switch (dtype) {
    case DType::kFloat64:
      return fmt::format("__longlong_as_double((long long){})", raw);
    case DType::kInt64:
      return "(long long)" + raw;
    case DType::kUInt64:
    case DType::kUInt16:
    case DType::kUInt8:
    case DType::kUInt4:
      return raw;
    case DType::kFloat32:
      return fmt::format("__uint_as_float({})", raw);
    case DType::kInt32:
      return "(int)" + raw;
    case DType::kInt16:
    case DType::kInt8:
      return fmt::format("(int)({}){}", storage_type(dtype), raw);
    default:
      return widen(dtype, raw);
  }
}

bool is_vector_position(const IndexExpr& position, std::uint32_t lane_axis, int width, DType dtype,
                        const Bounds& bounds) {
  const int total = bits(dtype) * width;
  if (total % 32 != 0) return false;
  const Variable lane{Variable::Kind::kAxis, lane_axis};
  if (coefficient_of(position, lane) != 1) return false;
  const IndexExpr first = at_first_lane(position, lane_axis);
  const int words = total / 32;
  const int together = words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1;
  return proves_multiple_of(first, std::max(1, together * 32 / bits(dtype)), bounds);
}

namespace {

// True if the vector is exactly one or two bytes and aligned to its size.
bool is_part_of_word(const IndexExpr& position, std::uint32_t lane_axis, int width, DType dtype, const Bounds& bounds) {
  const int total = bits(dtype) * width;
  return width > 1 && (total == 8 || total == 16) &&
         coefficient_of(position, {Variable::Kind::kAxis, lane_axis}) == 1 &&
         proves_multiple_of(at_first_lane(position, lane_axis), width, bounds);
}

}  // namespace

bool streams_past_caches(const ExprEmitter& emitter, const Graph& graph, ExprId load, std::int64_t bytes) {
  const Kernel& kernel = emitter.kernel();
  return bytes_at_hint(graph.tensor(kernel.pool[load].source), graph.symbols) >= bytes &&
         std::ranges::all_of(kernel.outputs[0].axes, [&](std::uint32_t axis) {
           return kernel.pool.extent(axis).is(1) || emitter.depends_on(load, axis);
         });
}

bool some_access_is_vector(const Kernel& kernel, const Graph& graph, int width) {
  // Contiguous along the last axis: coefficient 1 and an aligned remainder. Called before the axis is split.
  const std::uint32_t last = kernel.outputs[0].axes.back();
  auto consecutive = [&](const Shape& shape, const std::vector<IndexExpr>& index, DType dtype) {
    const IndexExpr at = simplify(flat_index(shape, index), kernel.pool.bounds());
    if (coefficient_of(at, {Variable::Kind::kAxis, last}) != 1) return false;
    return bits(dtype) * width % 32 == 0;
  };
  bool some = false;
  for (const KernelOutput& output : kernel.outputs) {
    some = some || consecutive(output.type.shape, output.index, output.type.dtype);
  }
  for (const ExprId id : reachable(kernel.pool, roots_of(kernel))) {
    const ExprNode& n = kernel.pool[id];
    if (n.op == ExprOp::kLoad) some = some || consecutive(graph.tensor(n.source).shape, n.indices, n.dtype);
  }
  return some;
}

bool VectorLoads::is_vector(ExprId load) const {
  const ExprNode& n = emitter_.kernel().pool[load];
  const IndexExpr at = emitter_.position(load);
  const Bounds& bounds = emitter_.kernel().pool.bounds();
  if (!is_vector_position(at, lane_axis_, width_, n.dtype, bounds) &&
      !(parts_of_words && is_part_of_word(at, lane_axis_, width_, n.dtype, bounds)))
    return false;
  if (n.args[0] != kNoExpr && !is_lane_uniform(n.args[0])) return false;
  return can_be_loaded_here(load);
}

bool VectorLoads::can_be_loaded_here(ExprId load) const {
  for (const std::uint32_t a : emitter_.axes_of(load))
    if (a != lane_axis_ && !emitter_.bound(a)) return false;
  for (const ExprId value : values_in(emitter_.kernel().pool[load]))
    if (emitter_.depends_on(value, lane_axis_)) return false;
  return true;
}

bool VectorLoads::is_unaligned(ExprId load) const {
  const ExprNode& n = emitter_.kernel().pool[load];
  if (!unaligned || n.args[0] != kNoExpr || (bits(n.dtype) != 16 && bits(n.dtype) != 32)) return false;
  if (bits(n.dtype) * width_ % 128 != 0 || !values_in(n).empty() || is_vector(load)) return false;
  return coefficient_of(emitter_.position(load), {Variable::Kind::kAxis, lane_axis_}) == 1 && can_be_loaded_here(load);
}

bool VectorLoads::is_lane_uniform(ExprId condition) const {
  return fusec::is_lane_uniform(emitter_.kernel().pool, condition, lane_axis_, width_);
}

bool VectorLoads::streams(ExprId load) const {
  return stream_from != 0 && word_count(emitter_.kernel().pool[load].dtype, width_) % 4 == 0 &&
         streams_past_caches(emitter_, graph_, load, stream_from);
}

// Finds a load that changes once within a vector: its position depends on the lane by a single quotient with a divisor
// of at least the vector width.
std::optional<VectorLoads::Step> VectorLoads::step_of(ExprId load) const {
  const ExprNode& n = emitter_.kernel().pool[load];
  const Bounds& bounds = emitter_.kernel().pool.bounds();
  const Variable lane{Variable::Kind::kAxis, lane_axis_};
  if (n.args[0] != kNoExpr || bits(n.dtype) == 4 || !values_in(n).empty() || !can_be_loaded_here(load))
    return std::nullopt;
  const IndexExpr position = emitter_.position(load);
  std::optional<IndexExpr> dividend, divisor;
  for (const IndexTerm& term : position.terms())
    for (const IndexAtomPtr& factor : term.factors) {
      const bool divided = factor->kind != IndexAtom::Kind::kVariable;
      if (divided ? !mentions(factor->a, lane) && !mentions(factor->b, lane) : factor->variable != lane) continue;
      if (factor->kind != IndexAtom::Kind::kFloorDiv || mentions(factor->b, lane)) return std::nullopt;
      if (dividend && (factor->a != *dividend || factor->b != *divisor)) return std::nullopt;
      dividend = factor->a, divisor = factor->b;
    }
  if (!dividend || coefficient_of(*dividend, lane) != 1 || range_of(*divisor, bounds).max < width_) return std::nullopt;
  Step step{.lanes = simplify(*divisor - floor_mod(at_first_lane(*dividend, lane_axis_), *divisor), bounds),
            .size = std::nullopt};
  if (range_of(*divisor, bounds).min < width_) step.size = divisor;
  return step;
}

std::string VectorLoads::step_text(ExprId load, const std::string& lane) const {
  const ExprNode& n = emitter_.kernel().pool[load];
  const Step& step = steps_.at(load);
  const std::string text = fmt::format("({} < {} ? {} : {})", lane, step.here, step.first, step.last);
  if (!step.size) return text;
  const std::string one =
      fmt::format("{}[{}]", emitter_.writer().input(n.source), emitter_.index(emitter_.position(load)));
  return fmt::format("({} >= {} ? {} : {})", emitter_.index_text().tight(*step.size), width_, text,
                     widen(n.dtype, one));
}

void VectorLoads::declare_steps(const std::vector<ExprId>& roots) {
  KernelWriter& writer = emitter_.writer();
  const ExprPool& pool = emitter_.kernel().pool;
  std::map<IndexExpr, std::string> names;
  for (const ExprId id : roots) {
    if (pool[id].op != ExprOp::kLoad || !emitter_.depends_on(id, lane_axis_) || words_.contains(id)) continue;
    auto step = step_of(id);
    if (!step) continue;
    const auto [name, fresh] = names.try_emplace(step->lanes);
    if (fresh) {
      name->second = writer.unique("here");
      writer.line(fmt::format("const int {} = (int)({});  // lanes before the next", name->second,
                              emitter_.index(step->lanes)));
    }
    const ExprNode& n = pool[id];
    const auto at = [&](int lane) {
      const IndexExpr place = substitute(emitter_.position(id), [&](Variable v) {
        return v == Variable{Variable::Kind::kAxis, lane_axis_} ? std::optional<IndexExpr>(lane) : std::nullopt;
      });
      const std::string text = emitter_.index(simplify(place, pool.bounds()));
      return widen(n.dtype, fmt::format("{}[{}]", writer.input(n.source), text));
    };
    const std::string preferred_name = writer.preferred_name(n.source) + "_v";
    step->here = name->second, step->first = writer.unique(preferred_name), step->last = writer.unique(preferred_name);
    writer.use(n.dtype);
    writer.line(
        fmt::format("const {} {} = {}, {} = {};", c_type(n.type), step->first, at(0), step->last, at(width_ - 1)));
    steps_.emplace(id, *std::move(step));
  }
}

std::vector<std::pair<ExprId, std::string>> VectorLoads::vector_loads(const std::vector<ExprId>& roots) const {
  std::vector<std::pair<ExprId, std::string>> found;
  const ExprPool& pool = emitter_.kernel().pool;
  for (const ExprId id : reachable(pool, roots))
    if (pool[id].op == ExprOp::kLoad && emitter_.depends_on(id, lane_axis_) &&
        ((elsewhere && elsewhere(id)) || is_vector(id) || is_unaligned(id)))
      found.emplace_back(id, fmt::format("Words<{}>", word_count(pool[id].dtype, width_)));
  return found;
}

void VectorLoads::declare(const std::vector<ExprId>& roots, const std::string& lane,
                          const std::function<std::string(ExprId load, const Fill& fill)>& preloaded) {
  KernelWriter& writer = emitter_.writer();
  const ExprPool& pool = emitter_.kernel().pool;
  const auto found = vector_loads(roots);
  std::vector<ExprId> values;
  for (const auto& [id, type] : found)
    for (const ExprId value : values_in(pool[id])) values.push_back(value);
  emitter_.emit_independent(values);
  for (const auto& [id, type] : found) {
    const ExprNode& n = pool[id];
    const int words = word_count(n.dtype, width_);
    if (elsewhere && elsewhere(id)) {
      words_[id] = preloaded(id, nullptr);
      continue;
    }
    const bool anywhere = is_unaligned(id), part = bits(n.dtype) * width_ < 32;
    const char* function = anywhere      ? "load_words_unaligned"
                           : part        ? "load_subword"
                           : streams(id) ? "stream_words"
                                         : "load_words";
    writer.use(anywhere ? "unaligned_words" : part ? "subword" : streams(id) ? "stream_words" : "words");
    const std::string condition = n.args[0] == kNoExpr ? "" : condition_of_vector(n.args[0]);
    const auto loaded = [&, at = id, words_type = type] {
      const IndexExpr first = at_first_lane(emitter_.position(at), lane_axis_);
      const std::string from = address(writer.input(n.source), n.dtype, first, emitter_.index_text(), pool.bounds());
      const std::string text = anywhere
                                   ? fmt::format("{}<{}, {}>({}, {})", function, bits(n.dtype), words, from,
                                                 emitter_.index(remainder(first, width_)))
                                   : fmt::format("{}<{}>({})", function, part ? bits(n.dtype) * width_ : words, from);
      return condition.empty() ? text : fmt::format("{} ? {} : {}{{}}", condition, text, words_type);
    };
    std::string variable;
    if (preloaded) variable = preloaded(id, [&](const std::string& to) { writer.assign(to, loaded()); });
    if (variable.empty()) variable = writer.declared("const " + type, writer.preferred_name(n.source) + "_w", loaded());
    words_[id] = variable;
  }
  if (steps) declare_steps(roots);
  emitter_.load_text = [this, lane](ExprId id) -> std::string {
    if (steps_.contains(id)) return step_text(id, lane);
    const auto it = words_.find(id);
    if (it == words_.end()) return "";
    return element_text(emitter_.kernel().pool[id].dtype, it->second, lane, emitter_.writer());
  };
}

// A variable that tells whether the condition holds for all lanes; it replaces the condition.
std::string VectorLoads::condition_of_vector(ExprId condition) {
  if (const auto known = conditions_.find(condition); known != conditions_.end()) return known->second;
  if (!emitter_.depends_on(condition, lane_axis_)) {
    emitter_.emit_independent({condition});
    return conditions_[condition] = emitter_.emit(condition);
  }
  const ExprEmitter::Mark mark = emitter_.mark();
  emitter_.bind(lane_axis_, "0");
  const std::string text = emitter_.emit(condition);
  emitter_.rewind(mark);
  const std::string name = emitter_.writer().declared("const bool", "inside", text);
  emitter_.define(condition, name);
  return conditions_[condition] = name;
}

VectorStore VectorStore::plan(ExprEmitter& emitter, const KernelOutput& output, std::uint32_t lane_axis, int width,
                              bool stream) {
  VectorStore store;
  store.output_ = &output;
  store.width_ = width;
  const Bounds& bounds = emitter.kernel().pool.bounds();
  const IndexExpr at = simplify(flat_index(output.type.shape, output.index), bounds);
  const bool part = is_part_of_word(at, lane_axis, width, output.type.dtype, bounds);
  if (!part && !is_vector_position(at, lane_axis, width, output.type.dtype, bounds)) {
    if (bits(output.type.dtype) == 4) throw InternalError("half-byte elements are stored as vectors or bytes");
    return store;
  }
  KernelWriter& writer = emitter.writer();
  const bool streams = stream && word_count(output.type.dtype, width) % 4 == 0;
  writer.use(part ? "subword" : streams ? "stream_words" : "words");
  const std::string start = address(writer.output(output.value), output.type.dtype, at_first_lane(at, lane_axis),
                                    emitter.index_text(), bounds, true);
  store.function_ = part ? fmt::format("store_subword<{}>", bits(output.type.dtype) * width)
                         : std::string(streams ? "stream_words_out" : "store_words");
  store.arguments_ = {start};
  store.declare(writer);
  return store;
}

VectorStore VectorStore::elsewhere(ExprEmitter& emitter, const KernelOutput& output, int width, std::string store) {
  VectorStore made = elsewhere(emitter, output, width, "", {});
  made.store_ = std::move(store);
  return made;
}

VectorStore VectorStore::elsewhere(ExprEmitter& emitter, const KernelOutput& output, int width, std::string function,
                                   std::vector<CExpr> arguments, const CExpr& condition) {
  VectorStore made;
  made.output_ = &output;
  made.width_ = width;
  made.function_ = std::move(function);
  made.arguments_ = std::move(arguments);
  made.condition_ = condition;
  emitter.writer().use("words");
  made.declare(emitter.writer());
  return made;
}

void VectorStore::declare(KernelWriter& writer) {
  words_ = writer.unique(writer.preferred_name(output_->value) + (packs() ? "_v" : "_w"));
  if (packs())
    writer.declare_array("float", words_, width_);
  else
    writer.declare(fmt::format("Words<{}>", word_count(output_->type.dtype, width_)), words_, "{}");
}

bool VectorStore::packs() const {
  return output_->type.dtype == DType::kBFloat16 || output_->type.dtype == DType::kFloat16;
}

void VectorStore::put(ExprEmitter& emitter, const std::string& lane, const std::string& value) {
  KernelWriter& writer = emitter.writer();
  if (!words_.empty() && packs()) {
    writer.assign(element(words_, lane), value);
    return;
  }
  if (!words_.empty()) {
    writer.line(put_text(output_->type.dtype, words_, lane, value, writer));
    return;
  }
  const IndexExpr at = position_of(emitter.kernel().pool, *output_);
  store_scalar(writer, *output_, emitter.index(at), value);
}

void VectorStore::finish(ExprEmitter& emitter) {
  if (words_.empty()) return;
  KernelWriter& writer = emitter.writer();
  std::string words = words_;
  if (packs()) {
    writer.use("packed_words");
    words = fmt::format("{}_words({})", storage_type(output_->type.dtype), words_);
  }
  if (!store_.empty()) return writer.line(store_ + words + ");");
  std::vector<CExpr> arguments = arguments_;
  arguments.emplace_back(words);
  if (!condition_.is_true()) writer.open_if(condition_);
  writer.run(call(function_, std::move(arguments)));
  if (!condition_.is_true()) writer.end();
}

}  // namespace fusec
