// What the C tests share: checks that count, and the model that they compile.
#pragma once

#include <stdio.h>
#include <string.h>

#include "fusec/c_api.h"

static int failures = 0;

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      ++failures;                                                          \
      printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
    }                                                                      \
  } while (0)

static const char kModel[] =
    "model \"gated\"\n"
    "symbol tokens min=1 max=4096\n"
    "input gate: float32[tokens, 64]\n"
    "input up: float32[tokens, 64]\n"
    "act: float32[tokens, 64] = silu(gate)\n"
    "y: float32[tokens, 64] = mul(act, up)\n"
    "return y\n";
