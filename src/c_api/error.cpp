// Errors, texts, and the boundary that no exception crosses.
#include <new>

#include "c_api/handles.h"

// Of what the caller sees only pointers, so that there is an error without any memory.
struct fusec_error {
  fusec_status status;
  const char* message;
  const char *file, *pointer, *what, *found, *expected, *hint;
  size_t line, column;
};

namespace fusec::c_api {
namespace {

constexpr fusec_error kOutOfMemory{
    FUSEC_ERROR_OUT_OF_MEMORY, "there is not enough memory", "", "", "there is not enough memory", "", "", "", 0, 0};

struct OwnedError : fusec_error {
  OwnedError(fusec_status of, std::string text, Error::Parts of_parts)
      : fusec_error{}, message_text(std::move(text)), parts(std::move(of_parts)) {
    status = of;
    message = message_text.c_str();
    file = parts.file.c_str();
    pointer = parts.pointer.c_str();
    what = parts.what.c_str();
    found = parts.found.c_str();
    expected = parts.expected.c_str();
    hint = parts.hint.c_str();
    line = parts.line;
    column = parts.column;
  }

  std::string message_text;
  Error::Parts parts;
};

fusec_status out_of_memory(fusec_error** error) noexcept {
  if (error) *error = const_cast<fusec_error*>(&kOutOfMemory);
  return FUSEC_ERROR_OUT_OF_MEMORY;
}

fusec_status set(fusec_error** error, fusec_status status, std::string message, Error::Parts parts) {
  if (error) *error = new OwnedError(status, std::move(message), std::move(parts));
  return status;
}

fusec_status set(fusec_error** error, fusec_status status, const std::string& what) {
  return set(error, status, what, {.what = what});
}

fusec_status told_with_memory(fusec_error** error) {
  try {
    throw;
  } catch (const Error& thrown) {
    return set(error, static_cast<fusec_status>(thrown.kind()), thrown.what(), thrown.parts());
  } catch (const Cancelled&) {
    return set(error, FUSEC_CANCELLED, "a callback ended the call");
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return set(error, FUSEC_ERROR_INTERNAL,
               std::string("internal error: ") + thrown.what() + " (a bug in fusec; please report it with the model)");
  } catch (...) {
    return set(error, FUSEC_ERROR_INTERNAL, "a callback threw an exception");
  }
}

}  // namespace

fusec_status told(fusec_error** error) noexcept {
  try {
    return told_with_memory(error);
  } catch (...) {
    return out_of_memory(error);
  }
}

void require(const void* pointer, const char* what) {
  if (!pointer) throw Error(ErrorKind::kUsage, Error::Parts{.what = what, .found = "null"});
}

void require_list(const void* list, std::size_t count, const char* what) {
  if (count > 0) require(list, what);
}

std::vector<std::string> texts(const char* const* list, std::size_t count, const char* what) {
  require_list(list, count, what);
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i) {
    require(list[i], what);
    made.emplace_back(list[i]);
  }
  return made;
}

}  // namespace fusec::c_api

fusec_status fusec_error_status(const fusec_error* error) {
  return error ? error->status : FUSEC_OK;
}
const char* fusec_error_message(const fusec_error* error) {
  return error ? error->message : "";
}
const char* fusec_error_file(const fusec_error* error) {
  return error ? error->file : "";
}
const char* fusec_error_pointer(const fusec_error* error) {
  return error ? error->pointer : "";
}
size_t fusec_error_line(const fusec_error* error) {
  return error ? error->line : 0;
}
size_t fusec_error_column(const fusec_error* error) {
  return error ? error->column : 0;
}
const char* fusec_error_what(const fusec_error* error) {
  return error ? error->what : "";
}
const char* fusec_error_found(const fusec_error* error) {
  return error ? error->found : "";
}
const char* fusec_error_expected(const fusec_error* error) {
  return error ? error->expected : "";
}
const char* fusec_error_hint(const fusec_error* error) {
  return error ? error->hint : "";
}
void fusec_error_free(fusec_error* error) {
  if (error != &fusec::c_api::kOutOfMemory) delete static_cast<fusec::c_api::OwnedError*>(error);
}

const char* fusec_version(void) {
  return fusec::version().data();
}

const char* fusec_text_data(const fusec_text* text) {
  return text ? text->text.c_str() : "";
}
size_t fusec_text_size(const fusec_text* text) {
  return text ? text->text.size() : 0;
}
void fusec_text_free(fusec_text* text) {
  delete text;
}
