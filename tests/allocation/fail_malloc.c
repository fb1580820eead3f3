// A library to preload: malloc fails at one call, or from one call on, after main has begun.
//
//   FAIL_MALLOC=COUNT       the call that fails, counted from 0; -1 for none
//   FAIL_MALLOC_LATER=1     those that follow fail, too
//   FAIL_MALLOC_COUNT=FILE  gets the number of calls when the process ends
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static atomic_int armed;
static atomic_long calls;
static long failing = -1;
static int and_later;
static const char* count_file;

static int fails(void) {
  if (!armed) return 0;
  const long number = calls++;
  if (failing < 0 || number < failing || (number > failing && !and_later)) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { return fails() ? NULL : __libc_memalign(a, n); }
void* aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void** p, size_t a, size_t n) {
  *p = memalign(a, n);
  return *p ? 0 : ENOMEM;
}

static int (*real_main)(int, char**, char**);

static int counted_main(int argc, char** argv, char** environment) {
  const char* at = getenv("FAIL_MALLOC");
  failing = at ? atol(at) : -1;
  and_later = getenv("FAIL_MALLOC_LATER") != NULL;
  count_file = getenv("FAIL_MALLOC_COUNT");
  unsetenv("LD_PRELOAD");
  armed = 1;
  return real_main(argc, argv, environment);
}

__attribute__((destructor)) static void tell_count(void) {
  armed = 0;
  if (!count_file) return;
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", (long)calls);
  const int file = open(count_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || write(file, text, (size_t)length) != length) _exit(125);
  close(file);
}

typedef int start_main(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void),
                       void*);

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  start_main* const start = (start_main*)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
