// The steps of one sum of a convolution (schedule/gemm/convolution_form.h) along its depth: tiles of the next ones are
// on their way while this one is multiplied.
#pragma once

#include <string>
#include <vector>

#include "codegen/convolution/convolution_tile_loader.h"

namespace fusec {

// Names of C variables, or numbers: where the block's tile begins, the pipeline's shared memory, the registers of the
// sum, and the block's first step along the depth and the one behind its last.
struct ConvolutionMainloopContext {
  std::string row0, column0, stages, sum, first, end;
};

class ConvolutionMainloop {
 public:
  ConvolutionMainloop(const Kernel& kernel, const Contraction& product, const ConvolutionForm& form,
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
  const ConvolutionOperandTile* beside_offset() const;
  void take_offset(const ConvolutionOperandTile& other);
  void steps_in_lanes(const std::string& wait, const std::string& next_reading,
                      const std::vector<std::string>& fetch_next);

  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string stages_, sum_, first_, end_;
  std::string other_quantized_;  // the other factor's, added up beside an offset
  std::string fetch_, keep_;     // functions of the emitted text; keep_: "" where nothing goes by way of registers
  ConvolutionTileLoader operand_tiles_;
  const ConvolutionOperandTile &left_, &right_;
};

}  // namespace fusec
