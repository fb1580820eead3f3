// Emits the K loop of one accumulator of a convolution (schedule/gemm/convolution_form.h). The loads of the next tiles
// overlap with the multiplication of the current one.
#pragma once

#include <string>
#include <vector>

#include "codegen/convolution/convolution_tile_loader.h"

namespace fusec {

// Names of C variables, or numbers: the block's tile origin, the pipeline's shared memory, the accumulator registers,
// and the block's K range as steps [first, end).
struct ConvolutionMainloopContext {
  std::string row0, column0, stages, sum, first, end;
};

class ConvolutionMainloop {
 public:
  ConvolutionMainloop(const Kernel& kernel, const Contraction& contraction, const ConvolutionForm& form,
                      KernelWriter& writer, ExprEmitter& emitter);

  void emit(const ConvolutionMainloopContext& place);
  std::int64_t steps() const { return operand_tiles_.steps(); }

 private:
  std::string fetch(const std::string& step, const std::string& into) const;
  void fetch_first();
  void fetch_first_in_loop();
  void steps_on_tensor_cores(const std::string& wait, const std::string& next_reading,
                             const std::vector<std::string>& fetch_next);
  void declare_words(const ConvolutionOperandTile& t, int slices);
  const ConvolutionOperandTile* other_with_offset() const;
  void take_offset(const ConvolutionOperandTile& other);
  void steps_in_lanes(const std::string& wait, const std::string& next_reading,
                      const std::vector<std::string>& fetch_next);

  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string stages_, accumulator_, first_, end_;
  std::string other_quantized_;  // accumulated quantized values of the other operand, for a zero point
  std::string fetch_, keep_;     // names of device functions; keep_: "" if nothing is staged in registers
  ConvolutionTileLoader operand_tiles_;
  const ConvolutionOperandTile &left_, &right_;
};

}  // namespace fusec
