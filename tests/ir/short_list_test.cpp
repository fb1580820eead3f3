#include "ir/short_list.h"

#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>
#include <utility>

namespace fusec {
namespace {

using List = ShortList<std::uint32_t, 4>;

std::vector<std::uint32_t> counted(std::uint32_t count) {
  std::vector<std::uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace

TEST_CASE("a short list holds what a vector would, short or long") {
  for (std::uint32_t count = 0; count < 12; ++count) {
    CAPTURE(count);
    const std::vector<std::uint32_t> ids = counted(count);
    List grown;
    for (const std::uint32_t id : ids) grown.push_back(id);
    CHECK(std::vector<std::uint32_t>(grown) == ids);
    CHECK(List(ids) == grown);
    CHECK_THROWS_AS(grown.at(count), std::out_of_range);
    if (count > 0) {
      CHECK(grown.back() == count - 1);
      grown.pop_back();
      CHECK(std::vector<std::uint32_t>(grown) == counted(count - 1));
    }
  }
}

TEST_CASE("short lists are copied, moved and assigned whatever their lengths") {
  for (std::uint32_t from = 0; from < 9; ++from) {
    for (std::uint32_t to = 0; to < 9; ++to) {
      const List source(counted(from));
      List copied(counted(to)), moved(counted(to)), gone(source);
      copied = source;
      moved = std::move(gone);
      CHECK(copied == source);
      CHECK(moved == source);
      copied = *&copied;
      CHECK(copied == source);
      const List fresh(std::move(moved));
      CHECK(fresh == source);
      copied.push_back(7);
      CHECK(copied.size() == from + 1);
      CHECK(source.size() == from);
    }
  }
}

}  // namespace fusec
