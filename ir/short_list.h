// A vector of ids with inline storage for `kShort` of them; longer lists are on the heap. A pass over a million nodes
// then reads their operands beside the nodes, without a cache miss for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <vector>

namespace fusec {

template <typename Id, std::uint32_t kShort>
class ShortList {
 public:
  using value_type = Id;
  using iterator = Id*;
  using const_iterator = const Id*;

  ShortList() = default;
  ShortList(std::initializer_list<Id> ids) : ShortList(std::span<const Id>(ids.begin(), ids.size())) {}
  ShortList(std::span<const Id> ids) { assign(ids); }            // NOLINT(google-explicit-constructor): as a vector's
  ShortList(const std::vector<Id>& ids) { assign(ids); }         // NOLINT(google-explicit-constructor)
  operator std::vector<Id>() const { return {begin(), end()}; }  // NOLINT(google-explicit-constructor)
  ShortList(const ShortList& other) { assign(other); }
  ShortList(ShortList&& other) noexcept { swap(other); }
  ShortList& operator=(const ShortList& other) {
    if (this != &other) assign(other);
    return *this;
  }
  ShortList& operator=(ShortList&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ShortList() { release(); }

  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Id* data() { return is_short() ? storage_.here : storage_.elsewhere; }
  const Id* data() const { return is_short() ? storage_.here : storage_.elsewhere; }
  Id* begin() { return data(); }
  Id* end() { return data() + size_; }
  const Id* begin() const { return data(); }
  const Id* end() const { return data() + size_; }
  Id& operator[](std::size_t i) { return data()[i]; }
  const Id& operator[](std::size_t i) const { return data()[i]; }
  const Id& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("ShortList::at");
    return data()[i];
  }
  Id& front() { return data()[0]; }
  const Id& front() const { return data()[0]; }
  Id& back() { return data()[size_ - 1]; }
  const Id& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void push_back(Id id) {
    if (size_ == capacity_) reserve(2 * std::size_t{capacity_});
    data()[size_++] = id;
  }
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    Id* larger = new Id[count];
    std::copy(begin(), end(), larger);
    release();
    storage_.elsewhere = larger;
    capacity_ = static_cast<std::uint32_t>(count);
  }
  void assign(std::span<const Id> ids) {
    size_ = 0;
    reserve(ids.size());
    std::copy(ids.begin(), ids.end(), data());
    size_ = static_cast<std::uint32_t>(ids.size());
  }
  bool operator==(const ShortList& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  bool is_short() const { return capacity_ == kShort; }
  void release() {
    if (!is_short()) delete[] storage_.elsewhere;
  }
  void swap(ShortList& other) noexcept {
    std::swap(storage_, other.storage_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  union Storage {
    Id here[kShort] = {};
    Id* elsewhere;
  };
  static_assert(sizeof(Id[kShort]) >= sizeof(Id*), "what lies in the list costs no more than a pointer would");

  Storage storage_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = kShort;
};

}  // namespace fusec
