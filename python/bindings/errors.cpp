// fusec::Error becomes one of the exceptions of fusec/errors.py.
#include "bindings.h"

namespace fusec::python {
namespace {

const char* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return "InputError";
    case ErrorKind::kUsage:
      return "UsageError";
    case ErrorKind::kEnvironment:
      return "PlatformError";
  }
  return "FusecError";
}

void raise(const Error& error) {
  const nb::object type = nb::module_::import_("fusec.errors").attr(class_of(error.kind()));
  const Error::Parts& p = error.parts();
  const nb::object value =
      type(error.what(), "file"_a = p.file, "pointer"_a = p.pointer, "line"_a = p.line, "column"_a = p.column,
           "what"_a = p.what, "found"_a = p.found, "expected"_a = p.expected, "hint"_a = p.hint);
  PyErr_SetObject(type.ptr(), value.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    } catch (const InternalError& error) {
      PyErr_Format(PyExc_SystemError, "%s (a bug in fusec; please report it with the model)", error.what());
    }
  });
}

}  // namespace fusec::python
