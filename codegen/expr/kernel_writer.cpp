#include "codegen/expr/kernel_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "codegen/expr/parameter_table.h"
#include "codegen/prelude/prelude.h"
#include "codegen/stmt/print_statements.h"
#include "codegen/stmt/shorten_names.h"
#include "codegen/stmt/simplify_statements.h"
#include "ir/budget.h"
#include "ir/error.h"
#include "schedule/target/target.h"

namespace fusec {
std::string storage_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "double";
    case DType::kFloat32:
      return "float";
    case DType::kFloat16:
      return "fp16";
    case DType::kBFloat16:
      return "bf16";
    case DType::kFloat8E4M3FN:
      return "fp8_e4m3";
    case DType::kFloat8E5M2:
      return "fp8_e5m2";
    case DType::kFloat8E8M0FNU:
      return "e8m0";
    case DType::kFloat4E2M1FN:
      return "fp4_e2m1";
    case DType::kInt64:
      return "long long";
    case DType::kInt32:
      return "int";
    case DType::kInt16:
      return "short";
    case DType::kInt8:
      return "signed char";
    case DType::kInt4:
      return "int4_pair";
    case DType::kUInt64:
      return "unsigned long long";
    case DType::kUInt32:
      return "unsigned";
    case DType::kUInt16:
      return "unsigned short";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kUInt4:
      return "uint4_pair";
    case DType::kBool:
      return "unsigned char";
  }
  throw InternalError("unknown dtype");
}

std::string prelude_part(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E8M0FNU:
    case DType::kFloat4E2M1FN:
      return storage_type(dtype);
    case DType::kInt4:
      return "int4";
    case DType::kUInt4:
      return "uint4";
    default:
      return "";
  }
}

std::string widen(DType dtype, std::string_view stored) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E8M0FNU:
    case DType::kFloat4E2M1FN:
      return fmt::format("from_{}({})", storage_type(dtype), stored);
    case DType::kInt4:
      return fmt::format("from_int4({})", stored);
    case DType::kBool:
      return fmt::format("({} != 0)", stored);
    case DType::kInt16:
    case DType::kInt8:
      return fmt::format("(int){}", stored);
    case DType::kUInt16:
    case DType::kUInt8:
      return fmt::format("(unsigned){}", stored);
    default:
      return std::string(stored);
  }
}

std::string narrow(DType dtype, std::string_view value) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E8M0FNU:
    case DType::kFloat4E2M1FN:
      return fmt::format("to_{}({})", storage_type(dtype), value);
    case DType::kInt4:
    case DType::kUInt4:
      return fmt::format("((unsigned)({}) & 15u)", value);
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt16:
    case DType::kUInt8:
    case DType::kBool:
      return fmt::format("({})({})", storage_type(dtype), value);
    default:
      return std::string(value);
  }
}

std::string c_type(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return "bool";
    case ScalarType::kInt32:
      return "int";
    case ScalarType::kUInt32:
      return "unsigned";
    case ScalarType::kInt64:
      return "long long";
    case ScalarType::kUInt64:
      return "unsigned long long";
    case ScalarType::kFloat32:
      return "float";
    case ScalarType::kFloat64:
      return "double";
  }
  throw InternalError("unknown scalar type");
}

namespace {

// Names that model values must not get: those of the prelude, and those that schedules write literally.
bool is_fixed_name(std::string_view name) {
  constexpr std::string_view kLiteralNames[] = {"warp",          "warp_lane",  "warp_row",       "warp_column",
                                                "group",         "group_lane", "dynamic_shared", "thread_row",
                                                "thread_column", "tile_item"};
  return std::ranges::find(kLiteralNames, name) != std::end(kLiteralNames) || is_prelude_name(name);
}

// Local variables that schedules write literally, in scopes of a few lines. A symbol of the same name would be hidden
// there, and NVRTC would take the variable for it without an error. A hidden tensor is an error, so tensors keep such
// names, "w" and "b" among them. tests/check_hidden_names.py looks for names that are missing here.
bool is_local_name(std::string_view name) {
  constexpr std::string_view kLocalNames[] = {
      "a",     "b", "buffer", "by",      "d", "depth", "e",     "i",    "j",     "k",    "kk", "load", "n",
      "place", "r", "raw",    "reading", "s", "slice", "stage", "step", "there", "turn", "v",  "w",    "weight"};
  return std::ranges::find(kLocalNames, name) != std::end(kLocalNames);
}

}  // namespace

KernelWriter::KernelWriter(const Graph& graph, bool wide_index)
    : graph_(graph), wide_(wide_index), names_(is_fixed_name) {}

void KernelWriter::open_unrolled(std::string_view variable, std::string_view count) {
  line("#pragma unroll");
  open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", variable, count));
}
void KernelWriter::open_unrolled(std::string_view variable, std::int64_t count) {
  open_unrolled(variable, std::to_string(count));
}

void KernelWriter::open_strided(std::string_view variable, std::string_view count, int threads) {
  open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", variable, count, threads));
}
void KernelWriter::open_strided(std::string_view variable, std::int64_t count, int threads) {
  open_strided(variable, std::to_string(count), threads);
}

void KernelWriter::use(const std::string& part) {
  if (!part.empty()) prelude.insert(part);
}

std::string KernelWriter::preferred_name(ValueId value) const {
  const std::string& text = graph_.value(value).name;
  return text.empty() ? "value" : text;
}

const std::string& KernelWriter::tensor(ValueId value, bool written) {
  auto& list = written ? outputs_ : inputs_;
  const auto [it, fresh] = tensors_.try_emplace(value, list.size());
  if (fresh) {
    const DType dtype = graph_.tensor(value).dtype;
    use(dtype);
    KernelParameter parameter{.name = unique(preferred_name(value)), .value = value, .written = written};
    list.push_back({std::move(parameter), (written ? "" : "const ") + storage_type(dtype) + "* __restrict__ "});
  }
  return list.at(it->second).parameter.name;
}

const std::string& KernelWriter::input(ValueId value) {
  return tensor(value, false);
}
const std::string& KernelWriter::output(ValueId value) {
  return tensor(value, true);
}

const std::string& KernelWriter::output_with_lane_stores(ValueId value) {
  lane_stored_.insert(value);
  return tensor(value, true);
}

const std::string& KernelWriter::symbol(std::uint32_t id) {
  const auto [it, fresh] = symbols_.try_emplace(id);
  if (fresh) {
    const std::string& name = graph_.symbols.at(id).name;
    it->second = unique(is_local_name(name) ? "dim_" + name : name);
    sizes_.push_back({{.kind = KernelParameter::Kind::kSize,
                       .name = it->second,
                       .size = IndexExpr::symbol(id),
                       .bits = wide_ ? 64 : 32},
                      "const " + index_type() + " "});
  }
  return it->second;
}

std::string KernelWriter::workspace(const IndexExpr& bytes, std::uint32_t scratch, std::string_view type_and_name) {
  const std::size_t space = type_and_name.rfind(' ');
  const std::string name = unique(type_and_name.substr(space + 1));
  workspaces_.push_back(
      {{.kind = KernelParameter::Kind::kWorkspace, .name = name, .written = true, .size = bytes, .scratch = scratch},
       std::string(type_and_name.substr(0, space)) + "* __restrict__ "});
  return name;
}

std::string KernelWriter::counters(const IndexExpr& count, std::uint32_t scratch) {
  std::string name = workspace(count * 4, scratch, "unsigned arrived");
  workspaces_.back().parameter.counters = true;
  return name;
}

std::string KernelWriter::tensor_map(ValueId value, TensorMapBoxes boxes, bool written) {
  use("tensor_map");
  for (const Parameter& p : maps_)
    if (p.parameter.value == value && p.parameter.boxes == boxes && p.parameter.written == written)
      return p.parameter.name;
  const std::string name = unique(preferred_name(value) + "_map");
  maps_.push_back({{.kind = KernelParameter::Kind::kTensorMap,
                    .name = name,
                    .value = value,
                    .written = written,
                    .boxes = std::move(boxes)},
                   "const __grid_constant__ TensorMap "});
  return name;
}

std::string KernelWriter::unique(std::string_view preferred_name) {
  std::string name = names_.take(preferred_name);
  wanted_.emplace(name, clean_identifier(preferred_name));
  return name;
}

std::string KernelWriter::declared(std::string_view type, std::string_view preferred_name, const CExpr& value) {
  std::string name = unique(preferred_name);
  declare(type, name, value);
  return name;
}

void KernelWriter::tidy() {
  constexpr std::size_t kColumns = 110;
  columns_ = kColumns;
  simplify_statements(root_, wanted_);
  std::vector<std::string> parameters;
  // A part of a horizontal fusion has its block's number in `block`.
  std::set<std::string, std::less<>> taken = {"block", "blockIdx", "threadIdx"};
  const auto each_parameter = [&](const auto& visit) {
    for (auto* list : {&maps_, &inputs_, &outputs_, &workspaces_, &sizes_}) std::ranges::for_each(*list, visit);
  };
  each_parameter([&](const Parameter& p) {
    parameters.push_back(p.parameter.name);
    for_each_word(p.type,
                  [&](std::size_t first, std::size_t last) { taken.insert(p.type.substr(first, last - first)); });
  });
  const auto names = shorten_names(root_, parameters, wanted_, std::move(taken));
  each_parameter([&](Parameter& p) { p.parameter.name = names.at(p.parameter.name); });
}

std::string KernelWriter::move_to_table(std::vector<Parameter>& listed, KernelSource& source) {
  std::vector<KernelParameter> all;
  for (const Parameter& p : listed) all.push_back(p.parameter);
  if (parameter_bytes(all) <= kMaxParameterBytes) return "";
  const std::string table = unique("parameter_table");
  std::vector<Parameter> kept{
      {{.kind = KernelParameter::Kind::kWorkspace, .name = table}, "const unsigned long long* __restrict__ "}};
  std::string prologue;
  for (Parameter& p : listed) {
    count_step();
    if (p.parameter.kind == KernelParameter::Kind::kWorkspace ||
        p.parameter.kind == KernelParameter::Kind::kTensorMap) {
      kept.push_back(std::move(p));
      continue;
    }
    std::string type = p.type.substr(0, p.type.find(" __restrict__"));
    if (p.parameter.kind == KernelParameter::Kind::kSize) type = index_type();
    prologue +=
        fmt::format("  {}{} = ({}){}[{}];\n", p.type, p.parameter.name, type, table, source.table_parameters.size());
    source.table_parameters.push_back(std::move(p.parameter));
  }
  kept.front().parameter.size = static_cast<std::int64_t>(8 * source.table_parameters.size());
  listed = std::move(kept);
  return prologue;
}

std::string launch_bounds(int threads, int min_blocks_per_multiprocessor) {
  return fmt::format("__launch_bounds__({}{})", threads,
                     min_blocks_per_multiprocessor > 0 ? fmt::format(", {}", min_blocks_per_multiprocessor) : "");
}

void set_comment(KernelSource& source, std::vector<std::string> lines) {
  if (!source.work.empty()) lines.push_back(source.work);
  std::string comment;
  for (const std::string& line : lines) comment += "// " + line + "\n";
  source.text.replace(0, source.comment.size(), comment);
  source.comment = std::move(comment);
}

KernelSource KernelWriter::finish(const std::vector<std::string>& comment, int threads, int min_blocks, int cluster) {
  if (!complete()) throw InternalError("a body of emitted statements does not end");
  KernelSource source;
  for (const std::string& text : comment) source.comment += "// " + text + "\n";
  source.text = source.comment;
  source.text += "extern \"C\" __global__ void ";
  if (cluster > 1) source.text += "__cluster_dims__(" + std::to_string(cluster) + ", 1, 1) ";
  source.text += launch_bounds(threads, min_blocks) + "\n@KERNEL@(";
  std::vector<Parameter> listed;
  for (auto* list : {&maps_, &inputs_, &outputs_, &workspaces_, &sizes_})
    listed.insert(listed.end(), list->begin(), list->end());
  // A tensor stored only by TMA needs no pointer.
  std::erase_if(listed, [&](const Parameter& p) {
    return p.parameter.kind == KernelParameter::Kind::kTensor && p.parameter.written &&
           !lane_stored_.contains(p.parameter.value) && std::ranges::any_of(maps_, [&](const Parameter& map) {
             return map.parameter.written && map.parameter.value == p.parameter.value;
           });
  });
  const std::string prologue = move_to_table(listed, source);
  std::size_t column = 9;
  bool first = true;
  for (const Parameter& p : listed) {
    count_step();
    const std::string text = p.type + p.parameter.name;
    if (!first) {
      const bool wrap = column + text.size() > 110;
      source.text += wrap ? ",\n         " : ", ";
      if (wrap) column = 9;
    }
    source.text += text;
    column += text.size() + 2;
    first = false;
    source.parameters.push_back(p.parameter);
    source.declarations.push_back(p.type);
  }
  source.body = prologue + print_statements(root_, 1, columns_);
  source.text += ") {\n" + source.body + "}\n";
  source.prelude = prelude;
  source.block = {threads, 1, 1};
  source.min_blocks_per_multiprocessor = min_blocks;
  source.cluster = {cluster, 1, 1};
  return source;
}

std::string kernel_name(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::string name;
  std::size_t listed = 0;
  for (const NodeId node : nodes) {
    count_step();
    if (listed == 4) {
      name += "_and_" + std::to_string(nodes.size() - listed) + "_more";
      break;
    }
    name += (listed++ ? "_" : "") + clean_identifier(graph.nodes[node].op->name, 24);
  }
  return clean_identifier(name, 64);
}

std::vector<std::string> kernel_comment(const Graph& graph, const Kernel& kernel) {
  std::vector<std::string> comment;
  std::size_t listed = 0;
  for (const NodeId id : kernel.nodes) {
    count_step();
    if (++listed > 24) {
      comment.push_back(fmt::format("and {} nodes more", kernel.nodes.size() - listed + 1));
      break;
    }
    const Node& node = graph.nodes[id];
    std::string operands;
    for (const ValueId v : node.inputs) {
      if (v == kNone) continue;
      const Value& value = graph.value(v);
      if (value.name.empty()) continue;
      operands += (operands.empty() ? "" : ", ") + comment_text(value.name, 40);
    }
    comment.push_back(comment_text(
        fmt::format("{} = {}({})", comment_text(graph.value(node.first_output).name, 40), node.op->name, operands),
        110));
  }
  for (const KernelOutput& output : kernel.outputs)
    comment.push_back(comment_text(fmt::format("writes {}: {}", comment_text(graph.value(output.value).name, 40),
                                               to_string(graph.tensor(output.value), graph.symbols)),
                                   110));
  return comment;
}

}  // namespace fusec
