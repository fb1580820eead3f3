// The C API in eight threads at once: all compile one model and run one module, beside errors of their own.
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 6, ELEMENTS = 2 * 64 };

static const fusec_model* model;
static const fusec_module* module;
static const fusec_options* options;
static const char* source;  // what each thread must get

static int compiles_the_same(void) {
  fusec_compilation* compilation = NULL;
  fusec_text* text = NULL;
  const int good = fusec_compile(model, options, &compilation, NULL) == FUSEC_OK &&
                   fusec_compilation_product(compilation, "cu", &text, NULL) == FUSEC_OK &&
                   strcmp(fusec_text_data(text), source) == 0;
  fusec_text_free(text);
  fusec_compilation_free(compilation);
  return good;
}

static int runs_right(float seed) {
  float gate[ELEMENTS], up[ELEMENTS], y[ELEMENTS];
  for (int i = 0; i < ELEMENTS; ++i) gate[i] = 50, up[i] = seed + (float)i;
  const int64_t shape[] = {2, 64};
  const fusec_tensor arguments[] = {{gate, "float32", shape, 2}, {up, "float32", shape, 2}};
  const fusec_tensor results[] = {{y, "float32", shape, 2}};
  if (fusec_module_run_on_emulator(module, arguments, 2, results, 1, 1, NULL) != FUSEC_OK) return 0;
  for (int i = 0; i < ELEMENTS; ++i)
    if (y[i] < 50 * up[i] - 0.01f || y[i] > 50 * up[i] + 0.01f) return 0;
  return 1;
}

// An error is the caller's own, whatever other threads do.
static int fails_alone(int number) {
  char name[32];
  snprintf(name, sizeof name, "unknown-%d", number);
  fusec_options* own = NULL;
  fusec_error* error = NULL;
  int good = fusec_options_new(&own, NULL) == FUSEC_OK;
  good = good && fusec_options_set(own, name, "1", &error) == FUSEC_ERROR_USAGE;
  good = good && strstr(fusec_error_message(error), name);
  fusec_error_free(error);
  fusec_options_free(own);
  return good;
}

static void* work(void* number) {
  const int n = *(int*)number;
  for (int round = 0; round < ROUNDS; ++round)
    if (!compiles_the_same() || !runs_right((float)(n + round)) || !fails_alone(n)) return number;
  return NULL;
}

int main(void) {
  fusec_options* made_options = NULL;
  fusec_model* made_model = NULL;
  fusec_compilation* compilation = NULL;
  fusec_module* made_module = NULL;
  fusec_text* text = NULL;
  fusec_error* error = NULL;
  if (fusec_options_new(&made_options, &error) || fusec_options_set(made_options, "ptx", NULL, &error) ||
      fusec_model_parse(kModel, strlen(kModel), NULL, NULL, NULL, &made_model, &error) ||
      fusec_compile(made_model, made_options, &compilation, &error) ||
      fusec_module_of(compilation, &made_module, &error) ||
      fusec_compilation_product(compilation, "cu", &text, &error)) {
    printf("%s\n", fusec_error_message(error));
    return 1;
  }
  model = made_model, options = made_options, module = made_module, source = fusec_text_data(text);
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) {
    void* failed = NULL;
    CHECK(pthread_join(threads[i], &failed) == 0);
    CHECK(failed == NULL);
  }
  fusec_text_free(text);
  fusec_module_free(made_module);
  fusec_compilation_free(compilation);
  fusec_model_free(made_model);
  fusec_options_free(made_options);
  printf("%d threads, %d rounds each, %d failures\n", THREADS, ROUNDS, failures);
  return failures != 0;
}
