// Collects one kernel: statements (codegen/stmt), parameters, unique names, and the prelude parts that it calls.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/kernel/kernel.h"
#include "codegen/expr/identifiers.h"
#include "codegen/expr/index_text.h"
#include "codegen/expr/kernel_source.h"
#include "codegen/stmt/statement_builder.h"

namespace fusec {

// How elements of a dtype are stored and converted to and from the compute type.
std::string storage_type(DType dtype);                    // "bf16", "float", "unsigned char"
std::string widen(DType dtype, std::string_view stored);  // "from_bf16(stored)"
std::string narrow(DType dtype, std::string_view value);  // "to_bf16(value)": the stored form
std::string prelude_part(DType dtype);                    // "bf16"; "" if none is needed
std::string c_type(ScalarType type);                      // "float", "long long"

class KernelWriter : public StatementBuilder {
 public:
  KernelWriter(const Graph& graph, bool wide_index);

  bool wide() const { return wide_; }
  std::string index_type() const { return wide_ ? "long long" : "int"; }
  std::string unique(std::string_view preferred_name);
  // Declares a variable of the preferred name, and returns its name.
  std::string declared(std::string_view type, std::string_view preferred_name, const CExpr& value);
  // Format the text first.
  using StatementBuilder::line;
  using StatementBuilder::open;
  template <class First, class... Rest>
  void line(fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
    line(fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  template <class First, class... Rest>
  void open(fmt::format_string<First, Rest...> text, First&& first, Rest&&... rest) {
    open(fmt::format(text, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  // Open `for (int i = 0; i < count; ++i)`, unrolled, and the block's loop over 0 .. count - 1, `threads` at a time.
  void open_unrolled(std::string_view variable, std::string_view count);
  void open_unrolled(std::string_view variable, std::int64_t count);
  void open_strided(std::string_view variable, std::string_view count, int threads);
  void open_strided(std::string_view variable, std::int64_t count, int threads);
  void use(const std::string& prelude_part_name);
  void use(DType dtype) { use(prelude_part(dtype)); }

  // The names of parameters. The first call for a value adds the parameter.
  const std::string& input(ValueId value);
  const std::string& output(ValueId value);
  // An output that TMA stores and that lanes store to as well.
  const std::string& output_with_lane_stores(ValueId value);
  const std::string& symbol(std::uint32_t id);
  // Adds a scratch-memory parameter and returns its name. `type_and_name` is, for example, "float partial".
  std::string workspace(const IndexExpr& bytes, std::uint32_t scratch, std::string_view type_and_name);
  // Adds `count` counters that are 0 when the kernel starts, and must be when it ends (codegen/launch/lower_plan).
  std::string counters(const IndexExpr& count, std::uint32_t scratch);

  // Adds a TMA descriptor of the tensor, for reads or (`written`) for stores.
  std::string tensor_map(ValueId value, TensorMapBoxes boxes, bool written = false);

  // Simplifies the statements, shortens their names, and lets `finish` break long lines. Call it just before `finish`.
  // Every declaration must be a statement: a variable that `line()` declares is taken for a global name.
  void tidy();

  // Builds the kernel source. `cluster` is the cluster size along x, in blocks. The caller fills in the grid, the
  // shared memory and the schedule's name.
  KernelSource finish(const std::vector<std::string>& comment, int threads, int min_blocks = 0, int cluster = 1);

  const TensorType& tensor_type(ValueId value) const { return graph_.tensor(value); }
  // The name of a value in source before it is made unique.
  std::string preferred_name(ValueId value) const;

  std::set<std::string> prelude;

 private:
  struct Parameter {
    KernelParameter parameter;
    std::string type;  // "const bf16* __restrict__ "
  };
  const std::string& tensor(ValueId value, bool written);
  // If the parameter list is too long, keeps only scratch memory and a table in it. Returns the lines that read the
  // table.
  std::string move_to_table(std::vector<Parameter>& listed, KernelSource& source);

  const Graph& graph_;
  bool wide_;
  UniqueNames names_;
  std::map<std::string, std::string, std::less<>> wanted_;  // unique name -> preferred name
  std::map<ValueId, std::size_t> tensors_;                  // indices into inputs_ or outputs_
  std::map<std::uint32_t, std::string> symbols_;
  std::set<ValueId> lane_stored_;  // by lanes in addition to TMA
  std::vector<Parameter> maps_, inputs_, outputs_, workspaces_, sizes_;
  std::size_t columns_ = 0;  // where lines of statements are broken; 0: nowhere
};

// "__launch_bounds__(256, 2)". Blocks 0: no minimum.
std::string launch_bounds(int threads, int min_blocks_per_multiprocessor);

// The name of a kernel before it has its final name, such as "silu_mul".
std::string kernel_name(const Graph& graph, const std::vector<NodeId>& nodes);
// Replaces the comment above a kernel. The sentence on its work comes last.
void set_comment(KernelSource& source, std::vector<std::string> lines);

// The comment above a kernel: what it computes, in the graph's names.
std::vector<std::string> kernel_comment(const Graph& graph, const Kernel& kernel);

}  // namespace fusec
