#include "pass_names.h"

namespace fusec {
namespace {

constexpr PassName kPasses[] = {
    {"keep-apart", "notes which ops and nodes the user keeps out of fusion"},
    {"canonicalize", "drops what no output needs, removes identities, merges duplicates (under full)"},
    {"annotate", "derives the op pattern kind of every node from its formula and shapes"},
    {"fuse", "groups nodes in three phases over the post-dominator tree"},
    {"lower", "puts the formulas of each group into one another and gives every kernel a schedule"},
    {"plan-launch", "places every value in memory, intermediates in one arena by lifetime"},
    {"emit", "prints kernels and host part as CUDA source"},
    {"nvrtc", "compiles the kernels to PTX and cubin"},
};

}  // namespace

std::span<const PassName> pass_names() {
  return kPasses;
}

}  // namespace fusec
