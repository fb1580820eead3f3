// Runs a lowered plan on the emulator, kernel by kernel, every value in a buffer of its own: what the kernels compute,
// without the host part.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/expr/limit_unrolling.h"
#include "codegen/launch/lower_plan.h"
#include "codegen/nvrtc/nvrtc.h"
#include "codegen/prelude/prelude.h"
#include "ir/error.h"
#include "ir/fusion_plan.h"
#include "ir/type.h"
#include "runtime/device_call.h"
#include "runtime/emulator/emulator.h"
#include "runtime/reference/reference.h"

namespace fusec::test {

// Every node a group of its own, or all nodes in one group.
inline FusionPlan plain_plan(const Graph& graph, bool together) {
  FusionPlan plan;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    if (!together || plan.groups.empty()) plan.groups.emplace_back();
    plan.groups.back().nodes.push_back(n);
  }
  index_groups(graph, plan);
  return plan;
}

inline std::string source_of(const LoweredPlan& plan) {
  std::set<std::string> parts;
  for (const KernelSource& kernel : plan.kernels) parts.insert(kernel.prelude.begin(), kernel.prelude.end());
  std::string text = "namespace {\n" + prelude_text(parts) + "}  // namespace\n\n";
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    KernelSource bounded = plan.kernels[k];  // schedules' own kernels have not been by lower_plan
    limit_unrolling(bounded);
    std::string kernel = std::move(bounded.text);
    for (std::size_t at = kernel.find("@KERNEL@"); at != std::string::npos; at = kernel.find("@KERNEL@", at))
      kernel.replace(at, 8, "kernel_" + std::to_string(k));
    text += kernel + "\n";
  }
  return text;
}

class LoweredRun {
 public:
  LoweredRun(const Graph& graph, const LoweredPlan& plan, const TensorMap& tensors)
      : graph_(graph), plan_(plan), symbols_(solve_symbols(graph, tensors)) {
    for (const ValueId v : graph.inputs) give(v, tensors.at(graph.value(v).name));
    for (const Constant& c : graph.constants) {
      const auto it = tensors.find(graph.value(c.value).name);
      give(c.value, it != tensors.end() ? it->second : ConstantReader(graph).read(c));
    }
    for (const IndexExpr& bytes : plan.scratch_bytes) {
      scratch_.push_back(std::make_unique<std::vector<std::byte>>(static_cast<std::size_t>(value(bytes))));
      scratch_ids_.push_back(memory_.add({.name = "scratch", .bytes = *scratch_.back(), .initialized = false}));
    }
  }

  // Runs all steps; the findings of the emulator, in words.
  std::string run(const emulator::Module& module) {
    std::string findings;
    for (const LoweredGroup& group : plan_.groups)
      for (const LoweredStep& step : group.steps) {
        if (step.kind == LoweredStep::Kind::kKernel) {
          launch(module, step, findings);
        } else {
          if (step.kind != LoweredStep::Kind::kCopy) throw InternalError("a step that the emulator cannot run");
          const Held& from = held(step.reads[0]);
          const Held& to = held(step.writes[0]);
          std::memcpy(to.tensor->bytes.data(), from.tensor->bytes.data(), to.tensor->bytes.size());
          memory_.mark_written(to.id, 0, to.tensor->bytes.size());
        }
      }
    return findings;
  }

  HostTensor result(ValueId v) {
    HostTensor tensor(graph_.tensor(v).dtype, shape(v));
    const Held& root = held(v);
    if (root.tensor->bytes.size() != tensor.bytes.size()) throw InternalError("a view of another size");
    tensor.bytes = root.tensor->bytes;
    return tensor;
  }

 private:
  struct Held {
    std::unique_ptr<HostTensor> tensor;
    emulator::Memory::Id id = 0;
  };

  std::int64_t value(const IndexExpr& e) const {
    return evaluate(e, [&](Variable v) { return symbols_.at(v.id); });
  }
  std::vector<std::int64_t> shape(ValueId v) const {
    std::vector<std::int64_t> extents;
    for (const Dim& d : graph_.tensor(v).shape) extents.push_back(value(d));
    return extents;
  }

  void give(ValueId v, HostTensor tensor) {
    Held held{std::make_unique<HostTensor>(std::move(tensor)), 0};
    held.id = memory_.add(
        {.name = graph_.value(v).name, .bytes = held.tensor->bytes, .initialized = true, .writable = false});
    held_.emplace(v, std::move(held));
  }

  const Held& held(ValueId v) {
    const ValueId root = plan_.storage_of.at(v);
    const auto it = held_.find(root);
    if (it != held_.end()) return it->second;
    Held fresh{std::make_unique<HostTensor>(graph_.tensor(root).dtype, shape(root)), 0};
    // What a kernel does not write must not look right by chance.
    for (std::byte& b : fresh.tensor->bytes) b = std::byte{0xcd};
    fresh.id = memory_.add({.name = graph_.value(root).name, .bytes = fresh.tensor->bytes, .initialized = false});
    return held_.emplace(root, std::move(fresh)).first->second;
  }

  void launch(const emulator::Module& module, const LoweredStep& step, std::string& findings) {
    const KernelSource& kernel = plan_.kernels.at(step.kernel);
    emulator::Launch launch;
    launch.kernel = "kernel_" + std::to_string(step.kernel);
    launch.grid = {static_cast<std::uint32_t>(value(kernel.grid[0])), static_cast<std::uint32_t>(value(kernel.grid[1])),
                   static_cast<std::uint32_t>(value(kernel.grid[2]))};
    if (launch.grid.count() == 0) return;
    launch.block = {static_cast<std::uint32_t>(kernel.block[0]), static_cast<std::uint32_t>(kernel.block[1]),
                    static_cast<std::uint32_t>(kernel.block[2])};
    launch.dynamic_shared_bytes = static_cast<std::uint32_t>(value(kernel.dynamic_shared));
    for (const KernelParameter& p : step.parameters) {
      switch (p.kind) {
        case KernelParameter::Kind::kTensor:
          launch.arguments.push_back(emulator::pointer_argument(memory_, held(p.value).id));
          break;
        case KernelParameter::Kind::kTensorMap: {
          ResolvedBoxes boxes{.element_bytes = p.boxes.element_bytes, .extents = {}, .strides = {}, .box = p.boxes.box};
          for (const IndexExpr& extent : p.boxes.extents) boxes.extents.push_back(value(extent));
          for (const IndexExpr& stride : p.boxes.strides)
            boxes.strides.push_back(value(stride) * p.boxes.element_bytes);
          launch.arguments.push_back(tensor_map_bytes(
              boxes, memory_.address(held(p.value).id, value(p.boxes.offset) * p.boxes.element_bytes)));
          break;
        }
        case KernelParameter::Kind::kWorkspace:
          launch.arguments.push_back(emulator::pointer_argument(memory_, scratch_ids_.at(p.scratch)));
          break;
        case KernelParameter::Kind::kSize:
          if (p.bits == 32)
            launch.arguments.push_back(emulator::scalar_argument(static_cast<std::int32_t>(value(p.size))));
          else
            launch.arguments.push_back(emulator::scalar_argument(value(p.size)));
          break;
      }
    }
    const emulator::Report report = emulator::run(module, launch, memory_);
    if (!report.findings.empty())
      findings += kernel.name + " " + name(kernel.schedule) + ": " + emulator::describe(report) + "\n";
  }

  const Graph& graph_;
  const LoweredPlan& plan_;
  std::vector<std::int64_t> symbols_;
  emulator::Memory memory_;
  std::map<ValueId, Held> held_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> scratch_;
  std::vector<emulator::Memory::Id> scratch_ids_;
};

}  // namespace fusec::test
