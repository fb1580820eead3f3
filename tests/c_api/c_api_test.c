// The C API from C: what it makes, and what it says of wrong arguments.
#include <stdlib.h>

#include "check.h"

// That the call gave this status and a message with this text in it. Frees the error.
static void expect(fusec_status status, fusec_error* error, fusec_status wanted, const char* text, int line) {
  if (status != wanted || fusec_error_status(error) != wanted || !strstr(fusec_error_message(error), text)) {
    ++failures;
    printf("line %d: status %d and \"%s\", expected %d and \"%s\"\n", line, status, fusec_error_message(error), wanted,
           text);
  }
  fusec_error_free(error);
}

#define EXPECT(wanted, text, call)                   \
  do {                                               \
    fusec_error* error = NULL;                       \
    const fusec_status status = (call);              \
    expect(status, error, (wanted), (text), __LINE__); \
  } while (0)
#define GOOD(call) EXPECT(FUSEC_OK, "", call)

static fusec_model* parsed(const char* text) {
  fusec_model* model = NULL;
  GOOD(fusec_model_parse(text, strlen(text), NULL, NULL, NULL, &model, &error));
  return model;
}

static void check_text(fusec_text* text, const char* part) {
  CHECK(text && strlen(fusec_text_data(text)) <= fusec_text_size(text));
  if (!strstr(fusec_text_data(text), part)) {
    ++failures;
    printf("no \"%s\" in \"%.200s\"\n", part, fusec_text_data(text));
  }
  fusec_text_free(text);
}

static fusec_operand value(const char* name) { return (fusec_operand){.kind = FUSEC_VALUE, .value = name}; }

static void nulls(void) {
  fusec_model* model = (fusec_model*)1;
  EXPECT(FUSEC_ERROR_USAGE, "the model's path: found null", fusec_model_read(NULL, NULL, NULL, &model, &error));
  CHECK(model == NULL);
  EXPECT(FUSEC_ERROR_USAGE, "the place for the result: found null",
         fusec_model_read("no.json", NULL, NULL, NULL, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the model's text: found null",
         fusec_model_parse(NULL, 3, NULL, NULL, NULL, &model, &error));
  fusec_compilation* compilation = NULL;
  EXPECT(FUSEC_ERROR_USAGE, "the model: found null", fusec_compile(NULL, NULL, &compilation, &error));
  fusec_text* text = NULL;
  EXPECT(FUSEC_ERROR_USAGE, "the compilation: found null", fusec_compilation_product(NULL, "cu", &text, &error));
  fusec_module* module = NULL;
  EXPECT(FUSEC_ERROR_USAGE, "the compilation: found null", fusec_module_of(NULL, &module, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the manifest: found null", fusec_module_load(NULL, 0, NULL, 0, &module, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the module: found null", fusec_module_launch(NULL, 0, NULL, 0, NULL, 0, NULL, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the builder: found null", fusec_builder_output(NULL, "x", &error));
  EXPECT(FUSEC_ERROR_USAGE, "options: found null", fusec_options_set(NULL, "arch", "sm_80", &error));
  CHECK(fusec_compile(NULL, NULL, &compilation, NULL) == FUSEC_ERROR_USAGE);  // no place for the error
  fusec_model_free(NULL);
  fusec_text_free(NULL);
  fusec_error_free(NULL);
  fusec_module_free(NULL);
  CHECK(strcmp(fusec_error_message(NULL), "") == 0);
  CHECK(fusec_error_status(NULL) == FUSEC_OK);
  CHECK(fusec_error_line(NULL) == 0 && fusec_error_column(NULL) == 0);
  CHECK(fusec_text_size(NULL) == 0 && strcmp(fusec_text_data(NULL), "") == 0);
}

static void option_names(void) {
  fusec_options* options = NULL;
  GOOD(fusec_options_new(&options, &error));
  EXPECT(FUSEC_ERROR_USAGE, "unknown option: found \"strategie\" (hint: did you mean \"strategy\"?)",
         fusec_options_set(options, "strategie", "full", &error));
  EXPECT(FUSEC_ERROR_USAGE, "unknown option: found \"color\"", fusec_options_set(options, "color", "never", &error));
  EXPECT(FUSEC_ERROR_USAGE, "found \"fast\", expected one of none, tvm, full",
         fusec_options_set(options, "strategy", "fast", &error));
  EXPECT(FUSEC_ERROR_USAGE, "max-fused-ops", fusec_options_set(options, "max-fused-ops", "0", &error));
  EXPECT(FUSEC_ERROR_USAGE, "the value of option \"arch\": found null",
         fusec_options_set(options, "arch", NULL, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the value of option \"arch\": found an empty text",
         fusec_options_set(options, "arch", "", &error));
  EXPECT(FUSEC_ERROR_USAGE, "NAME=VALUE", fusec_options_set(options, "symbol", "tokens", &error));
  GOOD(fusec_options_set(options, "arch", "sm_80", &error));
  GOOD(fusec_options_set(options, "--arch", "sm_90a", &error));  // replaces
  GOOD(fusec_options_set(options, "precise-math", NULL, &error));
  GOOD(fusec_options_set(options, "precise-math", "false", &error));
  GOOD(fusec_options_set(options, "no-fuse-node", "act", &error));
  GOOD(fusec_options_set(options, "no-fuse-node", "y", &error));  // one name more
  GOOD(fusec_options_set(options, "symbol", "tokens=16", &error));

  fusec_model* model = parsed(kModel);
  fusec_compilation* compilation = NULL;
  GOOD(fusec_compile(model, options, &compilation, &error));
  fusec_text* text = NULL;
  GOOD(fusec_compilation_product(compilation, "cu", &text, &error));
  CHECK(strstr(fusec_text_data(text), "for sm_90a.") && !strstr(fusec_text_data(text), "precise-math"));
  check_text(text, "tokens = 16");
  GOOD(fusec_compilation_product(compilation, "summary", &text, &error));
  check_text(text, "2 groups");  // "act" stays alone
  fusec_compilation_free(compilation);
  GOOD(fusec_options_set(options, "symbol", "rows=16", &error));
  EXPECT(FUSEC_ERROR_INPUT, "the model has no symbol of this name", fusec_compile(model, options, &compilation, &error));
  fusec_options_free(options);
  fusec_model_free(model);
}

static void wrong_models(void) {
  fusec_model* model = NULL;
  fusec_error* error = NULL;
  const char json[] = "{\"fusec\": 1, \"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [4]}],"
                      " \"nodes\": [{\"name\": \"y\", \"op\": \"sigmoyd\", \"inputs\": [\"x\"]}], \"outputs\": [\"y\"]}";
  CHECK(fusec_model_parse(json, sizeof json - 1, NULL, NULL, NULL, &model, &error) == FUSEC_ERROR_INPUT);
  CHECK(model == NULL);
  CHECK(strcmp(fusec_error_file(error), "model") == 0);
  CHECK(strcmp(fusec_error_pointer(error), "/nodes/0/op") == 0);
  CHECK(strcmp(fusec_error_found(error), "\"sigmoyd\"") == 0);
  CHECK(fusec_error_line(error) == 1);
  CHECK(fusec_error_column(error) == (size_t)(strstr(json, "\"sigmoyd\"") - json) + 1);
  CHECK(strstr(fusec_error_hint(error), "sigmoid"));
  CHECK(strlen(fusec_error_what(error)) > 0 && strstr(fusec_error_message(error), fusec_error_what(error)));
  fusec_error_free(error);
  EXPECT(FUSEC_ERROR_INPUT, "no_such_file.json", fusec_model_read("no_such_file.json", NULL, NULL, &model, &error));
  const char* ir = "model \"m\"\ninput x: float32[4]\ny = sigmoyd(x)\nreturn y\n";
  EXPECT(FUSEC_ERROR_INPUT, "model: line 3: ", fusec_model_parse(ir, strlen(ir), NULL, NULL, NULL, &model, &error));
}

static void builder(void) {
  fusec_registry* registry = NULL;
  GOOD(fusec_registry_new(&registry, &error));
  const char* operands[] = {"x", "cap"};
  const fusec_op op = {.name = "my.cap", .operands = operands, .operand_count = 2, .pattern = "elemwise",
                       .expression = "$1 * tanh($0 / $1)"};
  GOOD(fusec_registry_add(registry, &op, &error));
  EXPECT(FUSEC_ERROR_USAGE, "my.cap", fusec_registry_add(registry, &op, &error));

  fusec_builder* built = NULL;
  GOOD(fusec_builder_new("built", registry, &built, &error));
  fusec_registry_free(registry);
  const int64_t hint = 8;
  GOOD(fusec_builder_symbol(built, "n", 1, 64, 1, &hint, &error));
  const fusec_dimension shape[] = {{0, "2*n"}, {6, NULL}}, pair[] = {{2, NULL}};
  GOOD(fusec_builder_input(built, "x", "float32", shape, 2, &error));
  const double scales[] = {0.5, 2};
  GOOD(fusec_builder_constant_data(built, "scales", "float32", pair, 1, scales, 2, &error));
  const fusec_operand to_cap[] = {value("x"), {.kind = FUSEC_REAL, .real = 30}};
  const char* cap = NULL;
  GOOD(fusec_builder_op(built, "my.cap", to_cap, 2, NULL, 0, NULL, 1, &cap, &error));
  const fusec_operand to_split[] = {value(cap)};
  const int64_t sizes[] = {4, 2};
  const fusec_attribute split[] = {{.name = "split_sizes", .kind = FUSEC_INTEGERS, .integers = sizes, .count = 2},
                                   {.name = "dim", .kind = FUSEC_INTEGER, .integer = 1}};
  const char* parts[2] = {NULL, NULL};
  GOOD(fusec_builder_op(built, "split", to_split, 1, split, 2, "halves", 2, parts, &error));
  CHECK(parts[0] && strcmp(parts[0], "halves.0") == 0 && strcmp(parts[1], "halves.1") == 0);
  const fusec_operand to_mul[] = {value(parts[1]), value("scales")}, wrong[] = {{.kind = 17}};
  const char* y = NULL;
  GOOD(fusec_builder_op(built, "mul", to_mul, 2, NULL, 0, "y", 1, &y, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the kind of an operand: found 17",
         fusec_builder_op(built, "neg", wrong, 1, NULL, 0, NULL, 1, &y, &error));
  CHECK(y == NULL);
  fusec_model* model = NULL;
  EXPECT(FUSEC_ERROR_INPUT, "a model without outputs", fusec_builder_build(built, NULL, &model, &error));
  GOOD(fusec_builder_output(built, "y", &error));
  GOOD(fusec_builder_output(built, parts[0], &error));
  GOOD(fusec_builder_build(built, NULL, &model, &error));
  fusec_builder_free(built);

  fusec_text* text = NULL;
  GOOD(fusec_model_json(model, &text, &error));
  check_text(text, "\"hint\": 8");
  GOOD(fusec_model_ir(model, &text, &error));
  check_text(text, "constant scales: float32[2] = [0.5, 2");
  fusec_model* rewritten = NULL;
  GOOD(fusec_model_run_pass(model, "simplify-algebra", NULL, &rewritten, &error));
  fusec_model_free(rewritten);
  EXPECT(FUSEC_ERROR_USAGE, "no-such-pass", fusec_model_run_pass(model, "no-such-pass", NULL, &rewritten, &error));

  // The same numbers by the reference.
  float x[12], out[4];
  for (int i = 0; i < 12; ++i) x[i] = (float)i;
  const int64_t x_shape[] = {2, 6}, y_shape[] = {2, 2};
  const fusec_tensor given[] = {{x, "float32", x_shape, 2}}, results[] = {{out, "float32", y_shape, 2}};
  const char *given_names[] = {"x"}, *result_names[] = {"y"};
  GOOD(fusec_model_run_reference(model, given_names, given, 1, result_names, results, 1, &error));
  CHECK(out[0] > 1.95f && out[0] < 2.0f);  // 30 * tanh(4 / 30) / 2
  CHECK(out[1] > 9.8f && out[1] < 10.0f);
  fusec_model_free(model);
}

static int32_t count_calls(void* user, const char* stage, size_t done, size_t total) {
  (void)stage, (void)done, (void)total;
  return ++*(int*)user > 3;
}

static void compilations(void) {
  fusec_model* model = parsed(kModel);
  fusec_compilation* compilation = NULL;
  GOOD(fusec_compile(model, NULL, &compilation, &error));
  CHECK(strcmp(fusec_compilation_identifier(compilation), "gated") == 0);
  const char* const products[][2] = {{"cu", "gated_launch"},        {"header", "gated_launch"},
                                     {"manifest", "\"kernels\""},   {"partition", "\"fusec_partition\""},
                                     {"plan", "\"act\""},           {"ir", "return y"},
                                     {"report", "predicted_us"},    {"ledger", "fusec_ledger"},
                                     {"dot", "digraph"},            {"summary", "1 group"},
                                     {"warnings", ""}};
  fusec_text* text = NULL;
  for (size_t i = 0; i < sizeof products / sizeof products[0]; ++i) {
    GOOD(fusec_compilation_product(compilation, products[i][0], &text, &error));
    check_text(text, products[i][1]);
  }
  EXPECT(FUSEC_ERROR_USAGE, "a product: found \"cuda\", expected one of cu, header",
         fusec_compilation_product(compilation, "cuda", &text, &error));
  EXPECT(FUSEC_ERROR_USAGE, "nothing was compiled", fusec_compilation_product(compilation, "ptx", &text, &error));
  fusec_module* module = NULL;
  EXPECT(FUSEC_ERROR_USAGE, "set option \"ptx\"", fusec_module_of(compilation, &module, &error));
  const char *both[] = {"act", "y"}, *unknown[] = {"z"};
  GOOD(fusec_compilation_explain(compilation, both, 2, 0, &text, &error));
  check_text(text, "one kernel");
  GOOD(fusec_compilation_require_one_kernel(compilation, both, 2, &error));
  EXPECT(FUSEC_ERROR_INPUT, "\"z\"", fusec_compilation_explain(compilation, unknown, 1, 1, &text, &error));
  fusec_compilation_free(compilation);

  fusec_options* options = NULL;
  GOOD(fusec_options_new(&options, &error));
  int calls = 0;
  GOOD(fusec_options_set_progress(options, count_calls, &calls, &error));
  EXPECT(FUSEC_CANCELLED, "a callback ended the call", fusec_compile(model, options, &compilation, &error));
  CHECK(calls == 4);
  GOOD(fusec_options_set_progress(options, NULL, NULL, &error));
  EXPECT(FUSEC_ERROR_INPUT, "", fusec_options_set_plan(options, "no plan", &error) ||
                                    fusec_compile(model, options, &compilation, &error));
  fusec_options_free(options);
  fusec_model_free(model);

  GOOD(fusec_list("ops", NULL, &text, &error));
  check_text(text, "\"silu\"");
  EXPECT(FUSEC_ERROR_USAGE, "ops, passes, patterns or targets", fusec_list("things", NULL, &text, &error));
  GOOD(fusec_doctor(NULL, 1, &text, &error));
  check_text(text, "NVRTC");
}

static fusec_memory* on_device(const float* list, size_t bytes) {
  fusec_memory* memory = NULL;
  GOOD(fusec_memory_new(0, bytes, &memory, &error));
  GOOD(fusec_memory_copy_from_host(memory, list, bytes, &error));
  return memory;
}

// On a GPU, or what stands in for one: a launch, and a captured one with other inputs.
static void launches(fusec_module* module, float* gate, float* up, const int64_t* shape) {
  const size_t bytes = 3 * 64 * sizeof(float);
  float y[3 * 64] = {0};
  fusec_memory *gates = on_device(gate, bytes), *ups = on_device(up, bytes), *ys = on_device(y, bytes);
  const fusec_tensor arguments[] = {{fusec_memory_data(gates), "float32", shape, 2},
                                    {fusec_memory_data(ups), "float32", shape, 2}};
  const fusec_tensor results[] = {{fusec_memory_data(ys), "float32", shape, 2}};
  GOOD(fusec_module_launch(module, 0, arguments, 2, results, 1, NULL, &error));
  GOOD(fusec_synchronize(0, NULL, &error));
  GOOD(fusec_memory_copy_to_host(ys, y, bytes, &error));
  CHECK(y[0] == 0 && y[1] == 100 && y[63] == 0);
  GOOD(fusec_module_constants_changed(module, &error));
  fusec_captured* captured = NULL;
  GOOD(fusec_module_capture(module, 0, arguments, 2, results, 1, &captured, &error));
  gate[5] = 100;
  GOOD(fusec_memory_copy_from_host(gates, gate, bytes, &error));
  GOOD(fusec_captured_launch(captured, NULL, &error));
  GOOD(fusec_memory_copy_to_host(ys, y, bytes, &error));
  CHECK(y[1] == 100 && y[5] == 500 && y[63] == 0);
  EXPECT(FUSEC_ERROR_USAGE, "more bytes", fusec_memory_copy_to_host(ys, y, bytes + 4, &error));
  EXPECT(FUSEC_ERROR_ENVIRONMENT, "", fusec_memory_new(1000, 16, &(fusec_memory*){NULL}, &error));
  fusec_captured_free(captured);
  fusec_memory_free(gates), fusec_memory_free(ups), fusec_memory_free(ys);
}

// With NVRTC: the module runs on the emulator, from the compilation and from its files.
static void modules(void) {
  fusec_options* options = NULL;
  GOOD(fusec_options_new(&options, &error));
  GOOD(fusec_options_set(options, "ptx", NULL, &error));
  fusec_model* model = parsed(kModel);
  fusec_compilation* compilation = NULL;
  GOOD(fusec_compile(model, options, &compilation, &error));
  fusec_module* module = NULL;
  fusec_text *manifest = NULL, *ptx = NULL, *cubin = NULL;
  GOOD(fusec_compilation_product(compilation, "manifest", &manifest, &error));
  GOOD(fusec_compilation_product(compilation, "ptx", &ptx, &error));
  GOOD(fusec_compilation_product(compilation, "cubin", &cubin, &error));
  CHECK(fusec_text_size(cubin) > 4 && memcmp(fusec_text_data(cubin), "\177ELF", 4) == 0);
  const fusec_image image = {.ptx = fusec_text_data(ptx), .ptx_size = fusec_text_size(ptx)};
  GOOD(fusec_module_load(fusec_text_data(manifest), fusec_text_size(manifest), &image, 1, &module, &error));
  EXPECT(FUSEC_ERROR_INPUT, "", fusec_module_load("{}", 2, &image, 1, &(fusec_module*){NULL}, &error));
  fusec_text_free(manifest), fusec_text_free(ptx), fusec_text_free(cubin);
  fusec_compilation_free(compilation);
  fusec_model_free(model);
  fusec_options_free(options);

  CHECK(strcmp(fusec_module_arch(module), "sm_80") == 0);
  CHECK(fusec_module_argument_count(module) == 2 && fusec_module_result_count(module) == 1);
  fusec_declaration declared;
  GOOD(fusec_module_argument(module, 1, &declared, &error));
  CHECK(strcmp(declared.name, "up") == 0 && strcmp(declared.dtype, "float32") == 0 && declared.rank == 2 &&
        !declared.is_constant && strcmp(declared.shape[0].expression, "tokens") == 0 &&
        !declared.shape[1].expression && declared.shape[1].extent == 64);
  EXPECT(FUSEC_ERROR_USAGE, "the index of a tensor: found 2, expected below 2",
         fusec_module_argument(module, 2, &declared, &error));

  float gate[3 * 64], up[3 * 64], y[3 * 64];
  for (int i = 0; i < 3 * 64; ++i) gate[i] = 0, up[i] = (float)i, y[i] = 7;
  gate[1] = 100;
  const int64_t shape[] = {3, 64}, narrow[] = {3, 63};
  const fusec_tensor arguments[] = {{gate, "float32", shape, 2}, {up, "float32", shape, 2}};
  const fusec_tensor misshapen[] = {{gate, "float32", shape, 2}, {up, "float32", narrow, 2}};
  const fusec_tensor results[] = {{y, "float32", shape, 2}};
  int64_t found[2] = {0, 0};
  GOOD(fusec_module_result_shape(module, arguments, 2, 0, found, &error));
  CHECK(found[0] == 3 && found[1] == 64);
  GOOD(fusec_module_run_on_emulator(module, arguments, 2, results, 1, 1, &error));
  CHECK(y[0] == 0 && y[1] == 100 && y[63] == 0);
  const fusec_tensor without_memory[] = {arguments[0], {NULL, arguments[1].dtype, arguments[1].shape, arguments[1].rank}};
  EXPECT(FUSEC_ERROR_INPUT, "the address of tensor \"up\": found null",
         fusec_module_run_on_emulator(module, without_memory, 2, results, 1, 1, &error));
  EXPECT(FUSEC_ERROR_INPUT, "\"up\"", fusec_module_run_on_emulator(module, misshapen, 2, results, 1, 1, &error));
  EXPECT(FUSEC_ERROR_USAGE, "the results: found null",
         fusec_module_run_on_emulator(module, arguments, 2, NULL, 1, 1, &error));
  if (fusec_has_device(0)) {
    launches(module, gate, up, shape);
  } else {
    EXPECT(FUSEC_ERROR_ENVIRONMENT, "", fusec_module_launch(module, 0, arguments, 2, results, 1, NULL, &error));
    EXPECT(FUSEC_ERROR_ENVIRONMENT, "", fusec_memory_new(0, 16, &(fusec_memory*){NULL}, &error));
  }
  fusec_module_free(module);
}

int main(int argc, char** argv) {
  CHECK(argc >= 2 && strcmp(fusec_version(), argv[1]) == 0);
  if (argc > 2) CHECK(fusec_has_device(0));  // c_api_test VERSION gpu
  nulls();
  option_names();
  wrong_models();
  builder();
  compilations();
  modules();
  printf("%d failures\n", failures);
  return failures != 0;
}
