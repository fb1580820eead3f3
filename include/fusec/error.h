// The one exception type of the project: what went wrong with the input, the command line or the environment.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace fusec {

// What has to be mended. The programs end with these numbers as their exit status.
enum class ErrorKind {
  kInput = 1,        // the model, a plan or a pattern file is wrong, or a demanded property does not hold
  kUsage = 2,        // the command line or an API argument is wrong
  kEnvironment = 3,  // a library, driver or device is missing, or emitted source did not compile
};

// Thrown by every function of the project that can fail because of its input. Each part may be empty.
// what() is "FILE#POINTER: WHAT: found FOUND, expected EXPECTED (hint: HINT)"; reasons and compilers' logs add lines.
class Error : public std::runtime_error {
 public:
  struct Parts {
    std::string file;      // the model file as the user named it, "-" for standard input
    std::string pointer;   // JSON pointer (RFC 6901) of the offending element, "" for the whole document
    std::size_t line = 0;  // in the file, from 1; 0 where unknown
    std::size_t column = 0;
    std::string what;      // "unknown dtype"
    std::string found;     // "\"flaot32\""
    std::string expected;  // "one of float64, float32, ..."
    std::string hint;      // "did you mean float32?"
  };

  Error(ErrorKind kind, Parts parts);
  // The short form for errors that have no place in a file.
  Error(ErrorKind kind, std::string what) : Error(kind, Parts{.what = std::move(what)}) {}

  ErrorKind kind() const { return kind_; }
  const Parts& parts() const { return parts_; }
  int exit_status() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
  Parts parts_;
};

// A broken promise inside fusec, never reachable from user input; carries the place of the check.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace fusec
