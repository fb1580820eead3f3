// Which names a launcher of a custom op may have.
#include "ir/reserved_words.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ir/library_symbols.h"
#include "ir/parse_dim.h"

namespace fusec {

TEST_CASE("the list of library symbols is sorted, and of names that a launcher could have") {
  CHECK(library_symbols().size() > 3000);
  CHECK(std::ranges::is_sorted(library_symbols()));
  CHECK(std::ranges::all_of(library_symbols(), is_identifier));
}

TEST_CASE("a launcher is called nothing that a library exports") {
  for (const std::string_view symbol : library_symbols()) CHECK_MESSAGE(!launcher_name_fault(symbol).empty(), symbol);
  for (const char* name : {"system",
                           "abort",
                           "execve",
                           "popen",
                           "dlopen",
                           "atexit",
                           "sinf",
                           "lgamma_r",
                           "end",
                           "atomic_flag_test_and_set_explicit",
                           "cuMemAlloc_v2",
                           "cuLaunchKernel",
                           "cudaFree",
                           "cudaMemcpyAsync",
                           "cublasLtMatmul",
                           "ncclAllReduce",
                           "_exit",
                           "_mine",
                           "__libc_start_main",
                           "a__b",
                           "_Znwm",
                           "if",
                           "threadIdx",
                           "9x",
                           "a b",
                           "",
                           "x\xc3\xa9"})
    CHECK_MESSAGE(!launcher_name_fault(name).empty(), name);
  for (const char* name : {"launch_my_x", "acme_bitonic_sort", "my_system", "systemx", "Abort", "x", "cute_gemm"})
    CHECK_MESSAGE(launcher_name_fault(name).empty(), name);
}

}  // namespace fusec
