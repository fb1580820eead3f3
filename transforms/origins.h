// For each node of a rewritten graph, the names of the file's nodes that it replaces. A million vectors of strings
// would be two million allocations for every pass to move. Here all names share one buffer, and linked lists index it.
//
//   a = permute(x)         graph: b = permute(x)        origins of b: a, b
//   b = permute(a)
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/large_vector.h"

namespace fusec {

class Origins {
  static constexpr std::uint32_t kEnd = 0xffffffffu;

 public:
  // The names of one node's origins, in order.
  class Names {
   public:
    class Iterator {
     public:
      using iterator_category = std::forward_iterator_tag;
      using value_type = std::string_view;
      using difference_type = std::ptrdiff_t;
      using pointer = void;
      using reference = std::string_view;
      Iterator() = default;
      Iterator(const Origins* origins, std::uint32_t at) : origins_(origins), at_(at) {}
      std::string_view operator*() const { return origins_->name(at_); }
      Iterator& operator++() {
        at_ = origins_->links_[at_].next;
        return *this;
      }
      Iterator operator++(int) {
        const Iterator before = *this;
        ++*this;
        return before;
      }
      bool operator==(const Iterator& other) const { return at_ == other.at_; }

     private:
      const Origins* origins_ = nullptr;
      std::uint32_t at_ = kEnd;
    };

    Names(const Origins* origins, std::uint32_t first) : origins_(origins), first_(first) {}
    Iterator begin() const { return {origins_, first_}; }
    Iterator end() const { return {origins_, kEnd}; }
    std::size_t size() const;
    bool empty() const { return first_ == kEnd; }
    bool operator==(const std::vector<std::string>& names) const;

   private:
    const Origins* origins_;
    std::uint32_t first_;
  };

  Origins() = default;
  // Each node's only origin is itself.
  explicit Origins(const Graph& graph);

  std::size_t size() const { return lists_.size(); }  // nodes
  bool empty() const { return lists_.empty(); }
  void resize(std::size_t nodes) { lists_.resize(nodes); }
  Names operator[](std::size_t n) const { return {this, lists_[n].first}; }
  bool operator==(const std::vector<std::vector<std::string>>& lists) const;

  class Iterator {
   public:
    Iterator(const Origins* origins, std::size_t at) : origins_(origins), at_(at) {}
    Names operator*() const { return (*origins_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Origins* origins_;
    std::size_t at_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  // Gives node `to` a copy of the origins of node `from`.
  void copy(NodeId from, NodeId to);
  // The names that were copied. No other name is an origin of two nodes.
  std::vector<std::string_view> copied() const;
  // Moves the origins of each node n to node fates[n] of a graph with `nodes` nodes. Lists that meet are concatenated
  // in the old order of their nodes. Calls f(fate, name) for each origin of a node whose fate is kDropped or kFolded.
  template <typename F>
  void rearrange(const std::vector<NodeId>& fates, std::size_t nodes, F f) {
    LargeVector<List> lists(nodes);
    for (NodeId n = 0; n < fates.size(); ++n) {
      const List& before = lists_[n];
      if (before.first == kEnd) continue;
      if (fates[n] >= nodes) {
        for (std::uint32_t at = before.first; at != kEnd; at = links_[at].next) f(fates[n], name(at));
        continue;
      }
      List& now = lists[fates[n]];
      if (now.first == kEnd) {
        now = before;
      } else {
        links_[now.last].next = before.first;
        now.last = before.last;
      }
    }
    lists_ = std::move(lists);
  }

 private:
  struct Link {
    std::size_t begin;  // the name's offset in text_
    std::uint32_t size, next;
  };
  struct List {
    std::uint32_t first = kEnd, last = kEnd;
  };
  std::string_view name(std::uint32_t at) const {
    return std::string_view(text_.data() + links_[at].begin, links_[at].size);
  }

  LargeVector<char> text_;
  LargeVector<Link> links_;
  LargeVector<List> lists_;            // by node
  std::vector<std::uint32_t> copied_;  // links
};

}  // namespace fusec
