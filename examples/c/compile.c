// A front end in C: builds a SwiGLU layer, compiles it, shows what is fused, and runs it on the CPU by the emulator.
//
//   cc compile.c $(pkg-config --cflags --libs fusec) -lm && ./a.out
#include <fusec/c_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 3, DEPTH = 64, COLUMNS = 128 };

// Ends the program with what went wrong.
// Takes the error's place: as an argument beside the call, the error itself might be read before the call sets it.
static void check(fusec_status status, fusec_error** error) {
  if (status == FUSEC_OK) return;
  fprintf(stderr, "error: %s\n", fusec_error_message(*error));
  fusec_error_free(*error);
  exit(status);
}

static fusec_operand value(const char* name) { return (fusec_operand){.kind = FUSEC_VALUE, .value = name}; }

// y = linear(silu(linear(x, w_gate)) * linear(x, w_up), w_down)
static fusec_model* build_model(void) {
  fusec_error* error = NULL;
  fusec_builder* builder = NULL;
  check(fusec_builder_new("swiglu", NULL, &builder, &error), &error);
  check(fusec_builder_symbol(builder, "tokens", 1, 4096, 1, NULL, &error), &error);
  const fusec_dimension x[] = {{0, "tokens"}, {DEPTH, NULL}};
  const fusec_dimension wide[] = {{COLUMNS, NULL}, {DEPTH, NULL}}, narrow[] = {{DEPTH, NULL}, {COLUMNS, NULL}};
  check(fusec_builder_input(builder, "x", "float32", x, 2, &error), &error);
  check(fusec_builder_constant(builder, "w_gate", "float32", wide, 2, &error), &error);
  check(fusec_builder_constant(builder, "w_up", "float32", wide, 2, &error), &error);
  check(fusec_builder_constant(builder, "w_down", "float32", narrow, 2, &error), &error);

  const char *gate = NULL, *up = NULL, *act = NULL, *h = NULL, *y = NULL;
  const fusec_operand to_gate[] = {value("x"), value("w_gate")}, to_up[] = {value("x"), value("w_up")};
  check(fusec_builder_op(builder, "linear", to_gate, 2, NULL, 0, "gate", 1, &gate, &error), &error);
  check(fusec_builder_op(builder, "linear", to_up, 2, NULL, 0, "up", 1, &up, &error), &error);
  const fusec_operand to_act[] = {value(gate)};
  check(fusec_builder_op(builder, "silu", to_act, 1, NULL, 0, NULL, 1, &act, &error), &error);
  const fusec_operand to_h[] = {value(act), value(up)};
  check(fusec_builder_op(builder, "mul", to_h, 2, NULL, 0, NULL, 1, &h, &error), &error);
  const fusec_operand to_y[] = {value(h), value("w_down")};
  check(fusec_builder_op(builder, "linear", to_y, 2, NULL, 0, "y", 1, &y, &error), &error);
  check(fusec_builder_output(builder, y, &error), &error);

  fusec_model* model = NULL;
  check(fusec_builder_build(builder, NULL, &model, &error), &error);
  fusec_builder_free(builder);
  return model;
}

static fusec_compilation* compile(const fusec_model* model) {
  fusec_error* error = NULL;
  fusec_options* options = NULL;
  fusec_compilation* compilation = NULL;
  check(fusec_options_new(&options, &error), &error);
  check(fusec_options_set(options, "arch", "sm_80", &error), &error);
  check(fusec_options_set(options, "ptx", NULL, &error), &error);  // NVRTC compiles the kernels
  check(fusec_compile(model, options, &compilation, &error), &error);
  fusec_options_free(options);
  return compilation;
}

static void show(const fusec_compilation* compilation, const char* product) {
  fusec_error* error = NULL;
  fusec_text* text = NULL;
  check(fusec_compilation_product(compilation, product, &text, &error), &error);
  printf("%s\n", fusec_text_data(text));
  fusec_text_free(text);
}

static float element(int i, float step) { return step * (float)(i % 13 - 6); }

static float* filled(int count, float step) {
  float* list = malloc((size_t)count * sizeof *list);
  if (!list) exit(4);
  for (int i = 0; i < count; ++i) list[i] = element(i, step);
  return list;
}

// sum_k a[k] * b[k]
static double dot(const double* a, const float* b, int n) {
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += a[k] * (double)b[k];
  return sum;
}

static double largest_error(const float* x, const float* w_gate, const float* w_up, const float* w_down,
                            const float* y) {
  double worst = 0;
  for (int row = 0; row < TOKENS; ++row) {
    double in[DEPTH], h[COLUMNS];
    for (int k = 0; k < DEPTH; ++k) in[k] = (double)x[row * DEPTH + k];
    for (int n = 0; n < COLUMNS; ++n) {
      const double gate = dot(in, w_gate + n * DEPTH, DEPTH);
      h[n] = gate / (1 + exp(-gate)) * dot(in, w_up + n * DEPTH, DEPTH);
    }
    for (int n = 0; n < DEPTH; ++n)
      worst = fmax(worst, fabs(dot(h, w_down + n * COLUMNS, COLUMNS) - (double)y[row * DEPTH + n]));
  }
  return worst;
}

int main(void) {
  fusec_error* error = NULL;
  fusec_model* model = build_model();
  fusec_compilation* compilation = compile(model);
  show(compilation, "partition");
  show(compilation, "summary");

  fusec_module* module = NULL;
  check(fusec_module_of(compilation, &module, &error), &error);
  fusec_compilation_free(compilation);
  fusec_model_free(model);

  float *x = filled(TOKENS * DEPTH, 0.01f), *w_gate = filled(COLUMNS * DEPTH, 0.02f);
  float *w_up = filled(COLUMNS * DEPTH, 0.03f), *w_down = filled(DEPTH * COLUMNS, -0.02f);
  float* y = filled(TOKENS * DEPTH, 0);
  const int64_t rows[] = {TOKENS, DEPTH}, wide[] = {COLUMNS, DEPTH}, narrow[] = {DEPTH, COLUMNS};
  const fusec_tensor arguments[] = {
      {x, "float32", rows, 2}, {w_gate, "float32", wide, 2}, {w_up, "float32", wide, 2}, {w_down, "float32", narrow, 2}};
  const fusec_tensor results[] = {{y, "float32", rows, 2}};
  // On a GPU: fusec_module_launch(module, 0, arguments, 4, results, 1, stream, &error), with device pointers.
  check(fusec_module_run_on_emulator(module, arguments, 4, results, 1, 0, &error), &error);
  const double worst = largest_error(x, w_gate, w_up, w_down, y);
  printf("the largest error is %.2g\n", worst);

  fusec_module_free(module);
  float* lists[] = {x, w_gate, w_up, w_down, y};
  for (int i = 0; i < 5; ++i) free(lists[i]);
  return worst < 1e-4 ? 0 : 1;
}
