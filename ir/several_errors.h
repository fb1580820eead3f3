// Reports several errors of one kind together: all unknown ops of a model, all undefined values.
#pragma once

#include <vector>

#include "ir/error.h"

namespace fusec {

// Several errors as one exception. Code that catches it as Error sees the first one.
class SeveralErrors : public Error {
 public:
  explicit SeveralErrors(std::vector<Error> all) : Error(all.front()), all_(std::move(all)) {}

  const std::vector<Error>& all() const { return all_; }

 private:
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
