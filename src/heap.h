// The heap of a command line program.
#pragma once

namespace fusec {

// Takes memory from the system in large steps and in huge pages, and keeps what is freed: a small compilation then has
// a fifth of the page faults. Does nothing under a limit of the address space (ulimit -v), or where the C library is
// not glibc.
void prepare_heap() noexcept;

}  // namespace fusec
