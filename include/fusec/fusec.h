// fusec as a library: build or read a graph, compile it, get every result as a value.
//
//   fusec::ModelBuilder builder("swiglu");
//   builder.symbol("tokens", {.max = 8192});
//   const auto gate = builder.input("gate", "bfloat16", {"tokens", 14336});
//   const auto up = builder.input("up", "bfloat16", {"tokens", 14336});
//   builder.output(builder.op("mul", {builder.op("silu", {gate}), up}));
//   const fusec::Compilation c = fusec::compile(builder.build(), {.arch = "sm_90a"});
//   c.source;      // out.cu
//   c.kernels[0];  // its name, schedule, source, and with .ptx = true its PTX and cubin
//
// Functions print nothing, never exit, and may be called from several threads at once on different objects; a Model and
// a Registry are immutable once made. What goes wrong is a fusec::Error (fusec/error.h); where memory runs out it may
// be std::bad_alloc. After either, nothing is left allocated, and the library works as before.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fusec/error.h"
#include "fusec/resource_limits.h"

namespace fusec {

class Graph;
class OpTable;

// A dimension: a number, or an expression of symbols ("2*tokens").
struct Dimension {
  Dimension(std::int64_t extent) : value(extent) {}                      // NOLINT(google-explicit-constructor)
  Dimension(int extent) : value(std::int64_t{extent}) {}                 // NOLINT(google-explicit-constructor)
  Dimension(const char* expression) : value(std::string(expression)) {}  // NOLINT(google-explicit-constructor)
  Dimension(std::string expression) : value(std::move(expression)) {}    // NOLINT(google-explicit-constructor)
  std::variant<std::int64_t, std::string> value;
};

struct TensorInfo {
  std::string dtype;  // "bfloat16": the names of ml_dtypes
  std::vector<Dimension> shape;
};

// --- operators of one's own

struct OpDescription {
  std::string name;                   // "my.scale_shift"
  std::vector<std::string> operands;  // "x", "bias?" for an optional one
  std::string pattern = "opaque";     // its pattern kind: elemwise, broadcast, injective, comm_reduce, ...
  // What it computes, for elementwise and broadcasting ops: "$0 * sigmoid($1)". Empty: an external launcher.
  std::string expression;
  // The launcher's symbol, an identifier, as the emitted host part calls it. Without it and without an expression the
  // op can be read, annotated and partitioned, not compiled.
  std::string launcher;
  // The result's dtype and shape from the operands'. Empty: the broadcast of the operands, with the first one's dtype.
  // What it throws reaches whoever reads or builds the model.
  std::function<TensorInfo(const std::vector<TensorInfo>&)> infer;
};

// The operators that models may use: those of the format, and those added. A value.
class Registry {
 public:
  Registry();
  Registry(const Registry&) = default;  // without a move constructor: a moved-from object keeps its value
  Registry& operator=(const Registry&) = default;
  // Throws Error(kUsage) where the name is taken, Error(kInput) where the expression cannot be right for any operands.
  Registry with(OpDescription op) const;
  std::vector<std::string> op_names() const;
  const OpTable& table() const { return *table_; }

 private:
  std::shared_ptr<const OpTable> table_;
};

// --- models

// An input, a constant or an output.
struct ModelTensor {
  std::string name;
  TensorInfo type;
  bool is_known = false;  // a constant with its elements in the model file or a weight file
};

class Model {
 public:
  // "-" is standard input. Throws Error(kInput) where a limit is exceeded.
  static Model read(const std::string& path, const Registry& registry = {}, const ResourceLimits& resources = {});
  // Weight files are looked for in `directory`.
  static Model parse(std::string_view json, const std::string& directory = ".", const Registry& registry = {},
                     const ResourceLimits& resources = {});

  std::string name() const;
  std::string directory() const;                // where weight files are looked for
  std::vector<std::string> node_names() const;  // in topological order
  std::vector<ModelTensor> inputs() const;      // in the order of a call
  std::vector<ModelTensor> constants() const;
  std::vector<ModelTensor> outputs() const;  // a value may stand twice
  // The elements of a constant that is_known, as they lie in memory. Throws Error(kUsage) for any other name.
  std::vector<std::byte> constant_bytes(const std::string& name) const;
  std::string to_json() const;
  std::string to_text() const;

  Model(const Model&) = default;  // without a move constructor: a moved-from object keeps its value
  Model& operator=(const Model&) = default;

  // Internal: the graph behind it.
  explicit Model(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {}
  const Graph& graph() const { return *graph_; }

 private:
  std::shared_ptr<const Graph> graph_;
};

struct SymbolRange {
  std::int64_t min = 1, max = 2147483647, multiple_of = 1;
  std::optional<std::int64_t> hint;
};

class ModelBuilder {
 public:
  // A value of the model under construction. One that is made of a name alone belongs to any builder.
  struct Value {
    std::string name;
    std::uint64_t builder = 0;  // which builder returned it
  };
  using Operand =
      std::variant<Value, double, std::int64_t, bool, std::nullptr_t>;  // finite numbers: weakly typed scalars
  using AttributeValue =
      std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<std::string>>;
  struct Attribute {
    std::string name;
    AttributeValue value;
  };

  explicit ModelBuilder(std::string name, Registry registry = {});
  ~ModelBuilder();
  ModelBuilder(ModelBuilder&&) noexcept;
  ModelBuilder& operator=(ModelBuilder&&) noexcept;

  std::string name() const;  // of the model
  void symbol(const std::string& name, SymbolRange range = {});  // each name once
  Value input(const std::string& name, const std::string& dtype, std::vector<Dimension> shape);
  Value constant(const std::string& name, const std::string& dtype, std::vector<Dimension> shape);
  Value constant(const std::string& name, const std::string& dtype, std::vector<Dimension> shape,
                 std::vector<double> data);  // of bool 0 and 1
  // 64-bit integers, which a double would round beyond 2^53.
  template <typename T>
  requires(std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t>)
  Value constant(const std::string& name, const std::string& dtype, std::vector<Dimension> shape,
                 const std::vector<T>& data);
  // A node with one result. Where `name` is empty, one is made that is free so far; nothing later can be given it.
  Value op(const std::string& op, std::vector<Operand> operands, std::vector<Attribute> attributes = {},
           const std::string& name = "");
  // A node with `count` results (split, topk), at most 2^20.
  std::vector<Value> op_several(const std::string& op, std::size_t count, std::vector<Operand> operands,
                                std::vector<Attribute> attributes = {}, const std::string& name = "");
  // Throws Error(kUsage) for a Value of another builder, as `op` does.
  void output(const Value& value);

  // Checks the whole model and infers its types. Errors carry the JSON pointer of the model as `Model::to_json` writes
  // it.
  Model build(const ResourceLimits& resources = {}) const;

 private:
  struct State;
  State& state() const;  // Throws Error(kUsage) where the builder was moved from.
  std::unique_ptr<State> state_;
};

// --- compilation

// A value that a pattern found.
struct MatchedValue {
  std::string name;      // in the pattern: "gate"
  std::string value;     // in the model; of a number its digits
  TensorInfo type;       // without dtype for numbers
  std::string producer;  // the node that makes it; "" for inputs, constants and numbers
  std::vector<std::string> users;
  bool is_output = false;
};

// What a pattern of one's own found, for its check: the root, all nodes of the match, every named value with all its
// uses, and the attributes that the pattern binds.
struct MatchedPattern {
  std::string pattern, root;
  std::vector<std::string> nodes;
  std::vector<MatchedValue> values;
};

// One pattern or several, as a pattern file has them (docs/patterns.md), and what their text cannot say.
struct PatternText {
  std::string text;
  std::function<std::string(const MatchedPattern&)> check;  // "" for yes, else why not
  std::function<std::vector<std::pair<std::string, std::string>>(const MatchedPattern&)> attributes;  // of the group
};

struct Progress {
  std::string_view stage;           // a pass of passes_in_order()
  std::size_t done = 0, total = 0;  // of the stage's pieces of source, where it is NVRTC's; else 0 of 0
};

struct Options {
  std::string strategy = "full";      // none, tvm or full
  std::string arch = "sm_80";         // "native": the GPU at hand, as the driver names it
  std::string target;                 // "": that of `arch`; or a known one's name, or a file (target.schema.json)
  std::uint32_t max_fused_ops = 256;  // at least 1
  std::uint32_t max_args = 0;         // 0: the strategy's own limit
  std::string gemm = "builtin";       // who multiplies matrices under full: builtin, cublaslt or auto
  std::vector<std::string> no_fuse_ops, no_fuse_nodes;
  std::vector<PatternText> patterns;           // besides the built-in ones; of equal priority, these are tried first
  std::vector<std::string> pattern_files;      // the same from files
  std::vector<std::string> disabled_patterns;  // names; "all" for all
  std::vector<std::string> disabled_passes;    // of `full`, left out: "merge-siblings", ... as in --list-passes
  double plan_deadline = 0;  // seconds of planning, after which the best plan so far is taken; 0: none
  std::string plan;          // compile with this (edited) Compilation::plan; verified like fusec's own plans
  std::string tuning_file;   // measured configurations, as `fusec-run --tune` keeps them; "" for none
  std::map<std::string, std::int64_t> symbols;  // values that costs and reports take for symbols, else their hints
  // Numerics (docs/numerics.md).
  bool round_intermediates = false;  // fused intermediates are rounded to their dtypes, nothing contracts across nodes
  bool precise_math = false;         // CUDA's own functions and IEEE division in place of the fast forms
  bool allow_tf32 = false;           // float32 products in one pass of tf32 (docs/numerics.md)
  bool allow_atomics = false;        // float atomics: results may differ; no kernel has such a form yet
  bool report = false;          // Compilation::report is filled in, for which the model is planned under each strategy
  bool ptx = false;             // compile with NVRTC: KernelInfo::ptx and ::cubin are filled in
  int jobs = 0;                 // NVRTC compilations at a time; 0: as many as there are processors
  std::string cache_directory;  // where NVRTC's results are kept; "" for nowhere
  std::uint64_t cache_bytes = 512 << 20;  // its size limit; the least recently used entries are removed
  // The absolute path of libnvrtc; "": looked for (codegen/nvrtc/nvrtc_search_paths.h). FUSEC_NVRTC wins.
  std::string nvrtc_library;
  // Called as the compilation goes on; of NVRTC's part from the threads that it has, one call at a time. What it throws
  // ends the compilation.
  std::function<void(const Progress&)> progress;
  // Of each call that takes these options. Past a limit it throws Error(kInput).
  ResourceLimits resources;
};

struct Group {
  std::string name;
  std::vector<std::string> nodes;
  std::string pattern;
  std::string claimed_by;                                       // the fusion pattern that claimed it; "" for none
  std::vector<std::pair<std::string, std::string>> attributes;  // that the fusion pattern gave it
};

struct KernelInfo {
  std::string name;                               // of the __global__ function
  std::string schedule;                           // "pointwise", "contraction_mma", ...
  std::string source;                             // its text
  std::shared_ptr<const std::string> ptx, cubin;  // of the module that it is in, shared by the module's kernels
};

struct CompilationDetails;

struct Compilation {
  std::string identifier;     // M of the host interface
  std::string source;         // out.cu
  std::string manifest;       // JSON
  std::string partition;      // the partition report, JSON
  std::string plan;           // the plan file, JSON
  std::string report;         // where Options::report: what the cost model predicts, JSON
  std::vector<Group> groups;  // in execution order
  std::vector<KernelInfo> kernels;
  std::vector<std::string> diagnostics;               // warnings
  std::shared_ptr<const CompilationDetails> details;  // for the functions of fusec/inspect.h
};

// The whole pipeline. Throws Error(kEnvironment) where PTX is asked for and NVRTC is missing or refuses the source.
Compilation compile(const Model& model, const Options& options = {});

// --- single passes

struct PassInfo {
  std::string name, summary;
  bool rewrites = false;  // from graph to graph: run_pass runs it
};

// What a compilation does, in order.
std::vector<PassInfo> passes_in_order();
// One rewriting pass alone ("simplify-algebra"). Throws Error(kUsage), which lists the passes, for any other name.
Model run_pass(const Model& model, std::string_view pass, const Options& options = {});
// The pattern kind of every node, by node: the pass "annotate".
std::vector<std::string> annotate_patterns(const Model& model, const std::string& strategy = "full");
struct PatternInfo {
  std::string name, summary, match, becomes;
  int priority = 0;
};
// The fusion patterns in the order in which they are tried.
std::vector<PatternInfo> patterns_in_order(const Options& options = {});
// The groups alone: everything up to the pass "fuse", no code generation.
std::vector<Group> partition(const Model& model, const Options& options = {});

std::string_view version();

// Where the programs keep NVRTC's results, for Options::cache_directory: $XDG_CACHE_HOME/fusec, else ~/.cache/fusec. ""
// where there is none, or where others can write to it.
std::string users_cache_directory();

}  // namespace fusec
