// How the kernel of a product of few rows is written, part by part (codegen/schedules/few_rows.h says what it does):
// few_rows.cpp places blocks and goes along the depth, few_rows_factors.cpp has each lane load its part of the factors
// and makes operands of it, few_rows_result.cpp adds up what the warps have and stores what comes out.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit_expr.h"
#include "codegen/schedules/column_eights.h"
#include "codegen/schedules/few_rows.h"
#include "codegen/schedules/widened_codes.h"
#include "ir/type.h"

namespace fusec {

// A factor's values on the way: words as they come from memory, by load, and as operands.
struct FewRowsStream {
  const FewRowsFactor* factor = nullptr;
  bool left = false;
  ExprId value = kNoExpr;               // what is computed, where the factor is not plain: without its last rounding
  std::map<ExprId, std::string> words;  // by load: [step][which]
  std::string operands;                 // [which]
  // Of codes that are widened two at a time: their zero points' and scales' bits, [step][which]; "" for none.
  std::optional<WidenedCodes> codes = std::nullopt;
  std::string zeros, scales;
  // What sums of the step are multiplied by, and those of rows, before they are added: a lane's, of the steps and
  // columns that are its own, or [which] where that is the same all along the depth.
  std::string sums_scale, rows_scale;
  std::string row_sums;  // of a left one, in the step
};

class FewRowsEmitter {
 public:
  FewRowsEmitter(const Kernel& kernel, const Product& product, const FewRowsForm& form, const Graph& graph,
                 KernelWriter& writer)
      : kernel_(kernel),
        product_(product),
        form_(form),
        pool_(form.kernel.pool),
        graph_(graph),
        writer_(writer),
        emitter_(form.kernel, writer) {}
  KernelSource emit();

 private:
  IndexExpr count(const std::vector<std::uint32_t>& axes) const {
    return simplify(point_count(pool_, axes), pool_.bounds());
  }
  std::string text(const IndexExpr& e) { return emitter_.index_text().tight(simplify(e, pool_.bounds())); }
  std::string integer() const { return writer_.index_type(); }
  int columns_a_lane() const { return form_.along_depth ? 1 : 8; }  // neighbours, of one load
  IndexExpr tiles_across() const {
    return simplify(ceil_div(count(form_.columns), form_.block.columns / columns_a_lane()), pool_.bounds());
  }
  int pieces() const { return form_.block.columns / 16; }
  int eights() const { return form_.eights_of_rows(); }
  std::string dtype_name() const { return form_.dtype == DType::kInt8 ? "s8" : short_name(form_.dtype); }
  std::string_view sum_type() const { return form_.whole_sums ? "int" : "float"; }
  bool rows_fill() const { return proves_multiple_of(count(form_.rows), 8, pool_.bounds()); }
  std::vector<std::string> comment() const;
  void place_block();

  // --- reductions that are one value for a row, by a warp a row
  void row_values();
  bool reduce_by_lanes(const std::vector<ExprId>& reductions);

  // --- the loop along the depth
  void declare_sums(const FewRowsLoop& loop);
  void main_loop(const FewRowsLoop& loop);
  void declare_row_there();
  void open_step();
  // Columns that are computed are multiplied before the next ones are: else all of them are in registers.
  void multiply_in_pieces(std::vector<FewRowsStream>& streams, const FewRowsLoop& loop);
  void sum_rows(std::vector<FewRowsStream>& streams, const FewRowsLoop& loop);
  void add_scaled(const FewRowsStream& s, const FewRowsLoop& loop, const std::string& sum, const std::string& part,
                  const std::string& row_sums);

  // --- what a lane has of the factors
  // Words of rows that are not there are zeros from the beginning, where no end of the depth is looked for.
  bool absent_stay_zero(const FewRowsStream& s) const { return s.left && whole_ && !row_there_.empty(); }
  // Of a stream in one step: columns, or lines along the depth where neighbours lie across it; or rows, run by run.
  int which(const FewRowsStream& s) const {
    return s.left ? eights() * form_.runs : form_.along_depth ? 2 * pieces() : 8;
  }
  // Which eight of rows.
  std::string eight_text(const std::string& c) const {
    return form_.runs == 1 ? c : fmt::format("({} / {})", c, form_.runs);
  }
  // From here on the unit is that of a run of rows; returns what it was.
  std::string enter_run(const FewRowsStream& s, const std::string& c);
  int operand_words(int elements) const { return elements * bits(form_.dtype) / 32; }
  ExprId root_of(const FewRowsStream& s) const;
  std::uint32_t vector_axis(const FewRowsStream& s, const FewRowsLoop& loop) const {
    if (s.left && form_.runs > 1) return form_.place;
    return s.left || form_.along_depth ? loop.member : form_.column_member;
  }
  int vector_width(const FewRowsStream& s) const {
    return s.left ? form_.run_length() : form_.along_depth ? form_.together : 8;
  }
  // Binds what a stream's element depends on but the neighbours of its vectors. `c` is the text of which; sure: the row
  // is there.
  void bind(const FewRowsStream& s, const FewRowsLoop& loop, const std::string& c, bool sure);
  std::string open_which(int count, bool left);
  std::string open_which(const FewRowsStream& s) { return open_which(which(s), s.left); }
  // Arrays for what loads bring, found by a trial whose text is dropped: where neighbours lie, all other axes are
  // bound.
  void declare_words(FewRowsStream& s, const FewRowsLoop& loop);
  void declare_codes(FewRowsStream& s, const FewRowsLoop& loop);
  void load(FewRowsStream& s, const FewRowsLoop& loop);
  // Arrays of what sums are multiplied by; those that are the same all along the depth, with their values.
  void declare_scales(FewRowsStream& s, const FewRowsLoop& loop);
  void assign_scales(const FewRowsStream& s, const std::string& place);
  // The four lanes of a column have one block of the depth in each step, and of the steps and columns on their way each
  // lane makes a quarter of the scales: they ask one another.
  int lanes_of_steps() const { return std::min(4, form_.block.ahead); }
  int lanes_of_columns(const FewRowsStream& s) const { return std::min(4 / lanes_of_steps(), which(s)); }
  // The text of such a number in the step that is on, of a column.
  std::string shared_text(const FewRowsStream& s, const std::string& names, const std::string& c) const;
  bool shares_zeros(const FewRowsStream& s) const {
    return s.factor->zero_of_block && s.codes && s.codes->zero != kNoExpr;
  }
  void load_shared_scales(const FewRowsStream& s, const FewRowsLoop& loop);
  // The operands of one step: words as they are, or computed of them; those of rows' runs change lanes then.
  void make_operands(FewRowsStream& s, const FewRowsLoop& loop);
  void gather_runs(FewRowsStream& s);
  // At the step's place along the depth, or the last one.
  void compute_bound(FewRowsStream& s, const FewRowsLoop& loop, const std::string& c, const std::string& into);
  // The neighbours of one vector, rounded and packed.
  void compute(FewRowsStream& s, const FewRowsLoop& loop, const std::string& c, const std::string& into);
  // Integers that become floats, straight from their words.
  void define_codes(const FewRowsStream& s, const std::string& c, const std::string& e);

  // --- the sums of all warps, and what stands behind them
  int of_warp() const { return 8 * eights() * (form_.block.columns + 8); }
  std::string staged(std::size_t number) const;
  void stage();
  void finish();
  // The sums of an item's row and columns, of all warps; by reduction behind the product.
  std::map<ExprId, std::string> add_warps(ExprEmitter& behind, const ColumnEights& split, int width,
                                          const std::string& row, const std::string& line, const std::string& place);
  // The place of a sum among those that were staged; its id is another behind the product.
  std::size_t number_of(const std::string& sum) const;

  const Kernel& kernel_;
  const Product& product_;
  const FewRowsForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> sums_;  // by reduction of the kernel as it was
  std::vector<std::string> of_row_;
  std::string column0_, batch_, turn_, ahead_, step_, unit_, units_, steps_, row_there_, piece_;
  bool whole_ = false;  // no step goes beyond the depth
};

}  // namespace fusec
