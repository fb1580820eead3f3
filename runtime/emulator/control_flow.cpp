// Immediate post-dominators of a function's branch graph, by the iterative algorithm over the reverse postorder of the
// reversed graph.
#include <algorithm>

#include "runtime/emulator/decode.h"

namespace fusec::emulator {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

struct FlowGraph {                    // nodes: basic blocks in order of their pcs, then the exit
  std::vector<std::uint32_t> begins;  // pc of each block
  std::vector<std::vector<std::uint32_t>> successors;
  std::uint32_t exit = 0;
};

bool ends_block(const Instruction& in) {
  return in.control == Control::kBranch || in.control == Control::kBranchIndexed || in.control == Control::kReturn ||
         in.control == Control::kExit || in.control == Control::kTrap;
}

FlowGraph build(const std::vector<Instruction>& code, const std::vector<Operand>& lists, std::uint32_t begin,
                std::uint32_t end) {
  std::vector<bool> leads(end - begin, false);
  leads[0] = true;
  for (std::uint32_t pc = begin; pc < end; ++pc) {
    const Instruction& in = code[pc];
    if (!ends_block(in)) continue;
    if (pc + 1 < end) leads[pc + 1 - begin] = true;
    if (in.control == Control::kBranch) leads[in.target - begin] = true;
    if (in.control != Control::kBranchIndexed) continue;
    for (std::uint32_t i = 0; i < in.count; ++i) leads[lists[in.list + i].slot - begin] = true;
  }
  FlowGraph graph;
  std::vector<std::uint32_t> block_of(end - begin);
  for (std::uint32_t pc = begin; pc < end; ++pc) {
    if (leads[pc - begin]) graph.begins.push_back(pc);
    block_of[pc - begin] = static_cast<std::uint32_t>(graph.begins.size()) - 1;
  }
  graph.exit = static_cast<std::uint32_t>(graph.begins.size());
  graph.successors.resize(graph.exit + 1);
  for (std::uint32_t block = 0; block < graph.exit; ++block) {
    const std::uint32_t last = (block + 1 < graph.exit ? graph.begins[block + 1] : end) - 1;
    const Instruction& in = code[last];
    std::vector<std::uint32_t>& next = graph.successors[block];
    const bool falls = !ends_block(in) || in.guard != kNoSlot;
    if (in.control == Control::kBranch) next.push_back(block_of[in.target - begin]);
    if (in.control == Control::kBranchIndexed) {
      for (std::uint32_t i = 0; i < in.count; ++i) next.push_back(block_of[lists[in.list + i].slot - begin]);
    }
    if (in.control == Control::kReturn || in.control == Control::kExit || in.control == Control::kTrap) {
      next.push_back(graph.exit);
    }
    if (falls) next.push_back(last + 1 < end ? block + 1 : graph.exit);
  }
  return graph;
}

// The immediate post-dominator of each block; kNone for blocks from which the exit cannot be reached.
std::vector<std::uint32_t> post_dominators(const FlowGraph& graph) {
  const std::uint32_t count = graph.exit + 1;
  std::vector<std::vector<std::uint32_t>> predecessors(count);
  for (std::uint32_t block = 0; block < count; ++block) {
    for (std::uint32_t next : graph.successors[block]) predecessors[next].push_back(block);
  }
  // Postorder of the reversed graph from the exit, with an explicit stack.
  std::vector<std::uint32_t> order, number(count, kNone);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{graph.exit, 0}};
  std::vector<bool> seen(count, false);
  seen[graph.exit] = true;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    if (next < predecessors[block].size()) {
      const std::uint32_t before = predecessors[block][next++];
      if (!seen[before]) {
        seen[before] = true;
        stack.emplace_back(before, 0);
      }
    } else {
      number[block] = static_cast<std::uint32_t>(order.size());
      order.push_back(block);
      stack.pop_back();
    }
  }
  std::vector<std::uint32_t> dominator(count, kNone);
  dominator[graph.exit] = graph.exit;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto block = order.rbegin(); block != order.rend(); ++block) {
      if (*block == graph.exit) continue;
      std::uint32_t meet = kNone;
      for (std::uint32_t next : graph.successors[*block]) {
        if (dominator[next] == kNone) continue;
        if (meet == kNone) {
          meet = next;
          continue;
        }
        std::uint32_t other = next;
        while (meet != other) {
          while (number[meet] < number[other]) meet = dominator[meet];
          while (number[other] < number[meet]) other = dominator[other];
        }
      }
      if (dominator[*block] != meet) {
        dominator[*block] = meet;
        changed = true;
      }
    }
  }
  return dominator;
}

}  // namespace

void find_reconvergence(std::vector<Instruction>& code, const std::vector<Operand>& lists, std::uint32_t begin,
                        std::uint32_t end, bool is_entry) {
  FlowGraph graph = build(code, lists, begin, end);
  const std::vector<std::uint32_t> dominator = post_dominators(graph);
  // Lanes that exit early must not prevent the others from meeting. For branches of a kernel whose paths meet only at
  // the exit, use a second graph that ignores all exits except the last one.
  std::vector<std::uint32_t> lenient;
  if (is_entry) {
    FlowGraph pruned = graph;
    bool last = true;
    for (std::uint32_t block = graph.exit; block-- > 0;) {
      std::vector<std::uint32_t>& next = pruned.successors[block];
      const auto exits = std::find(next.begin(), next.end(), graph.exit);
      if (exits == next.end()) continue;
      // The decoder adds a return at the end; usually nothing reaches it.
      const bool synthetic = graph.begins[block] == end - 1 && block + 1 == graph.exit &&
                             std::none_of(graph.successors.begin(), graph.successors.end(), [&](const auto& list) {
                               return std::find(list.begin(), list.end(), block) != list.end();
                             });
      if (synthetic) continue;
      if (!last) next.erase(exits);
      last = false;
    }
    lenient = post_dominators(pruned);
  }
  for (std::uint32_t block = 0; block < graph.exit; ++block) {
    const std::uint32_t last = (block + 1 < graph.exit ? graph.begins[block + 1] : end) - 1;
    Instruction& in = code[last];
    if (in.control != Control::kBranch && in.control != Control::kBranchIndexed) continue;
    std::uint32_t meet = dominator[block];
    if ((meet == graph.exit || meet == kNone) && is_entry) meet = lenient[block];
    if (meet == kNone)
      in.reconvergence = kNoReconvergence;
    else if (meet == graph.exit)
      in.reconvergence = is_entry ? kNoReconvergence : kAtReturn;
    else
      in.reconvergence = graph.begins[meet];
  }
}

}  // namespace fusec::emulator
