// Emits the kernel described in codegen/wgmma/gemm_warpgroup.h. One source file per part:
//
//   gemm_warpgroup.cpp                places blocks and loops over tiles
//   gemm_warpgroup_grouped.cpp        grouped GEMM
//   gemm_warpgroup_copy.cpp           copies tiles and scales
//   gemm_warpgroup_image_boxes.cpp    copies boxes of an image
//   gemm_warpgroup_gather.cpp         gathers rows
//   gemm_warpgroup_transform.cpp      computes transformed operands
//   gemm_warpgroup_multiply.cpp       multiplies and runs the epilogue
//   gemm_warpgroup_accumulators.cpp   accumulator registers
#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/access/direct.h"
#include "codegen/expr/emit_expr.h"
#include "codegen/gemm/gemm_epilogue.h"
#include "codegen/wgmma/gemm_warpgroup.h"

namespace fusec {

class WarpgroupEmitter {
 public:
  WarpgroupEmitter(std::span<const WarpgroupPart> parts, const Graph& graph, const Target& target,
                   KernelWriter& writer);
  KernelSource emit();

 private:
  static constexpr int kSwizzleTileRows = 64,
                       kSwizzleTileBytes = 8192;                 // rows or columns per swizzled piece; bytes of one
  static constexpr int kCopierRegisters = 40, kRegisters = 232;  // each thread starts with 168
  static constexpr int kGatherRegisters = 56, kConsumerRegistersWithGather = 224;
  static constexpr int kTransformRegisters = 104, kConsumerRegistersWithTransform = 200;
  static constexpr int kCopierWarps = 4, kCopierThreads = 32 * kCopierWarps;
  static constexpr int kRowsAtATime = kCopierThreads / 8;  // rows that are gathered at a time
  static constexpr int kConsumerWarps = 4 * WarpgroupTiles::kConsumers, kScalingWarps = 3;

  // What a transformed operand is computed from. Each copying thread has pieces of it.
  struct Copies {
    const GemmOperand* operand = nullptr;
    int offset = 0;    // in the bytes copied for a stage
    std::string from;  // addresses of a thread's pieces
  };
  // The tiles of one operand in a stage.
  struct OperandTile {
    const WarpgroupOperand* operand = nullptr;
    bool left = false;
    int across = 0;                       // rows or columns of a tile
    int offset = 0;                       // of the tile in its stage, bytes
    int scales = 0;                       // offset of its scales in the stage, bytes, if they differ along K
    std::string at = {}, scales_at = {};  // names of these offsets; "" for 0
    std::string map;
    std::string rows;                      // addresses of the thread's gathered rows
    std::string table = {}, outside = {};  // an image's K-offset table; per row, the taps outside of the image
    std::string places = {};               // positions of its rows by tap, if they come from a table
    // For a transformed operand: its sources, the thread's first line in the tile, the first element of its pieces in a
    // line, and the position of the first piece in the tile.
    std::vector<Copies> copies = {};
    std::string line = {}, unit = {}, place = {};
    std::vector<std::string> begins = {};  // for boxes of an image: positions of the lane's pixels without a tap

    bool gathered() const { return operand->gathered.has_value(); }
    bool transformed() const { return operand->transformed.has_value(); }
    bool copied_by_tma() const { return !gathered() && !transformed(); }
    bool in_image_boxes() const { return operand->boxes.has_value(); }
    int piece() const { return in_image_boxes() ? operand->boxes->pixels : kSwizzleTileRows; }
    int piece_bytes() const { return kSwizzleTileBytes / kSwizzleTileRows * piece(); }
    int pieces() const { return across / piece(); }
    int bytes() const { return pieces() * piece_bytes(); }
    bool scaled() const { return !operand->scales.empty(); }
  };
  struct Loop {
    const WarpgroupLoop* form = nullptr;
    std::vector<OperandTile> operand_tiles;  // left operands first
    std::size_t left_count = 0;
    IndexExpr k_count;
    std::string k;
    int bytes = 0;                // copied by TMA per stage
    std::string bytes_name = {};  // its name

    const OperandTile& left(std::size_t i) const { return operand_tiles[i]; }
    const OperandTile& right(std::size_t i) const { return operand_tiles[left_count + i]; }
  };
  // One GEMM with its epilogue.
  struct Part {
    Part(const WarpgroupPart& given, KernelWriter& writer);
    const Kernel& kernel;
    const Contraction& contraction;  // the GEMM as it is tiled
    const Contraction& results;      // the epilogue uses its axes
    const WarpgroupGemmForm& form;
    ExprEmitter emitter;
    std::vector<Loop> loops;
    std::string down, across;  // tiles of a cluster down and across
    IndexExpr tiles;

    std::string text(const IndexExpr& e) const { return emitter.index_text().tight(simplify(e, kernel.pool.bounds())); }
    IndexExpr count(const std::vector<std::uint32_t>& axes) const { return point_count(kernel.pool, axes); }
    const std::vector<std::uint32_t>& axes(bool left) const { return left ? contraction.rows : contraction.columns; }
  };
  // `terms` terms of a loop from `first` on. Their right operands are one operand to wgmma.
  struct Multiplication {
    std::size_t first = 0, terms = 1;
  };
  // The registers of an accumulator, and those that wgmma adds to if a part of K is accumulated apart.
  struct AccumulatorRegisters {
    std::string name, accumulated;
    int first = 0;               // number of the first named PTX register
    std::string line_sums = {};  // a thread's sums of lines of the right tile, if a zero point is subtracted
  };

  // --- gemm_warpgroup.cpp
  static constexpr const char* kPieceBytes = "kPieceBytes";  // the name of kSwizzleTileBytes in the kernel
  // " + kWeightAt" for the tile of an operand in its stage; "" for the first one.
  static std::string in_stage(const OperandTile& f) { return f.at.empty() ? "" : " + " + f.at; }
  std::vector<std::string> formulas(const Part& part) const;
  std::vector<std::string> comment() const;
  void prepare(Part& part);
  Loop loop_of(const Part& part, std::size_t number);
  TensorMapBoxes boxes_of(const OperandTile& f, const Part& part, const std::vector<std::uint32_t>& k_axes) const;
  bool shared_by_cluster(const OperandTile& f) const { return !f.left && tiles_.cluster > 1; }
  int pieces_copied(const OperandTile& f) const {
    return shared_by_cluster(f) ? f.pieces() / tiles_.cluster : f.pieces();
  }
  bool scales_in_stages() const { return parts_[0]->form.scales_in_stages(); }  // for a single GEMM
  void declare_offsets();
  void declare_barriers();
  void open_tiles();
  std::string row_of(const std::string& place) const;
  std::string open_part(const std::string& tile);
  std::string open_split(const std::string& tile);
  std::string k_of(std::size_t loop) const;
  void next_stage();

  // --- gemm_warpgroup_grouped.cpp
  bool in_groups() const { return parts_[0]->form.groups.has_value(); }  // for a single GEMM
  void declare_groups();
  void open_tiles_of_groups(const std::string& tile, const std::string& place);
  std::string if_of_group(const std::string& value) const;
  void know_group(Part& part, GemmEpilogue& epilogue);

  // An expression that depends on the part, selected by the part's number.
  template <class F>
  std::string of_part(F value) const;
  // Emits lines that depend on the part.
  template <class F>
  void for_part(F write);

  // --- gemm_warpgroup_copy.cpp
  void open_steps(const std::string& k0, const std::string& all, int k);
  void copy_tiles();
  void copy(Part& part, const OperandTile& f, const std::string& k0, const std::string& into, const std::string& ready);
  void scale_tiles();
  void scale(Part& part, const ContractionLoop& contraction, const OperandTile& f, const std::string& k0,
             int first_warp);

  // --- gemm_warpgroup_image_boxes.cpp
  TensorMapBoxes boxes_of_image(const OperandTile& f, const Part& part) const;
  void place_image_boxes(Part& part, OperandTile& f);
  void copy_image_boxes(Part& part, const OperandTile& f, const std::string& k0);
  static std::string tiled_segment(const Part& part, const IndexExpr& extent);

  // --- gemm_warpgroup_gather.cpp
  bool gathers_rows() const;  // for a single GEMM
  int stages_in_flight() const;
  void gather_tiles();
  void make_tables();
  void bind_row(Part& part, const OperandTile& f, const std::string& number);
  void make_position_table(Part& part, const OperandTile& f);
  void find_rows(Part& part, OperandTile& f);
  void copy_rows(const Part& part, std::size_t loop, const OperandTile& f, const std::string& k0,
                 const std::string& to);

  // --- gemm_warpgroup_transform.cpp
  // How the copying threads divide a tile's lines of 128 bytes.
  struct Pieces {
    int elements = 0, per_line = 0;  // elements per piece; pieces per line
    int lines = 0, per_thread = 0;   // lines that all threads cover at a time; pieces per thread
  };
  bool computes() const;
  std::string in_copies(const Copies& c) const {
    return c.offset > 0 ? fmt::format("{} + {}", copies_at_, c.offset) : copies_at_;
  }
  void compute_tiles();
  void compute_steps(std::size_t number);
  std::string k_at(const std::string& step, int k) const;
  static Pieces pieces_of(const Part& part, const OperandTile& f);
  static std::string byte_of_unit(const Part& part, const OperandTile& f);
  void declare_copies(Part& part, std::size_t number);
  void place_copies(Part& part, const OperandTile& f, const Copies& c);
  std::string line_of(const Part& part, const OperandTile& f, const std::string& each) const;
  std::string across_at(Part& part, const OperandTile& f, const std::string& each) const;
  std::string k_of_piece(const Part& part, const OperandTile& f, const std::string& each) const;
  bool whole_steps(const Part& part, std::size_t loop) const;
  void compute_step(std::size_t number, const std::string& step, const std::string& copied);
  void fetch(Part& part, std::size_t number, const std::string& step, const std::string& copied);
  void compute(Part& part, std::size_t number, const OperandTile& f, const std::string& k0, const std::string& copied);

  // --- gemm_warpgroup_multiply.cpp
  void multiply_tiles();
  std::vector<Multiplication> multiplications(const Part& part, std::size_t number) const;
  int columns_of(const Part& part, const Multiplication& m) const {
    return part.form.tiles.columns * static_cast<int>(m.terms);
  }
  static DType dtype_of(const Part& part, const OperandTile& f);
  bool multiplied_alike() const;
  void multiply_tile(Part& part, const std::vector<AccumulatorRegisters>& accumulators, bool of_all);
  void multiply_loop(const Part& part, std::size_t number, std::span<const AccumulatorRegisters> accumulators,
                     bool of_all);
  void multiply_stage(const Part& part, std::size_t number, std::span<const AccumulatorRegisters> accumulators);
  std::string multiply_function(const Part& part, const OperandTile& left, const OperandTile& right,
                                const AccumulatorRegisters& accumulator, int columns, int block) const;
  void add_lines(const Part& part, std::size_t number, std::span<const AccumulatorRegisters> accumulators);
  void subtract_offsets(Part& part, std::size_t number, std::span<const AccumulatorRegisters> accumulators);
  void add_parts(const Part& part, std::size_t number, std::span<const AccumulatorRegisters> accumulators);
  void scale_accumulators(Part& part, std::size_t number, std::span<const AccumulatorRegisters> accumulators);
  void scale_accumulator(Part& part, const OperandTile& left, const OperandTile& right,
                         const AccumulatorRegisters& accumulator, const std::string& unscaled);
  void finish(Part& part, const std::vector<AccumulatorRegisters>& accumulators);
  void store_partial_accumulators(Part& part, const std::vector<AccumulatorRegisters>& accumulators);
  std::vector<TmaStore> boxes_of_outputs(Part& part);
  std::string release(const std::string& stage, const std::string& where) const;

  // --- gemm_warpgroup_accumulators.cpp
  bool accumulates_in_parts(const Part& part, std::size_t loop) const;
  bool has_named_accumulators() const;
  void declare_registers();
  std::vector<AccumulatorRegisters> declare_accumulators(const Part& part);
  std::string accumulators_of_block(const AccumulatorRegisters& accumulator, int columns, int block) const;
  std::vector<std::string> accumulators_of_terms(const Part& part,
                                                 const std::vector<AccumulatorRegisters>& accumulators, int block);

  const WarpgroupTiles& tiles_;  // of the first part; rows, stages and cluster are the same for all parts
  const Graph& graph_;
  const Target& target_;
  KernelWriter& writer_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<IndexExpr> ends_;  // index after the last tile of each part
  std::int64_t stage_bytes_ = 0, staged_bytes_ = 0, box_bytes_ = 0, shared_bytes_ = 0, copied_bytes_ = 0;
  // Names of constants: bytes, and offsets in shared memory.
  std::string stage_size_, boxes_at_, box_size_, copies_at_, copies_size_, staged_at_, staged_size_, barriers_at_;
  std::string tiles_at_, full_, empty_, count_, stage_, phase_, rank_, part_, row0_, column0_, batch_;
  // Split-K: split of the tile, its first and end step, partial results.
  std::string split_, first_step_, end_step_, partial_;
  std::string ends_of_groups_, matrix_, row_end_;  // grouped GEMM: ends of the groups, the tile's matrix and end row
};

template <class F>
std::string WarpgroupEmitter::of_part(F value) const {
  const std::string last = value(parts_.size() - 1);
  bool alike = true;
  std::string text;
  for (std::size_t p = 0; p + 1 < parts_.size(); ++p) {
    const std::string own = value(p);
    alike = alike && own == last;
    text += part_ + " == " + std::to_string(p) + " ? " + own + " : ";
  }
  return alike ? last : "(" + text + last + ")";
}

template <class F>
void WarpgroupEmitter::for_part(F write) {
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const bool last = p + 1 == parts_.size();
    if (parts_.size() > 1 && p == 0) writer_.open("if (" + part_ + " == 0)");
    if (p > 0) {
      writer_.close(last ? "} else {" : "} else if (" + part_ + " == " + std::to_string(p) + ") {");
      writer_.reopen();
    }
    write(*parts_[p]);
  }
  if (parts_.size() > 1) writer_.close();
}

}  // namespace fusec
