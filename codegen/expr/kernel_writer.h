// Collects the text of one kernel: its lines with their indentation, its parameters, its names, the prelude's parts it
// calls.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/identifiers.h"
#include "codegen/expr/index_text.h"
#include "codegen/expr/kernel_source.h"

namespace fusec {

// How a dtype's elements lie in memory and become values of the compute type.
std::string storage_type(DType dtype);                    // "bf16", "float", "unsigned char"
std::string widen(DType dtype, std::string_view stored);  // "from_bf16(stored)"
std::string narrow(DType dtype, std::string_view value);  // "to_bf16(value)": what is stored
std::string prelude_part(DType dtype);                    // "bf16", "" where nothing is needed
std::string c_type(ScalarType type);                      // "float", "long long"

class KernelWriter {
 public:
  KernelWriter(const Graph& graph, bool wide_index);

  bool wide() const { return wide_; }
  std::string index_type() const { return wide_ ? "long long" : "int"; }
  std::string unique(std::string_view preferred_name) { return names_.take(preferred_name); }
  void use(const std::string& prelude_part_name);
  void use(DType dtype) { use(prelude_part(dtype)); }

  // Names of parameters; each is added when first asked for.
  const std::string& input(ValueId value);
  const std::string& output(ValueId value);
  // Of what TMA stores: lanes store to it as well.
  const std::string& output_with_lane_stores(ValueId value);
  const std::string& symbol(std::uint32_t id);
  // Scratch memory; `type_and_name` is "float partial".
  std::string workspace(const IndexExpr& bytes, std::uint32_t scratch, std::string_view type_and_name);

  // The tensor as TMA sees it, from which it is read or to which it is written.
  std::string tensor_map(ValueId value, TensorMapBoxes boxes, bool written = false);

  void line(std::string_view text);
  void open(std::string_view text);  // "for (...)": adds " {" and indents
  void close(std::string_view text = "}");
  void reopen() { ++depth_; }  // after close("} else {")
  void blank() { text_ += '\n'; }

  // The whole function; `cluster` blocks along x are one cluster. Sizes (grid, shared) and the schedule's name are the
  // caller's to fill in.
  KernelSource finish(const std::vector<std::string>& comment, int threads, int min_blocks = 0, int cluster = 1);

  const TensorType& tensor_type(ValueId value) const { return graph_.tensor(value); }
  // The name of a value in source, before it is made unique.
  std::string preferred_name(ValueId value) const;

  std::set<std::string> prelude;

 private:
  struct Parameter {
    KernelParameter parameter;
    std::string type;  // "const bf16* __restrict__ "
  };
  const std::string& tensor(ValueId value, bool written);
  // Where the list is too long, leaves scratch memory and a table in it, and returns the lines that read the table.
  std::string move_to_table(std::vector<Parameter>& listed, KernelSource& source);

  const Graph& graph_;
  bool wide_;
  UniqueNames names_;
  std::map<ValueId, std::size_t> tensors_;  // into inputs_ or outputs_
  std::map<std::uint32_t, std::string> symbols_;
  std::set<ValueId> lane_stored_;  // beside TMA
  std::vector<Parameter> maps_, inputs_, outputs_, workspaces_, sizes_;
  std::string text_;
  int depth_ = 1;
};

// "silu_mul": what a kernel is called before it has its final name.
// "__launch_bounds__(256, 2)"; 0 blocks: none said.
std::string launch_bounds(int threads, int min_blocks_per_multiprocessor);

std::string kernel_name(const Graph& graph, const std::vector<NodeId>& nodes);
// The comment above a kernel: what it computes, with the graph's names.
std::vector<std::string> kernel_comment(const Graph& graph, const Kernel& kernel);

}  // namespace fusec
