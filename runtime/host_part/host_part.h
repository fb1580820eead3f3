// Runs the host part of out.cu. M_create, M_launch and the other functions are called as a user's program would call
// them; the operations that they enqueue are recorded, not executed.
//
//   HostPart host(out_cu, graph, plan);
//   host.create(address_of_constant);
//   HostAnswer answer = host.launch(arguments, 0, workspace);   // answer.calls: for the emulator to execute
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

// The contents of M_args. Addresses are numbers, since the host part only passes them on.
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
  // Compiles and loads the host part; see compile_host.
  HostPart(const std::string& out_cu, const Graph& graph, const LaunchPlan& plan, const std::string& compiler = "");
  ~HostPart();
  HostPart(const HostPart&) = delete;
  HostPart& operator=(const HostPart&) = delete;

  // Calls M_create, replacing an earlier context, and returns its status. `address` returns the device address of an
  // embedded constant, given its position in LaunchPlan::embedded and its bytes; without an address the runtime
  // refuses. Without `with_libraries`, M_libraries is null.
  using AddressOfConstant = std::function<std::optional<std::uint64_t>(std::size_t, std::span<const std::byte>)>;
  int create(const AddressOfConstant& address, bool with_libraries = true);
  bool has_context() const { return context_ != nullptr; }
  // Calls M_create with a null pointer for the context; returns its status.
  int create_nowhere();

  // Null `arguments` are passed as null. `refuse` is the number of the operation that the runtime refuses, if any.
  HostAnswer launch(const HostArguments* arguments, std::uint64_t prepared, std::uint64_t workspace,
                    std::optional<std::size_t> refuse = std::nullopt);
  HostAnswer prepare(const HostArguments* arguments, std::uint64_t prepared,
                     std::optional<std::size_t> refuse = std::nullopt);
  int launch_without_context(const HostArguments& arguments);
  std::uint64_t workspace_bytes(const HostArguments* arguments) const;
  std::uint64_t prepared_bytes(const HostArguments* arguments) const;
  // The limit of dynamic shared memory, in bytes, that M_create set for a kernel; nothing if it set none.
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
