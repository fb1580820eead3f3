// Errors of one kind that are told together: all unknown ops of a model, all undefined values.
#pragma once

#include <vector>

#include "ir/error.h"

namespace fusec {

// To who knows nothing of it, it is the first of them.
class SeveralErrors : public Error {
 public:
  explicit SeveralErrors(std::vector<Error> all) : Error(all.front()), all_(std::move(all)) {}

  const std::vector<Error>& all() const { return all_; }

 private:
  std::vector<Error> all_;
};

// Gathers errors until there is nothing more to look at.
class ErrorList {
 public:
  static constexpr std::size_t kMost = 20;

  // Runs `check`; an error that has a place in the file is kept. With the last one that is told, throws them.
  // Returns whether there was none.
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

  // Throws what was gathered, if anything was.
  void raise() {
    if (list_.size() == 1) throw list_.front();
    if (!list_.empty()) throw SeveralErrors(std::move(list_));
  }

 private:
  std::vector<Error> list_;
};

}  // namespace fusec
