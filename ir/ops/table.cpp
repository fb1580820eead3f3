#include "ir/ops/table.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ir/error.h"
#include "ir/spelling.h"
#include "ir/synonyms.h"

namespace fusec {
namespace {

using SharedRow = std::shared_ptr<const OpDef>;
using SortedRows = std::vector<std::pair<std::string, const OpDef*>>;

std::shared_ptr<const SortedRows> sorted_by_name(const std::vector<SharedRow>& rows) {
  auto sorted = std::make_shared<SortedRows>();
  sorted->reserve(rows.size());
  for (const SharedRow& row : rows) sorted->emplace_back(row->name, row.get());
  std::sort(sorted->begin(), sorted->end());
  return sorted;
}

// Levenshtein's distance: single characters inserted, dropped or replaced.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// The operand's name without its marks: "bias" for "bias?".
std::string_view bare_name(std::string_view operand) {
  return operand.substr(0, operand.find_last_not_of("?*+") + 1);
}

void check_operand_names(const OpDef& row) {
  std::set<std::string_view> names;
  for (const std::string& operand : row.operands) {
    if (bare_name(operand).empty())
      throw Error(ErrorKind::kUsage,
                  {.what = "an operand of op " + row.name + " without a name", .found = in_quotes(operand)});
    if (!names.insert(bare_name(operand)).second)
      throw Error(ErrorKind::kUsage, {.what = "two operands of op " + row.name + " have the same name",
                                      .found = in_quotes(bare_name(operand)),
                                      .expected = "each name once"});
  }
}

}  // namespace

const OpTable& OpTable::builtin() {
  static const OpTable table = [] {
    OpTable t;
    for (auto* family :
         {ops::unary_ops, ops::binary_ops, ops::ternary_ops, ops::movement_ops, ops::creation_ops, ops::indexing_ops,
          ops::reduction_ops, ops::composite_ops, ops::matrix_ops, ops::pooling_ops, ops::gated_ops, ops::rotary_ops,
          ops::quantize_ops, ops::quantized_ops, ops::communication_ops}) {
      for (OpDef& row : family()) t.rows_.push_back(std::make_shared<const OpDef>(std::move(row)));
    }
    t.sorted_ = sorted_by_name(t.rows_);
    return t;
  }();
  return table;
}

OpTable OpTable::with(OpDef row) const {
  if (row.name.empty()) throw Error(ErrorKind::kUsage, "an op needs a name");
  if (find(row.name)) throw Error(ErrorKind::kUsage, "the op table has an op " + row.name + " already");
  if (!row.infer) throw Error(ErrorKind::kUsage, "op " + row.name + " has no type inference");
  if (!row.formula && row.special == Special::kNone && !row.pattern)
    throw Error(ErrorKind::kUsage, "op " + row.name + " has neither a formula nor a pattern kind");
  check_operand_names(row);
  OpTable table = *this;
  table.rows_.push_back(std::make_shared<const OpDef>(std::move(row)));
  table.sorted_ = sorted_by_name(table.rows_);
  return table;
}

const OpDef* OpTable::find(std::string_view op_name) const {
  if (!sorted_) return nullptr;
  auto at = std::lower_bound(sorted_->begin(), sorted_->end(), op_name,
                             [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  return at != sorted_->end() && at->first == op_name ? at->second : nullptr;
}

std::vector<const OpDef*> OpTable::rows() const {
  std::vector<std::string_view> families;  // in order of appearance
  std::vector<std::vector<const OpDef*>> members;
  for (const SharedRow& row : rows_) {
    const auto at = std::find(families.begin(), families.end(), row->family);
    const auto family = static_cast<std::size_t>(at - families.begin());
    if (at == families.end()) {
      families.push_back(row->family);
      members.emplace_back();
    }
    members[family].push_back(row.get());
  }
  std::vector<const OpDef*> all;
  for (const auto& family : members) all.insert(all.end(), family.begin(), family.end());
  return all;
}

std::string OpTable::nearest(std::string_view op_name) const {
  if (op_name.size() > 64) return "";  // no op is that long
  std::vector<std::string_view> names;
  for (const SharedRow& row : rows_) names.push_back(row->name);
  if (const std::string_view name = name_by_synonym(op_name, names); !name.empty()) return std::string(name);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, op_name.size() / 3) + 1;
  for (const SharedRow& row : rows_) {
    const std::size_t distance = edit_distance(op_name, row->name);
    if (distance < best_distance) {
      best_distance = distance;
      best = row->name;
    }
  }
  return best;
}

}  // namespace fusec
