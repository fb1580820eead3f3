// Memory runs out inside the C API: out_of_memory PLACES. At PLACES calls of malloc, spread evenly over a run, that call
// fails, or it and all that follow. Each time every function returns: with FUSEC_ERROR_OUT_OF_MEMORY, another error, or
// the right result; and the library works on as before.
#include "../allocation/fail_malloc.c"

#include "check.h"

// The statuses of a run end here; with all of them 0, whether the result is the right one.
typedef struct {
  fusec_status status;
  int right;
  int told;  // the error has a message
} Outcome;

static fusec_status build(fusec_model** model, fusec_error** error) {
  fusec_builder* builder = NULL;
  const fusec_dimension shape[] = {{0, "tokens"}, {64, NULL}};
  const fusec_operand to_act[] = {{.kind = FUSEC_VALUE, .value = "gate"}};
  const char* act = NULL;
  fusec_status status = fusec_builder_new("gated", NULL, &builder, error);
  if (!status) status = fusec_builder_symbol(builder, "tokens", 1, 4096, 1, NULL, error);
  if (!status) status = fusec_builder_input(builder, "gate", "float32", shape, 2, error);
  if (!status) status = fusec_builder_op(builder, "silu", to_act, 1, NULL, 0, NULL, 1, &act, error);
  if (!status) status = fusec_builder_output(builder, act, error);
  if (!status) status = fusec_builder_build(builder, NULL, model, error);
  fusec_builder_free(builder);
  return status;
}

static fusec_status compile(const fusec_model* model, fusec_text** source, fusec_error** error) {
  fusec_options* options = NULL;
  fusec_compilation* compilation = NULL;
  fusec_text* explanation = NULL;
  fusec_status status = fusec_options_new(&options, error);
  if (!status) status = fusec_options_set(options, "no-cache", NULL, error);
  if (!status) status = fusec_options_set(options, "no-fuse", "add", error);
  if (!status) status = fusec_compile(model, options, &compilation, error);
  if (!status) status = fusec_compilation_explain(compilation, NULL, 0, 1, &explanation, error);
  if (!status) status = fusec_compilation_product(compilation, "cu", source, error);
  fusec_text_free(explanation);
  fusec_compilation_free(compilation);
  fusec_options_free(options);
  return status;
}

static Outcome run(const char* right) {
  Outcome outcome = {0, 1, 1};
  fusec_model* models[2] = {NULL, NULL};
  fusec_error* error = NULL;
  outcome.status = build(&models[0], &error);
  if (!outcome.status) outcome.status = fusec_model_parse(kModel, strlen(kModel), NULL, NULL, NULL, &models[1], &error);
  for (int i = 0; i < 2 && !outcome.status; ++i) {
    fusec_text* source = NULL;
    outcome.status = compile(models[i], &source, &error);
    if (i == 1 && right) outcome.right = outcome.status || strcmp(fusec_text_data(source), right) == 0;
    fusec_text_free(source);
  }
  outcome.told = !outcome.status || strlen(fusec_error_message(error)) > 0;
  fusec_error_free(error);
  fusec_model_free(models[0]);
  fusec_model_free(models[1]);
  return outcome;
}

int main(int argc, char** argv) {
  const long places = argc > 1 ? atol(argv[1]) : 100;
  fusec_model* model = NULL;
  fusec_text* right = NULL;
  CHECK(fusec_model_parse(kModel, strlen(kModel), NULL, NULL, NULL, &model, NULL) == FUSEC_OK);
  CHECK(compile(model, &right, NULL) == FUSEC_OK);
  const long before = calls;
  CHECK(run(NULL).status == FUSEC_OK);
  const long in_run = calls - before;
  int out = 0;
  for (long i = 0; i < places; ++i) {
    and_later = i % 2 != 0;
    failing = calls + i * in_run / places;
    const Outcome outcome = run(fusec_text_data(right));
    failing = -1;
    and_later = 0;
    out += outcome.status == FUSEC_ERROR_OUT_OF_MEMORY;
    CHECK(outcome.right && outcome.told);
    CHECK(outcome.status != FUSEC_ERROR_INTERNAL);
    if (i % 16 == 0) CHECK(run(fusec_text_data(right)).status == FUSEC_OK);
  }
  CHECK(out > places / 2);
  printf("%ld calls of malloc, %ld of them failed: %d times out of memory, %d failures\n", in_run, places, out, failures);
  fusec_text_free(right);
  fusec_model_free(model);
  return failures != 0;
}
