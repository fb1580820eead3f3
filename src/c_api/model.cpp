// Operators of one's own, and models: read, parsed, written, rewritten, evaluated.
#include "c_api/handles.h"

using namespace fusec;
using namespace fusec::c_api;

Registry c_api::registry_of(const fusec_registry* registry) {
  return registry ? registry->registry : Registry();
}

fusec_status fusec_registry_new(fusec_registry** registry, fusec_error** error) {
  return guarded_new(registry, error, [] { return new fusec_registry{}; });
}

fusec_status fusec_registry_add(fusec_registry* registry, const fusec_op* op, fusec_error** error) {
  return guarded(error, [&] {
    require(registry, "the registry");
    require(op, "the op");
    require(op->name, "the op's name");
    OpDescription description;
    description.name = op->name;
    description.operands = texts(op->operands, op->operand_count, "the op's operands");
    if (op->pattern) description.pattern = op->pattern;
    description.expression = text_or_empty(op->expression);
    description.launcher = text_or_empty(op->launcher);
    registry->registry = registry->registry.with(std::move(description));
  });
}

void fusec_registry_free(fusec_registry* registry) {
  delete registry;
}

fusec_status fusec_model_read(const char* path, const fusec_registry* registry, const fusec_options* options,
                              fusec_model** model, fusec_error** error) {
  return guarded_new(model, error, [&] {
    require(path, "the model's path");
    return new fusec_model{Model::read(path, registry_of(registry), options_of(options).resources)};
  });
}

fusec_status fusec_model_parse(const char* text, size_t size, const char* directory, const fusec_registry* registry,
                               const fusec_options* options, fusec_model** model, fusec_error** error) {
  return guarded_new(model, error, [&] {
    require_list(text, size, "the model's text");
    const std::string_view given(size > 0 ? text : "", size);
    return new fusec_model{
        Model::parse(given, directory ? directory : ".", registry_of(registry), options_of(options).resources)};
  });
}

fusec_status fusec_model_json(const fusec_model* model, fusec_text** json, fusec_error** error) {
  return guarded_new(json, error, [&] {
    require(model, "the model");
    return new_text(model->model.to_json());
  });
}

fusec_status fusec_model_ir(const fusec_model* model, fusec_text** ir, fusec_error** error) {
  return guarded_new(ir, error, [&] {
    require(model, "the model");
    return new_text(model->model.to_text());
  });
}

fusec_status fusec_model_run_pass(const fusec_model* model, const char* pass, const fusec_options* options,
                                  fusec_model** rewritten, fusec_error** error) {
  return guarded_new(rewritten, error, [&] {
    require(model, "the model");
    require(pass, "the pass");
    return new fusec_model{run_pass(model->model, pass, options_of(options))};
  });
}

fusec_status fusec_model_run_reference(const fusec_model* model, const char* const* argument_names,
                                       const fusec_tensor* arguments, size_t argument_count,
                                       const char* const* result_names, const fusec_tensor* results,
                                       size_t result_count, fusec_error** error) {
  return guarded(error, [&] {
    require(model, "the model");
    const auto named = [](const char* const* names, const fusec_tensor* tensors, size_t count) {
      std::vector<std::string> list = texts(names, count, "the tensors' names");
      std::vector<TensorView> views = views_of(tensors, count, "the tensors");
      std::vector<NamedTensor> made;
      for (std::size_t i = 0; i < count; ++i) made.push_back({std::move(list[i]), std::move(views[i])});
      return made;
    };
    run_reference(model->model, named(argument_names, arguments, argument_count),
                  named(result_names, results, result_count));
  });
}

void fusec_model_free(fusec_model* model) {
  delete model;
}
