// fusec for programs in C, Rust, Go, Julia, Zig and whatever else calls C (C11). docs/c_api.md has an example.
//
//   fusec_error* error = NULL;
//   fusec_model* model = NULL;
//   fusec_compilation* compiled = NULL;
//   fusec_text* source = NULL;
//   if (fusec_model_read("model.json", NULL, NULL, &model, &error) || fusec_compile(model, NULL, &compiled, &error) ||
//       fusec_compilation_product(compiled, "cu", &source, &error))
//     fputs(fusec_error_message(error), stderr);
//
// Functions that can fail return a status, 0 for success. Their last parameter is a pointer to an error handle and may
// be null; otherwise the function sets the handle to null, or to an error that the caller frees. If a function fails,
// its other results are null. No exception leaves the library, and it prints nothing.
//
// Handles are opaque. The caller frees each handle that a function returns through a pointer, with the function
// fusec_..._free, which also accepts null. A handle keeps what it needs alive: a model may be freed after compiling it,
// a compilation after loading a module from it. Input text is UTF-8; functions read it before they return. Text of type
// const char* that a function returns ends with a zero byte and lives as long as the handle passed to that function.
//
// Threads. Models, compilations, registries, texts and modules may be used by several threads at once. A builder and
// options may be changed by one thread at a time, and by none while another uses them. A handle is freed by one thread,
// when no other uses it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FUSEC_API __attribute__((visibility("default")))
#else
#define FUSEC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// --- what goes wrong

typedef int32_t fusec_status;
enum {
  FUSEC_OK = 0,
  FUSEC_ERROR_INPUT = 1,        // the model, a plan or a pattern is wrong, or a demanded property does not hold
  FUSEC_ERROR_USAGE = 2,        // an argument is wrong
  FUSEC_ERROR_ENVIRONMENT = 3,  // a library, driver or device is missing, or emitted source did not compile
  FUSEC_ERROR_OUT_OF_MEMORY = 4,
  FUSEC_ERROR_INTERNAL = 5,  // a bug in fusec
  FUSEC_CANCELLED = 6        // a callback of the caller's ended the call
};

typedef struct fusec_error fusec_error;
FUSEC_API fusec_status fusec_error_status(const fusec_error* error);
// "FILE#POINTER: WHAT: found FOUND, expected EXPECTED (hint: HINT)". The parts may each be "". It is one line, except
// that the reasons of fusec_compilation_require_one_kernel and what a compiler printed have lines of their own.
FUSEC_API const char* fusec_error_message(const fusec_error* error);
FUSEC_API const char* fusec_error_file(const fusec_error* error);     // the model file as it was named
FUSEC_API const char* fusec_error_pointer(const fusec_error* error);  // JSON pointer (RFC 6901) of the element
FUSEC_API size_t fusec_error_line(const fusec_error* error);          // in the model's text, from 1; 0 where unknown
FUSEC_API size_t fusec_error_column(const fusec_error* error);
FUSEC_API const char* fusec_error_what(const fusec_error* error);
FUSEC_API const char* fusec_error_found(const fusec_error* error);
FUSEC_API const char* fusec_error_expected(const fusec_error* error);
FUSEC_API const char* fusec_error_hint(const fusec_error* error);
FUSEC_API void fusec_error_free(fusec_error* error);

FUSEC_API const char* fusec_version(void);  // "0.1.0"

// --- text and bytes that the library made; a zero byte follows the last one

typedef struct fusec_text fusec_text;
FUSEC_API const char* fusec_text_data(const fusec_text* text);
FUSEC_API size_t fusec_text_size(const fusec_text* text);
FUSEC_API void fusec_text_free(fusec_text* text);

// --- options

// Those of the command line under the same names (docs/c_api.md), and two more: "ptx" compiles the kernels with NVRTC,
// which the products "ptx" and "cubin" and modules need; "nvrtc-library" is the path of libnvrtc. Null options are the
// defaults.
typedef struct fusec_options fusec_options;
FUSEC_API fusec_status fusec_options_new(fusec_options** options, fusec_error** error);
// `value` as the command line takes it; null sets a flag. An option that the command line takes several times
// ("no-fuse", "symbol") gets one value more, any other is replaced.
FUSEC_API fusec_status fusec_options_set(fusec_options* options, const char* name, const char* value,
                                         fusec_error** error);
// Adds patterns, written as in a pattern file (docs/patterns.md). The option "patterns" names files; these come on top.
FUSEC_API fusec_status fusec_options_add_patterns(fusec_options* options, const char* text, fusec_error** error);
// Compile with this (edited) product "plan", as option "plan" does with a file.
FUSEC_API fusec_status fusec_options_set_plan(fusec_options* options, const char* text, fusec_error** error);
// Called as a compilation goes on, maybe from other threads, one call at a time. `done` of `total` pieces of source are
// compiled where the stage is NVRTC's, else both are 0. Anything but 0 ends the compilation with FUSEC_CANCELLED.
typedef int32_t (*fusec_progress)(void* user, const char* stage, size_t done, size_t total);
FUSEC_API fusec_status fusec_options_set_progress(fusec_options* options, fusec_progress progress, void* user,
                                                  fusec_error** error);
FUSEC_API void fusec_options_free(fusec_options* options);

// --- operators of one's own

typedef struct fusec_op {
  const char* name;             // "my.scale_shift"
  const char* const* operands;  // "x", "bias?" for an optional one
  size_t operand_count;
  const char* pattern;     // its pattern kind, "elemwise", "broadcast", ...; null for "opaque"
  const char* expression;  // what it computes: "$0 * sigmoid($1)"; null for an external launcher
  const char* launcher;    // the launcher's symbol, as the emitted host part calls it, or null
} fusec_op;                // its result has the broadcast shape of the operands, and the first one's dtype

// The operators that models may use: those of the graph format, and those added. Null stands for the former alone.
typedef struct fusec_registry fusec_registry;
FUSEC_API fusec_status fusec_registry_new(fusec_registry** registry, fusec_error** error);
// Not while another thread uses the registry.
FUSEC_API fusec_status fusec_registry_add(fusec_registry* registry, const fusec_op* op, fusec_error** error);
FUSEC_API void fusec_registry_free(fusec_registry* registry);

// --- models: read, or built

typedef struct fusec_model fusec_model;
// The graph format (docs/graph_format.md), as JSON or in its textual form. "-" is standard input. Of the options the
// limits count. `registry` and `options` may be null.
FUSEC_API fusec_status fusec_model_read(const char* path, const fusec_registry* registry, const fusec_options* options,
                                        fusec_model** model, fusec_error** error);
// Weight files are looked for in `directory`; null for the working directory.
FUSEC_API fusec_status fusec_model_parse(const char* text, size_t size, const char* directory,
                                         const fusec_registry* registry, const fusec_options* options,
                                         fusec_model** model, fusec_error** error);
FUSEC_API fusec_status fusec_model_json(const fusec_model* model, fusec_text** json, fusec_error** error);
FUSEC_API fusec_status fusec_model_ir(const fusec_model* model, fusec_text** ir, fusec_error** error);
// The model after one rewriting pass ("simplify-algebra"); fusec_list("passes") has their names.
FUSEC_API fusec_status fusec_model_run_pass(const fusec_model* model, const char* pass, const fusec_options* options,
                                            fusec_model** rewritten, fusec_error** error);
FUSEC_API void fusec_model_free(fusec_model* model);

// A dimension: an expression of symbols ("2*tokens"), or, where that is null, the extent.
typedef struct fusec_dimension {
  int64_t extent;
  const char* expression;
} fusec_dimension;

enum { FUSEC_VALUE = 0, FUSEC_INTEGER = 1, FUSEC_REAL = 2, FUSEC_BOOL = 3, FUSEC_ABSENT = 4 };
// An operand of a node: a value by its name, or a number, weakly typed as numbers are in Python.
typedef struct fusec_operand {
  int32_t kind;       // FUSEC_VALUE, FUSEC_INTEGER, FUSEC_REAL, FUSEC_BOOL, or FUSEC_ABSENT for an optional one
  const char* value;  // of FUSEC_VALUE
  int64_t integer;    // of FUSEC_INTEGER and FUSEC_BOOL
  double real;        // of FUSEC_REAL
} fusec_operand;

enum { FUSEC_TEXT = 5, FUSEC_INTEGERS = 6, FUSEC_TEXTS = 7 };
// Sizes and positions may be expressions of symbols: a list that has any is FUSEC_TEXTS.
typedef struct fusec_attribute {
  const char* name;
  int32_t kind;              // FUSEC_INTEGER, FUSEC_REAL, FUSEC_BOOL, FUSEC_TEXT, FUSEC_INTEGERS or FUSEC_TEXTS
  int64_t integer;           // of FUSEC_INTEGER and FUSEC_BOOL
  double real;               // of FUSEC_REAL
  const char* text;          // of FUSEC_TEXT
  const int64_t* integers;   // of FUSEC_INTEGERS
  const char* const* texts;  // of FUSEC_TEXTS
  size_t count;              // of both lists
} fusec_attribute;

typedef struct fusec_builder fusec_builder;
FUSEC_API fusec_status fusec_builder_new(const char* name, const fusec_registry* registry, fusec_builder** builder,
                                         fusec_error** error);
// `hint` is the value that costs and reports take; null for that of the graph format.
FUSEC_API fusec_status fusec_builder_symbol(fusec_builder* builder, const char* name, int64_t min, int64_t max,
                                            int64_t multiple_of, const int64_t* hint, fusec_error** error);
FUSEC_API fusec_status fusec_builder_input(fusec_builder* builder, const char* name, const char* dtype,
                                           const fusec_dimension* shape, size_t rank, fusec_error** error);
// Given at each call, after the inputs (a weight); or `count` elements in row-major order that become part of the
// model.
FUSEC_API fusec_status fusec_builder_constant(fusec_builder* builder, const char* name, const char* dtype,
                                              const fusec_dimension* shape, size_t rank, fusec_error** error);
FUSEC_API fusec_status fusec_builder_constant_data(fusec_builder* builder, const char* name, const char* dtype,
                                                   const fusec_dimension* shape, size_t rank, const double* elements,
                                                   size_t count, fusec_error** error);
// A node. `name` may be null: then one is made. `results` gets the names of its `result_count` results, which live as
// long as the builder; it may be null.
FUSEC_API fusec_status fusec_builder_op(fusec_builder* builder, const char* op, const fusec_operand* operands,
                                        size_t operand_count, const fusec_attribute* attributes, size_t attribute_count,
                                        const char* name, size_t result_count, const char** results,
                                        fusec_error** error);
FUSEC_API fusec_status fusec_builder_output(fusec_builder* builder, const char* value, fusec_error** error);
// Checks the whole model and infers its types. The builder stays as it is.
FUSEC_API fusec_status fusec_builder_build(const fusec_builder* builder, const fusec_options* options,
                                           fusec_model** model, fusec_error** error);
FUSEC_API void fusec_builder_free(fusec_builder* builder);

// --- compilation

typedef struct fusec_compilation fusec_compilation;
FUSEC_API fusec_status fusec_compile(const fusec_model* model, const fusec_options* options,
                                     fusec_compilation** compilation, fusec_error** error);
// M of the emitted file's host interface.
FUSEC_API const char* fusec_compilation_identifier(const fusec_compilation* compilation);
// By the names of the command line's option --emit: "cu", "header", "ptx", "cubin", "manifest", "partition", "plan",
// "ir", "report", "ledger", "dot", "svg", "html"; and "summary", one line, and "warnings", a line each. Some are made
// when they are asked for.
FUSEC_API fusec_status fusec_compilation_product(const fusec_compilation* compilation, const char* kind,
                                                 fusec_text** product, fusec_error** error);
// Why these nodes are, or are not, in one kernel; without nodes, of all groups. For people, or as JSON.
FUSEC_API fusec_status fusec_compilation_explain(const fusec_compilation* compilation, const char* const* nodes,
                                                 size_t count, int32_t json, fusec_text** explanation,
                                                 fusec_error** error);
// FUSEC_ERROR_INPUT, with the reasons, unless the nodes are in one kernel.
FUSEC_API fusec_status fusec_compilation_require_one_kernel(const fusec_compilation* compilation,
                                                            const char* const* nodes, size_t count,
                                                            fusec_error** error);
FUSEC_API void fusec_compilation_free(fusec_compilation* compilation);

// What this build knows, as JSON: "ops", "passes", "patterns" or "targets".
FUSEC_API fusec_status fusec_list(const char* what, const fusec_options* options, fusec_text** list,
                                  fusec_error** error);
// What this machine has of NVRTC, driver, GPU and cache, and what to do about what is missing.
FUSEC_API fusec_status fusec_doctor(const fusec_options* options, int32_t json, fusec_text** findings,
                                    fusec_error** error);

// --- running what was compiled

// A tensor of a call: dense, row-major. On a GPU `data` is a device pointer, a multiple of 16 bytes.
typedef struct fusec_tensor {
  void* data;
  const char* dtype;  // "bfloat16"
  const int64_t* shape;
  size_t rank;
} fusec_tensor;

// What a call takes or gives.
typedef struct fusec_declaration {
  const char* name;
  const char* dtype;
  const fusec_dimension* shape;
  size_t rank;
  int32_t is_constant;   // of an argument: the same at every launch (a weight)
  const char* alias_of;  // of a result: the argument that it overwrites, "" for none; what is passed for it is ignored
} fusec_declaration;

// Compiled kernels of a model, in one or several images. A GPU takes PTX or cubin, the emulator PTX; either pointer may
// be null.
typedef struct fusec_image {
  const void* ptx;
  size_t ptx_size;
  const void* cubin;
  size_t cubin_size;
} fusec_image;

// A manifest and kernels, ready to run: on GPUs through the CUDA driver alone, or on the CPU by the PTX emulator.
typedef struct fusec_module fusec_module;
FUSEC_API fusec_status fusec_module_load(const char* manifest, size_t manifest_size, const fusec_image* images,
                                         size_t image_count, fusec_module** module, fusec_error** error);
// Of a compilation that was made with option "ptx".
FUSEC_API fusec_status fusec_module_of(const fusec_compilation* compilation, fusec_module** module,
                                       fusec_error** error);
FUSEC_API const char* fusec_module_arch(const fusec_module* module);
// Arguments are the inputs, then the constants, in the order of a call; results are the outputs, each once.
FUSEC_API size_t fusec_module_argument_count(const fusec_module* module);
FUSEC_API size_t fusec_module_result_count(const fusec_module* module);
// All that the declaration points to lives as long as the module.
FUSEC_API fusec_status fusec_module_argument(const fusec_module* module, size_t index, fusec_declaration* declaration,
                                             fusec_error** error);
FUSEC_API fusec_status fusec_module_result(const fusec_module* module, size_t index, fusec_declaration* declaration,
                                           fusec_error** error);
// The shape of a result for these arguments; only their dtypes and shapes are read. `shape` has room for the declared
// rank.
FUSEC_API fusec_status fusec_module_result_shape(const fusec_module* module, const fusec_tensor* arguments,
                                                 size_t argument_count, size_t index, int64_t* shape,
                                                 fusec_error** error);

// What the devices of a group do together in one step of a call (fusec/collective.h).
typedef struct fusec_collective {
  const char* op;         // "all_reduce", "all_gather" or "reduce_scatter"
  const char* group;      // the name that the model has for it
  const char* reduce_op;  // "sum", "prod", "max", "min" or "avg"; "" of all_gather
  const char* dtype;
  void* source;
  int64_t source_elements;
  void* target;
  int64_t target_elements;
} fusec_collective;
// Enqueues the work on `stream`; on the emulator that is null and the work is done at once. Anything but 0 ends the
// call with FUSEC_CANCELLED.
typedef int32_t (*fusec_communicate)(void* user, const fusec_collective* collective, void* stream);
// Needed by a model with collectives, before it runs.
FUSEC_API fusec_status fusec_module_set_communicate(fusec_module* module, fusec_communicate communicate, void* user,
                                                    fusec_error** error);

// Executes the PTX on the CPU, with all checks of the emulator, on host memory. `threads`: 0 for as many as there are
// processors.
FUSEC_API fusec_status fusec_module_run_on_emulator(const fusec_module* module, const fusec_tensor* arguments,
                                                    size_t argument_count, const fusec_tensor* results,
                                                    size_t result_count, int32_t threads, fusec_error** error);
// Enqueues the model on a stream (a CUstream or cudaStream_t; null: the legacy default stream) of a GPU and returns.
// The first launch on a GPU loads the kernels into its primary context. The module keeps a workspace for each stream,
// and what is prepared of the constants, which is computed again where a constant's address changed. Arguments and
// results must stay until the stream has done the work.
FUSEC_API fusec_status fusec_module_launch(fusec_module* module, int32_t device, const fusec_tensor* arguments,
                                           size_t argument_count, const fusec_tensor* results, size_t result_count,
                                           void* stream, fusec_error** error);
// To be called after constants were changed in place: what is prepared of them is computed again at the next launch.
FUSEC_API fusec_status fusec_module_constants_changed(fusec_module* module, fusec_error** error);
FUSEC_API void fusec_module_free(fusec_module* module);

// One launch as a CUDA graph, with a workspace of its own. The tensors must stay as long as it is launched.
typedef struct fusec_captured fusec_captured;
FUSEC_API fusec_status fusec_module_capture(fusec_module* module, int32_t device, const fusec_tensor* arguments,
                                            size_t argument_count, const fusec_tensor* results, size_t result_count,
                                            fusec_captured** captured, fusec_error** error);
FUSEC_API fusec_status fusec_captured_launch(const fusec_captured* captured, void* stream, fusec_error** error);
FUSEC_API void fusec_captured_free(fusec_captured* captured);

// 1 where the CUDA driver is there, starts and has this device, else 0.
FUSEC_API int32_t fusec_has_device(int32_t device);
// Waits until the stream has done all that was enqueued.
FUSEC_API fusec_status fusec_synchronize(int32_t device, void* stream, fusec_error** error);

// Device memory for programs that use no CUDA runtime of their own. Copies wait until they are done.
typedef struct fusec_memory fusec_memory;
FUSEC_API fusec_status fusec_memory_new(int32_t device, size_t bytes, fusec_memory** memory, fusec_error** error);
FUSEC_API void* fusec_memory_data(const fusec_memory* memory);
FUSEC_API fusec_status fusec_memory_copy_from_host(fusec_memory* memory, const void* source, size_t bytes,
                                                   fusec_error** error);
FUSEC_API fusec_status fusec_memory_copy_to_host(const fusec_memory* memory, void* target, size_t bytes,
                                                 fusec_error** error);
FUSEC_API void fusec_memory_free(fusec_memory* memory);

// Evaluates a model op by op on the CPU, in host memory: what kernels are compared with. Tensors by name: all
// inputs and all constants without data; results are some of the outputs, or all.
FUSEC_API fusec_status fusec_model_run_reference(const fusec_model* model, const char* const* argument_names,
                                                 const fusec_tensor* arguments, size_t argument_count,
                                                 const char* const* result_names, const fusec_tensor* results,
                                                 size_t result_count, fusec_error** error);

#ifdef __cplusplus
}
#endif
