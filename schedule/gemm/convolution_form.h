// A product whose factors are loads that cannot be copied 16 bytes at a time: guarded at borders, strided, or not
// aligned. Convolutions of one to three dimensions as matrix products (implicit GEMM), and products of awkward sizes.
//
//   y[n, o, i, j] = sum_{c, u, v} w[o, c, u, v] * (x[n, c, i + u - 1, j + v - 1] where that is inside)
//
//   rows o, columns (n, i, j), depth (c, u, v); of x, position = (where n, i, j begin) + (what c, u, v add), and its
//   guards depend on u or on v, the taps, and not on c
//
// What the depth adds is a table that a block makes once, of as many channels as there are before it repeats itself;
// which taps are outside, each thread knows of its own column
// as the bits of a word: those of u and those of v. So an element costs a few instructions and no division, and tiles
// of the next steps can be on their way while this one is multiplied. Where channels lie last in memory, the depth is
// taken as (u, v, c), and what costs these instructions is 16 bytes of them.
//
// Where the position is no such sum, since column and taps say together where an element lies (an image that was
// enlarged, (i + u - 1) // 2; borders that are reflected or replicated, max(i + u - 1, 0)), a block makes a table of
// places first: for each of a tile's lines and each of the taps one, or that it is outside.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/gemm/contraction.h"
#include "schedule/gemm/gemm_form.h"
#include "schedule/target/target.h"

namespace fusec {

// Guards that depend on these axes of the depth, and on no others of it: each point of their space has a bit.
struct ConvolutionTaps {
  std::vector<std::uint32_t> axes;
  std::vector<ExprId> guards;  // all must hold, else the element is 0
  int first_bit = 0;
};

// How a factor's tile is filled.
enum class ConvolutionFill : std::uint8_t {
  kVectorCopy,     // 16 bytes at a time, along the depth
  kVectorGather,   // likewise, each piece where a table says: channels that lie last in memory
  kScalarAlongK,   // element by element, neighbours along the depth by neighbouring threads
  kScalarAcrossK,  // element by element, neighbours across it by neighbouring threads
};

// Places of so many lines, to those of the next tap: pieces of several taps are looked up without bank conflicts.
constexpr std::int64_t place_stride(std::int64_t lines) {
  return lines + 8;
}

struct ConvolutionOperand {
  ExprId load = kNoExpr;
  ConvolutionFill fill = ConvolutionFill::kScalarAcrossK;
  std::vector<ConvolutionTaps> taps;
  IndexExpr across, k;  // the position is their sum: over rows or columns and the batch, over the depth's axes
  // Taps, then one group, are in `across` as well: positions are looked up by line and tap, however many taps there
  // are.
  bool placed = false;
  std::int64_t places = 0;  // taps that there are

  bool is_scalar() const { return fill == ConvolutionFill::kScalarAlongK || fill == ConvolutionFill::kScalarAcrossK; }
  bool gathered() const { return fill == ConvolutionFill::kScalarAcrossK; }
  bool tabled = false;  // where its elements lie along the depth is not simply one behind the other
  // After so many elements of the depth the table begins again, with positions so much further; 0: it has all of them.
  std::int64_t period = 0;
  IndexExpr further = 0;
  bool widened = false;     // float8 that is multiplied as float16: each element on its way
  ExprId offset = kNoExpr;  // of int8: what is to be taken from every element, as a GemmOperand has it
};

struct ConvolutionForm {
  // float16, bfloat16, int8 (sums are int32) or, from sm_89, float8 of either kind (e4m3 stands for both) on tensor
  // cores, float32 in lanes or, where that is allowed, as tf32.
  DType dtype = DType::kFloat16;
  bool tf32 = false;
  ConvolutionOperand left, right;
  GemmTiles tiles;
  std::vector<GemmTiles> ranking;   // those that fit, the best first, as predicted
  std::vector<std::uint32_t> axes;  // of the depth, in the order in which tiles go along it
  std::int64_t k = 0;
  double cycles = 0;  // predicted of the busiest multiprocessor for the first of them, to compare forms
  ExprId reduction = kNoExpr;

  bool tensor_cores() const { return tf32 || bits(dtype) <= 16; }
  // Elements of words, which are copied asynchronously one by one; narrower ones go by way of registers.
  bool words() const { return bits(dtype) == 32; }
  int element_bytes() const { return bits(dtype) / 8; }
  std::int64_t stage_bytes() const { return std::int64_t{tiles.rows + tiles.columns} * tiles.k * element_bytes(); }
  bool has_vector_gather() const {
    return left.fill == ConvolutionFill::kVectorGather || right.fill == ConvolutionFill::kVectorGather;
  }
  // Of the depth in whole tiles: elements of which a table tells.
  std::int64_t entries() const { return (k + tiles.k - 1) / tiles.k * tiles.k; }
  int entry_elements(const ConvolutionOperand& f) const {
    return f.fill == ConvolutionFill::kVectorGather ? 16 / element_bytes() : 1;
  }
  std::int64_t table_entries(const ConvolutionOperand& f) const {
    return (f.period > 0 ? f.period : entries()) / entry_elements(f);
  }
  std::int64_t place_bytes(const ConvolutionOperand& f) const {
    return f.placed ? 4 * (f.places + 1) * place_stride(&f == &left ? tiles.rows : tiles.columns) : 0;
  }
  std::int64_t table_bytes(const ConvolutionOperand& f) const {
    return f.tabled ? 8 * table_entries(f) + place_bytes(f) : 0;
  }
  std::int64_t shared_bytes() const { return stage_bytes() * tiles.stages + table_bytes(left) + table_bytes(right); }
};

// What stands behind the sums, of which there may be several, takes them as a product's, and so do models that compare
// ways of it.
GemmForm as_gemm(const ConvolutionForm& form, std::size_t accumulators = 1);

std::optional<ConvolutionForm> find_convolution(const Graph& graph, const Kernel& kernel, const Contraction& product,
                                                const Target& target);

// One sum of a product.
struct ContractionAccumulator {
  ExprId reduction, left, right;
};

// What the factors are multiplied as: whole numbers as int8, float8 as it is where the tensor cores take it.
DType multiplied_dtype(const ExprPool& pool, const Contraction& product, const ContractionAccumulator& sum,
                       const Target& target);

// Several sums over one space, each of factors of its own: the second convolution of a residual block and the one that
// its input goes through beside it, or both halves of a gated one. They are made one after the other on tensor cores,
// in tiles of equal size, and wait in registers for what stands behind them.
struct JoinedConvolutions {
  std::vector<ConvolutionForm> forms;  // of each term, loops in order; none has a ranking of its own
  std::vector<GemmTiles> ranking;
  double cycles = 0;

  void take(const GemmTiles& tiles) {
    for (ConvolutionForm& form : forms) form.tiles = tiles;
  }
};

std::optional<JoinedConvolutions> find_joined_convolutions(const Graph& graph, const Kernel& kernel,
                                                           const Contraction& product, const Target& target);

// The tiles that are looked among.
std::vector<GemmTiles> convolution_tile_table(DType dtype, bool tf32 = false);

}  // namespace fusec
