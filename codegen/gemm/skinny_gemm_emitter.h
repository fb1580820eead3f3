// How the kernel of a product of few rows is written, part by part (codegen/gemm/skinny_gemm.h says what it does):
// emit_skinny_gemm.cpp places blocks and goes along the depth, skinny_gemm_operands.cpp has each lane load its part of
// the factors and makes operands of it, skinny_gemm_epilogue.cpp adds up what the warps have and stores what comes out.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/dequantize.h"
#include "codegen/gemm/epilogue_vectors.h"
#include "codegen/gemm/skinny_gemm.h"
#include "ir/type.h"

namespace fusec {

// A factor's values on the way: words as they come from memory, by load, and as operands.
struct SkinnyOperandStream {
  const SkinnyGemmOperand* operand = nullptr;
  bool left = false;
  ExprId value = kNoExpr;               // what is computed, where the factor is not plain: without its last rounding
  std::map<ExprId, std::string> words;  // by load: [step][which]
  std::string operands;                 // [which]
  // Of codes that are widened two at a time: their zero points' and scales' bits, [step][which]; "" for none.
  std::optional<Dequantize> quantized = std::nullopt;
  std::string zeros, scales;
  // What sums of the step are multiplied by, and those of rows, before they are added: a lane's, of the steps and
  // columns that are its own, or [which] where that is the same all along the depth.
  std::string accumulator_scale, row_sum_scale;
  std::string row_sums;  // of a left one, in the step
};

class SkinnyGemmEmitter {
 public:
  SkinnyGemmEmitter(const Kernel& kernel, const Contraction& product, const SkinnyGemmForm& form, const Graph& graph,
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
  int columns_per_lane() const { return form_.k_major ? 1 : 8; }  // neighbours, of one load
  IndexExpr tiles_across() const {
    return simplify(ceil_div(count(form_.columns), form_.block.columns / columns_per_lane()), pool_.bounds());
  }
  int pieces() const { return form_.block.columns / 16; }
  int eights() const { return form_.eights_of_rows(); }
  std::string dtype_name() const { return form_.dtype == DType::kInt8 ? "s8" : short_name(form_.dtype); }
  std::string_view accumulator_type() const { return form_.int32_accumulators ? "int" : "float"; }
  bool rows_fill() const { return proves_multiple_of(count(form_.rows), 8, pool_.bounds()); }
  std::vector<std::string> comment() const;
  void place_block();

  // --- reductions that are one value for a row, by a warp a row
  void row_values();
  bool reduce_by_lanes(const std::vector<ExprId>& reductions);

  // --- the loop along the depth
  void declare_accumulators(const SkinnyGemmLoop& loop);
  void main_loop(const SkinnyGemmLoop& loop);
  void declare_row_there();
  void open_step();
  // Columns that are computed are multiplied before the next ones are: else all of them are in registers.
  void multiply_in_pieces(std::vector<SkinnyOperandStream>& streams, const SkinnyGemmLoop& loop);
  void accumulate_row_sums(std::vector<SkinnyOperandStream>& streams, const SkinnyGemmLoop& loop);
  void add_scaled(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& sum,
                  const std::string& part, const std::string& row_sums);

  // --- what a lane has of the factors
  // Words of rows that are not there are zeros from the beginning, where no end of the depth is looked for.
  bool absent_stay_zero(const SkinnyOperandStream& s) const { return s.left && whole_ && !row_there_.empty(); }
  // Of a stream in one step: columns, or lines along the depth where neighbours lie across it; or rows, run by run.
  int which(const SkinnyOperandStream& s) const {
    return s.left ? eights() * form_.runs : form_.k_major ? 2 * pieces() : 8;
  }
  // Which eight of rows.
  std::string eight_text(const std::string& c) const {
    return form_.runs == 1 ? c : fmt::format("({} / {})", c, form_.runs);
  }
  // From here on the unit is that of a run of rows; returns what it was.
  std::string enter_run(const SkinnyOperandStream& s, const std::string& c);
  int operand_words(int elements) const { return elements * bits(form_.dtype) / 32; }
  ExprId root_of(const SkinnyOperandStream& s) const;
  std::uint32_t vector_axis(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop) const {
    if (s.left && form_.runs > 1) return form_.place;
    return s.left || form_.k_major ? loop.member : form_.column_member;
  }
  int vector_width(const SkinnyOperandStream& s) const {
    return s.left ? form_.run_length() : form_.k_major ? form_.k_per_lane : 8;
  }
  // Binds what a stream's element depends on but the neighbours of its vectors. `c` is the text of which; sure: the row
  // is there.
  void bind(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c, bool sure);
  std::string open_which(int count, bool left);
  std::string open_which(const SkinnyOperandStream& s) { return open_which(which(s), s.left); }
  // Arrays for what loads bring, found by a trial whose text is dropped: where neighbours lie, all other axes are
  // bound.
  void declare_words(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void declare_quantized(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void load(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  // Arrays of what sums are multiplied by; those that are the same all along the depth, with their values.
  void declare_scales(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void assign_scales(const SkinnyOperandStream& s, const std::string& place);
  // The four lanes of a column have one block of the depth in each step, and of the steps and columns on their way each
  // lane makes a quarter of the scales: they ask one another.
  int lanes_of_steps() const { return std::min(4, form_.block.prefetch_steps); }
  int lanes_of_columns(const SkinnyOperandStream& s) const { return std::min(4 / lanes_of_steps(), which(s)); }
  // The text of such a number in the step that is on, of a column.
  std::string shared_text(const SkinnyOperandStream& s, const std::string& names, const std::string& c) const;
  bool shares_zeros(const SkinnyOperandStream& s) const {
    return s.operand->blockwise_zero && s.quantized && s.quantized->zero != kNoExpr;
  }
  void load_shared_scales(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  // The operands of one step: words as they are, or computed of them; those of rows' runs change lanes then.
  void make_operands(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void gather_runs(SkinnyOperandStream& s);
  // At the step's place along the depth, or the last one.
  void compute_bound(SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c, const std::string& into);
  // The neighbours of one vector, rounded and packed.
  void compute(SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c, const std::string& into);
  // Integers that become floats, straight from their words.
  void define_dequantized(const SkinnyOperandStream& s, const std::string& c, const std::string& e);

  // --- the sums of all warps, and what stands behind them
  int of_warp() const { return 8 * eights() * (form_.block.columns + 8); }
  std::string staged(std::size_t number) const;
  void stage();
  void finish();
  // The sums of an item's row and columns, of all warps; by reduction behind the product.
  std::map<ExprId, std::string> reduce_warps(ExprEmitter& epilogue, const EpilogueVectors& split, int width,
                                             const std::string& row, const std::string& line, const std::string& place);
  // The place of a sum among those that were staged; its id is another behind the product.
  std::size_t number_of(const std::string& sum) const;

  const Kernel& kernel_;
  const Contraction& product_;
  const SkinnyGemmForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> accumulators_;  // by reduction of the kernel as it was
  std::vector<std::string> row_value_names_;
  std::string column0_, batch_, iteration_, prefetch_steps_, step_, unit_, units_, steps_, row_there_, piece_;
  bool whole_ = false;  // no step goes beyond the depth
};

}  // namespace fusec
