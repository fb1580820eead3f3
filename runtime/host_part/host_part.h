// The host part of out.cu at work: M_create, M_launch and the rest are called as a user's program would, and what they
// enqueue is recorded instead of executed.
//
//   HostPart host(out_cu, graph, plan);
//   host.create(address_of_constant);
//   HostAnswer answer = host.launch(arguments, 0, workspace);   // answer.calls: as the emulator executes them
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device_call.h"
#include "runtime/host_part/compile_host.h"

namespace fusec {

struct HostRecorder;

// M_args: addresses are numbers, since the host part only passes them on.
struct HostArguments {
  struct Tensor {
    std::uint64_t address = 0;
    std::vector<std::int64_t> extents;
  };
  std::vector<Tensor> arguments;       // as LaunchPlan::arguments
  std::vector<std::uint64_t> results;  // as LaunchPlan::results
};

struct HostAnswer {
  int status = 0;     // a cudaError_t
  std::string error;  // M_error
  std::vector<DeviceCall> calls;
};

class HostPart {
 public:
  // Compiles, as compile_host says.
  HostPart(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan, const std::string& compiler = "");
  ~HostPart();
  HostPart(const HostPart&) = delete;
  HostPart& operator=(const HostPart&) = delete;

  // M_create, in place of an earlier context: gives each embedded constant, by position in LaunchPlan::embedded and by
  // its bytes, a device address; null makes the runtime refuse. `with_libraries`: else M_libraries is null. The status.
  using AddressOfConstant = std::function<std::optional<std::uint64_t>(std::size_t, std::span<const std::byte>)>;
  int create(const AddressOfConstant& address, bool with_libraries = true);
  bool has_context() const { return context_ != nullptr; }
  // M_create without a place for the context.
  int create_nowhere();

  // Null arguments are passed as null. `refuse` is the operation that the runtime refuses, if any.
  HostAnswer launch(const HostArguments* arguments, std::uint64_t prepared, std::uint64_t workspace,
                    std::optional<std::size_t> refuse = std::nullopt);
  HostAnswer prepare(const HostArguments* arguments, std::uint64_t prepared,
                     std::optional<std::size_t> refuse = std::nullopt);
  int launch_without_context(const HostArguments& arguments);
  std::uint64_t workspace_bytes(const HostArguments* arguments) const;
  std::uint64_t prepared_bytes(const HostArguments* arguments) const;
  // The most dynamic shared memory that M_create allowed a kernel; nothing where it set nothing.
  std::optional<std::int64_t> allowed_shared(const std::string& kernel) const;

 private:
  HostAnswer record(const std::function<int()>& call, std::optional<std::size_t> refuse);
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(library_->symbol(plan_.identifier + "_" + name));
  }

  const LaunchPlan& plan_;
  std::unique_ptr<SharedLibrary> library_;
  std::unique_ptr<HostRecorder> recorder_;
  void* context_ = nullptr;
};

}  // namespace fusec
