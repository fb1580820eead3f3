#include "codegen/reduction/register_resident_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/access/concat_loads.h"
#include "codegen/access/vector_access.h"
#include "ir/type.h"

namespace fusec {

void RegisterResidentRow::keep(RowRegisters plan, int threads) {
  plan_ = std::move(plan);
  threads_ = threads;
}

// Element `index` of a slot's array.
std::string RegisterResidentRow::place_of(const RowRegisters::Slot& slot, const std::string& index) const {
  return in_shared_memory() ? fmt::format("{}[({}) * {}]", slot.name, index, threads_)
                            : fmt::format("{}[{}]", slot.name, index);
}

int RegisterResidentRow::iterations_of(const std::vector<std::uint32_t>& axes) const {
  const auto it = plan_.iterations_of.find(axes);
  return it == plan_.iterations_of.end() ? 0 : it->second;
}

std::vector<ExprId> RegisterResidentRow::row_invariant_loads(const std::vector<ExprId>& roots) const {
  std::vector<ExprId> shared = outside_reductions(form_, roots);
  std::erase_if(shared, [&](ExprId id) {
    const auto slot = plan_.slot_of.find(id);
    const auto runs = [&](std::uint32_t a) { return emitter_.depends_on(id, a); };
    return slot == plan_.slot_of.end() || !plan_.slots[slot->second].words || plan_.slots[slot->second].filled ||
           std::ranges::any_of(form_.rows, runs);
  });
  return shared;
}

void RegisterResidentRow::leave() {
  iteration_.clear();
  at_edge_ = false;
}

// True if a loop has already computed this kept value.
bool RegisterResidentRow::is_value(ExprId id) const {
  const auto it = plan_.slot_of.find(id);
  return it != plan_.slot_of.end() && plan_.slots[it->second].filled && !plan_.slots[it->second].words;
}

std::vector<ExprId> RegisterResidentRow::loads_of(const std::vector<ExprId>& roots,
                                                  const std::function<bool(ExprId)>& joined) const {
  const auto is_here = [this](ExprId id) { return !iteration_.empty() && is_value(id); };
  std::vector<ExprId> needed = outside_reductions(form_, roots, [&](ExprId id) { return is_here(id) || joined(id); });
  std::erase_if(needed,
                [&](ExprId id) { return is_here(id) || (form_.kernel.pool[id].op != ExprOp::kLoad && !joined(id)); });
  std::ranges::sort(needed);
  return needed;
}

void RegisterResidentRow::declare_arrays(const std::vector<std::uint32_t>& axes) {
  for (const auto& [expr, number] : plan_.slot_of) {
    RowRegisters::Slot& slot = plan_.slots[number];
    const bool here =
        std::ranges::any_of(axes, [&, expr = expr](std::uint32_t a) { return emitter_.depends_on(expr, a); });
    if (!slot.name.empty() || !here) continue;
    const ExprNode& n = form_.kernel.pool[expr];
    slot.name = writer_.unique(emitter_.plain_name(expr) + "_row");
    std::string type = c_type(n.type);
    const DType dtype = slot.words ? loaded_dtype(form_.kernel.pool, expr) : n.dtype;
    if (slot.words) type = storage_type(dtype);
    int count = slot.iterations * slot.width;
    if (slot.words && slot.width > 1) {
      writer_.use("words");
      type = fmt::format("Words<{}>", slot.width * bits(dtype) / 32);
      count = slot.iterations;
    }
    if (!in_shared_memory()) {
      writer_.line("{} {}[{}];", type, slot.name, count);
      continue;
    }
    writer_.use("dynamic_shared");
    const std::int64_t first = std::int64_t{4} * threads_ * slot.place;
    writer_.line("{0}* const {1} = ({0}*)(dynamic_shared + {2}) + threadIdx.x;", type, slot.name, first);
  }
}

void RegisterResidentRow::declare_edges(const std::vector<ExprId>& roots) {
  for (const ExprId id : outside_reductions(form_, roots, [this](ExprId e) { return is_value(e); })) {
    const auto it = plan_.slot_of.find(id);
    if (it == plan_.slot_of.end()) continue;
    RowRegisters::Slot& slot = plan_.slots[it->second];
    if (!slot.edge.empty()) continue;
    const ExprNode& n = form_.kernel.pool[id];
    slot.edge = writer_.unique(emitter_.plain_name(id) + "_edge");
    writer_.line("{} {};", slot.words ? storage_type(n.dtype) : c_type(n.type), slot.edge);
  }
}

std::string RegisterResidentRow::words_of(ExprId load, const std::function<void(const std::string& place)>& fill) {
  const auto it = plan_.slot_of.find(load);
  if (it == plan_.slot_of.end() || (iteration_.empty() && !at_edge_)) return "";
  const RowRegisters::Slot& slot = plan_.slots[it->second];
  if (!slot.words) return "";
  const std::string place = at_edge_ ? slot.edge : place_of(slot, iteration_);
  if (in_shared_memory() && slot.width > 1 && !at_edge_) return words_in_shared_memory(slot, place, fill);
  if (!slot.filled) {
    fill(place);
  } else if (slot.width > 1 && !at_edge_) {
    writer_.use("forget_words");
    writer_.line("forget_words({});", place);
  }
  return place;
}

// A variable with the vector kept at `place`.
std::string RegisterResidentRow::words_in_shared_memory(const RowRegisters::Slot& slot, const std::string& place,
                                                        const std::function<void(const std::string& place)>& fill) {
  const std::string variable = writer_.unique(emitter_.plain_name(slot.expr) + "_w");
  if (slot.filled) {
    writer_.line("const Words<{0}> {1} = load_words<{0}>(&{2});", slot.words_of_element, variable, place);
    return variable;
  }
  writer_.line("Words<{}> {};", slot.words_of_element, variable);
  fill(variable);
  writer_.line("store_words(&{}, {});", place, variable);
  return variable;
}

void RegisterResidentRow::read_elements(const std::vector<ExprId>& roots) {
  std::map<ExprId, std::string> texts;
  for (const ExprId id : outside_reductions(form_, roots)) {
    const ExprNode& n = form_.kernel.pool[id];
    if (n.op != ExprOp::kLoad) continue;
    const std::string place = words_of(id, [&](const std::string& to) {
      writer_.line("{} = {}[{}];", to, writer_.input(n.source), emitter_.index(emitter_.position(id)));
    });
    if (!place.empty()) texts[id] = widen(n.dtype, place);
  }
  if (texts.empty()) return;
  emitter_.load_text = [texts](ExprId id) {
    const auto it = texts.find(id);
    return it == texts.end() ? std::string() : it->second;
  };
}

void RegisterResidentRow::define_values(const std::vector<ExprId>& roots, const std::string& index) {
  if (iteration_.empty() && !at_edge_) return;
  std::vector<ExprId> needed = outside_reductions(form_, roots, [this](ExprId id) { return is_value(id); });
  std::ranges::sort(needed);  // operands first
  // In shared memory a value may take the place of another one, which this loop reads before.
  std::map<ExprId, std::string> variables;
  const auto is_taken_by = [&](const RowRegisters::Slot& before, ExprId other) {
    const auto it = plan_.slot_of.find(other);
    return it != plan_.slot_of.end() && !is_value(other) && plan_.slots[it->second].place == before.place;
  };
  for (const ExprId id : needed) {
    if (!in_shared_memory() || at_edge_ || !is_value(id)) continue;
    const RowRegisters::Slot& slot = plan_.slots[plan_.slot_of.at(id)];
    if (std::ranges::none_of(needed, [&](ExprId other) { return is_taken_by(slot, other); })) continue;
    const std::string variable = variables[id] = writer_.unique(emitter_.plain_name(id) + "_v");
    writer_.line("const {} {} = {};", c_type(form_.kernel.pool[id].type), variable, place_of(slot, index));
  }
  for (const ExprId id : needed) {
    const auto it = plan_.slot_of.find(id);
    if (it == plan_.slot_of.end() || plan_.slots[it->second].words) continue;
    const RowRegisters::Slot& slot = plan_.slots[it->second];
    std::string place = at_edge_ ? slot.edge : place_of(slot, index);
    if (const auto variable = variables.find(id); variable != variables.end()) place = variable->second;
    if (!slot.filled) writer_.line("{} = {};", place, emitter_.emit(id));
    emitter_.define(id, place);
  }
}

void RegisterResidentRow::loop_is_done(const RowLoop& loop) {
  if (iterations_of(loop.axes) == 0) return;
  for (const ExprId id : outside_reductions(form_, loop.roots, [this](ExprId e) { return is_value(e); }))
    if (const auto it = plan_.slot_of.find(id); it != plan_.slot_of.end()) plan_.slots[it->second].filled = true;
}

}  // namespace fusec
