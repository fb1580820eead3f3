// Emits the skinny GEMM kernel described in codegen/gemm/skinny_gemm.h. skinny_gemm.cpp places blocks and loops over K,
// skinny_gemm_operands.cpp loads and converts the operands, and skinny_gemm_epilogue.cpp reduces the warps'
// accumulators and stores the outputs.
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

// An operand in flight: the words of its loads, and the operands made from them.
struct SkinnyOperandStream {
  const SkinnyGemmOperand* operand = nullptr;
  bool left = false;
  ExprId value = kNoExpr;               // for transformed operands: the value without its final rounding
  std::map<ExprId, std::string> words;  // by load: [step][which]
  std::string operands;                 // [which]
  // For dequantization by pairs: the bits of zero points and scales, [step][which]; "" if there are none.
  std::optional<Dequantize> quantized = std::nullopt;
  std::string zeros, scales;
  // Factors of a step's accumulators and of its row sums. If scales vary along K, a lane has those of its share of
  // steps and columns; otherwise [which].
  std::string accumulator_scale, row_sum_scale;
  std::string row_sums;  // sums of the left operand's elements in the step
};

class SkinnyGemmEmitter {
 public:
  SkinnyGemmEmitter(const Kernel& kernel, const Contraction& contraction, const SkinnyGemmForm& form,
                    const Graph& graph, KernelWriter& writer)
      : kernel_(kernel),
        contraction_(contraction),
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
  int columns_per_lane() const { return form_.k_major ? 1 : 8; }  // neighbouring columns per load
  IndexExpr tiles_across() const {
    return simplify(ceil_div(count(form_.columns), form_.block.columns / columns_per_lane()), pool_.bounds());
  }
  int m16_column_tiles() const { return form_.block.columns / 16; }
  int row_tiles() const { return form_.n8_row_tiles(); }
  std::string dtype_name() const { return form_.dtype == DType::kInt8 ? "s8" : short_name(form_.dtype); }
  std::string_view accumulator_type() const { return form_.int32_accumulators ? "int" : "float"; }
  // Whether all rows of all row tiles are there, whatever the symbols.
  bool rows_fill() const { return range_of(count(form_.rows), pool_.bounds()).min >= 8 * row_tiles(); }
  std::vector<std::string> comment() const;
  void place_block();

  // --- reductions with one value per row; a warp computes a row
  void row_values();
  bool reduce_by_lanes(const std::vector<ExprId>& reductions);

  // --- the loop along K
  void declare_accumulators(const SkinnyGemmLoop& loop);
  void main_loop(const SkinnyGemmLoop& loop);
  void declare_row_there();
  void open_step();
  // Multiplies computed columns before the next ones are computed, so that not all of them are in registers.
  void multiply_by_column_tile(std::vector<SkinnyOperandStream>& streams, const SkinnyGemmLoop& loop);
  void accumulate_row_sums(std::vector<SkinnyOperandStream>& streams, const SkinnyGemmLoop& loop);
  void add_scaled(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& sum,
                  const std::string& part, const std::string& row_sums);

  // --- the operands of a lane
  // If no step exceeds K, words of rows that do not exist are zeroed once and never loaded.
  bool absent_stay_zero(const SkinnyOperandStream& s) const { return s.left && whole_ && !row_there_.empty(); }
  // Parts of a stream per step: columns (or steps along K if w is not K-major); for rows, groups of eight times runs.
  int which(const SkinnyOperandStream& s) const {
    return s.left ? row_tiles() * form_.runs : form_.k_major ? 2 * m16_column_tiles() : 8;
  }
  // The text of the index of a group of eight rows.
  std::string row_tile_text(const std::string& c) const {
    return form_.runs == 1 ? c : fmt::format("({} / {})", c, form_.runs);
  }
  // Sets the unit to that of a run of rows, and returns the unit before.
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
  // Binds all axes of a stream's element except the neighbours of a vector. `c`: the text of the part; `sure`: the row
  // is known to exist.
  void bind(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c, bool sure);
  std::string open_which(int count, bool left);
  std::string open_which(const SkinnyOperandStream& s) { return open_which(which(s), s.left); }
  // Declares arrays for the loaded words. A trial, whose text is dropped, finds the loads; all axes except the
  // neighbours are bound.
  void declare_words(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void declare_quantized(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void load(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  // Declares arrays of accumulator scales. Those that are the same for all of K also get their values.
  void declare_scales(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void assign_scales(const SkinnyOperandStream& s, const std::string& place);
  // The four lanes of a column share a block of K in each step. Each lane loads a quarter of the scales of the steps
  // and columns in flight, and shuffles exchange them.
  int lanes_of_steps() const { return std::min(4, form_.block.prefetch_steps); }
  int lanes_of_columns(const SkinnyOperandStream& s) const { return std::min(4 / lanes_of_steps(), which(s)); }
  // The text of a shared scale or zero point of a column in the current step.
  std::string shared_text(const SkinnyOperandStream& s, const std::string& names, const std::string& c) const;
  bool shares_zeros(const SkinnyOperandStream& s) const {
    return s.operand->blockwise_zero && s.quantized && s.quantized->zero != kNoExpr;
  }
  void load_shared_scales(const SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  // Makes the operands of a step: words unchanged, or computed from them. Runs of rows are exchanged between lanes
  // here.
  void make_operands(SkinnyOperandStream& s, const SkinnyGemmLoop& loop);
  void gather_runs(SkinnyOperandStream& s);
  // Computes at the step's position along K, or at the last position.
  void compute_bound(SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c, const std::string& into);
  // Computes the neighbours of one vector, rounded and packed.
  void compute(SkinnyOperandStream& s, const SkinnyGemmLoop& loop, const std::string& c, const std::string& into);
  // Defines integers as floats converted directly from their words.
  void define_dequantized(const SkinnyOperandStream& s, const std::string& c, const std::string& e);

  // --- reduction over warps, and epilogue
  int of_warp() const { return 8 * row_tiles() * (form_.block.columns + 8); }
  std::string staged(std::size_t number) const;
  void stage();
  void finish();
  // The accumulators of an item's row and columns, summed over all warps, by reduction in the epilogue's kernel.
  std::map<ExprId, std::string> reduce_warps(ExprEmitter& epilogue, const EpilogueVectors& split, int width,
                                             const std::string& row, const std::string& line, const std::string& place);
  // The index of an accumulator among the staged ones; the epilogue's kernel gives it another id.
  std::size_t number_of(const std::string& sum) const;

  const Kernel& kernel_;
  const Contraction& contraction_;
  const SkinnyGemmForm& form_;
  const ExprPool& pool_;
  const Graph& graph_;
  KernelWriter& writer_;
  ExprEmitter emitter_;
  std::map<ExprId, std::string> accumulators_;  // by reduction of the original kernel
  std::vector<std::string> row_value_names_;
  std::string column0_, batch_, iteration_, prefetch_steps_, step_, unit_, units_, steps_, row_there_, m16_column_tile_;
  bool whole_ = false;  // no step exceeds K
};

}  // namespace fusec
