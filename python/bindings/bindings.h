// The parts of the extension: each function puts its classes and functions into the module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fusec/fusec.h"

namespace fusec::python {

namespace nb = nanobind;
using namespace nb::literals;

// Long work, during which other threads of Python run.
using Released = nb::call_guard<nb::gil_scoped_release>;

void bind_errors(nb::module_& m);
void bind_models(nb::module_& m);
void bind_options(nb::module_& m);
void bind_compilations(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_modules(nb::module_& m);
void bind_dlpack(nb::module_& m);
void bind_doctor(nb::module_& m);

// A shape as Python has it: numbers and expressions of symbols.
using Shape = std::vector<std::variant<std::int64_t, std::string>>;
Shape shape_of(const std::vector<Dimension>& dimensions);
std::vector<Dimension> dimensions_of(const Shape& shape);

std::string text_of(const TensorInfo& type);  // "float32[n, 4]"

// A str of Python. Throws nb::type_error, which begins with `what`, for anything else.
std::string text_in(const nb::handle& given, const char* what);

// The user's function. Where it does not return a Result it throws nb::type_error, which says what is `expected`.
template <typename Result, typename Argument>
std::function<Result(const Argument&)> returning(const char* expected,
                                                 std::function<nb::object(const Argument&)> function) {
  if (!function) return {};
  return [expected, function = std::move(function)](const Argument& argument) {
    const nb::gil_scoped_acquire locked;
    const nb::object made = function(argument);
    std::optional<Result> result;
    if (made.is_none() || !nb::try_cast(made, result))
      throw nb::type_error((std::string(expected) + "; found " + nb::type_name(made.type()).c_str()).c_str());
    return *std::move(result);
  };
}

}  // namespace fusec::python
