// Reports several errors of one kind together: all unknown ops of a model, all undefined values.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ir/error.h"

namespace fusec {

// Several errors, thrown as one exception. Code that catches Error sees the first one. Its hint says how many more
// there are.
class SeveralErrors : public Error {
 public:
  explicit SeveralErrors(std::vector<Error> all)
      : Error(all.front().kind(), with_count(all.front().parts(), all.size() - 1)), all_(std::move(all)) {}

  const std::vector<Error>& all() const { return all_; }

 private:
  static Error::Parts with_count(Error::Parts parts, std::size_t others) {
    parts.hint += (parts.hint.empty() ? "" : "; ") + std::to_string(others);
    parts.hint += others == 1 ? " more such error" : " more such errors";
    return parts;
  }

  std::vector<Error> all_;
};

// Collects errors so that one run reports them all.
class ErrorList {
 public:
  static constexpr std::size_t kMost = 20;

  // Runs `check` and keeps an error that has a place in the file; other errors pass through. Throws all errors once
  // there are kMost. Returns whether `check` succeeded.
  template <class F>
  bool attempt(const F& check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      if (error.parts().pointer.empty()) throw;  // a limit of time or memory
      list_.push_back(error);
      if (list_.size() == kMost) raise();
      return false;
    }
  }

  bool empty() const { return list_.empty(); }

  // Throws the collected errors, if there are any.
  void raise() {
    if (list_.size() == 1) throw list_.front();
    if (!list_.empty()) throw SeveralErrors(std::move(list_));
  }

 private:
  std::vector<Error> list_;
};

}  // namespace fusec
