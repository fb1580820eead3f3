// The steps of one sum of a convolution (analysis/convolution_form.h) along its depth: tiles of the next ones are on
// their way while this one is multiplied.
#pragma once

#include <string>
#include <vector>

#include "codegen/schedules/convolution_tiles.h"

namespace fusec {

// Names of C variables, or numbers: where the block's tile begins, the pipeline's shared memory, the registers of the
// sum, and the block's first step along the depth and the one behind its last.
struct ConvolutionPlace {
  std::string row0, column0, stages, sum, first, end;
};

class ConvolutionLoop {
 public:
  ConvolutionLoop(const Kernel& kernel, const Product& product, const ConvolutionForm& form, KernelWriter& writer,
                  ExprEmitter& emitter);

  void emit(const ConvolutionPlace& place);
  std::int64_t steps() const { return factors_.steps(); }

 private:
  std::string fetch(const std::string& step, const std::string& into) const;
  void fetch_first();
  void fetch_first_in_loop();
  void steps_on_tensor_cores(const std::string& wait, const std::string& next_reading,
                             const std::vector<std::string>& fetch_next);
  void declare_words(const ConvolutionTile& t, int slices);
  const ConvolutionTile* beside_offset() const;
  void take_offset(const ConvolutionTile& other);
  void steps_in_lanes(const std::string& wait, const std::string& next_reading,
                      const std::vector<std::string>& fetch_next);

  const ConvolutionForm& form_;
  const GemmTiles& tiles_;
  const ExprPool& pool_;
  KernelWriter& writer_;
  ExprEmitter& emitter_;
  std::string stages_, sum_, first_, end_;
  std::string codes_;         // the other factor's, added up beside an offset
  std::string fetch_, keep_;  // functions of the emitted text; keep_: "" where nothing goes by way of registers
  ConvolutionTiles factors_;
  const ConvolutionTile &left_, &right_;
};

}  // namespace fusec
