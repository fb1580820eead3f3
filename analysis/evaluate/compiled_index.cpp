#include "analysis/evaluate/compiled_index.h"

#include <algorithm>

#include "ir/budget.h"
#include "ir/error.h"

namespace fusec {

CompiledIndex compile_index(const IndexExpr& e, std::span<const int> position_of_axis) {
  CompiledIndex c;
  c.constant = e.constant_term();
  for (const IndexTerm& term : e.terms()) {
    count_step();
    CompiledIndex::Term t{term.coefficient, {}};
    for (const IndexAtomPtr& factor : term.factors) {
      using Kind = CompiledIndex::Factor::Kind;
      if (factor->kind == IndexAtom::Kind::kVariable) {
        const Variable v = factor->variable;
        if (v.kind == Variable::Kind::kValue)
          t.factors.push_back({Kind::kValue, v.id});
        else if (position_of_axis[v.id] >= 0)
          t.factors.push_back({Kind::kOutputAxis, static_cast<std::uint32_t>(position_of_axis[v.id])});
        else
          t.factors.push_back({Kind::kLoopAxis, v.id});
        continue;
      }
      const auto first = static_cast<std::uint32_t>(c.atoms.size());
      c.atoms.push_back(compile_index(factor->a, position_of_axis));
      c.atoms.push_back(compile_index(factor->b, position_of_axis));
      const Kind kind = factor->kind == IndexAtom::Kind::kFloorDiv ? Kind::kFloorDiv
                        : factor->kind == IndexAtom::Kind::kMod    ? Kind::kMod
                        : factor->kind == IndexAtom::Kind::kMin    ? Kind::kMin
                                                                   : Kind::kMax;
      t.factors.push_back({kind, first});
    }
    c.terms.push_back(std::move(t));
  }
  return c;
}

void evaluate_index(const CompiledIndex& c, const IndexLanes& lanes, std::vector<std::int64_t>& out) {
  using Kind = CompiledIndex::Factor::Kind;
  std::int64_t constant = c.constant;
  out.assign(lanes.count, 0);
  std::vector<std::int64_t> product, left, right;
  for (const CompiledIndex::Term& term : c.terms) {
    count_step();
    std::int64_t scale = term.coefficient;
    bool varies = false;
    auto times = [&](auto value_of) {
      if (!varies) {
        product.resize(lanes.count);
        for (std::size_t i = 0; i < lanes.count; ++i) product[i] = value_of(i);
        varies = true;
      } else {
        for (std::size_t i = 0; i < lanes.count; ++i) product[i] *= value_of(i);
      }
    };
    for (const CompiledIndex::Factor& f : term.factors) {
      switch (f.kind) {
        case Kind::kLoopAxis:
          scale *= lanes.loop_axes[f.id];
          break;
        case Kind::kOutputAxis:
          times([&](std::size_t i) { return lanes.output_axes[f.id][i]; });
          break;
        case Kind::kValue:
          times([&](std::size_t i) { return lanes.values[f.id][i].whole; });
          break;
        case Kind::kFloorDiv:
        case Kind::kMod:
        case Kind::kMin:
        case Kind::kMax: {
          evaluate_index(c.atoms[f.id], lanes, left);
          evaluate_index(c.atoms[f.id + 1], lanes, right);
          times([&](std::size_t i) {
            const std::int64_t a = left[i], b = right[i];
            if (f.kind == Kind::kMin) return std::min(a, b);
            if (f.kind == Kind::kMax) return std::max(a, b);
            if (b == 0) throw InternalError("an index is divided by zero");
            const std::int64_t q = a / b, r = a % b;
            const bool down = r != 0 && (r < 0) != (b < 0);
            return f.kind == Kind::kFloorDiv ? (down ? q - 1 : q) : (down ? r + b : r);
          });
          break;
        }
      }
    }
    if (!varies) {
      constant += scale;
    } else {
      for (std::size_t i = 0; i < lanes.count; ++i) out[i] += scale * product[i];
    }
  }
  for (std::size_t i = 0; i < lanes.count; ++i) out[i] += constant;
}

}  // namespace fusec
