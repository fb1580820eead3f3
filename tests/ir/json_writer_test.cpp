#include "ir/json_writer.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using fusec::JsonWriter;

TEST_CASE("JSON is written in the order of the calls, indented or on one line") {
  const auto write = [](JsonWriter out) {
    out.object([&] {
      out.member("name", "a \"b\"\n");
      out.member("shape", std::vector<int>{2, 3});
      out.member("none", [&] { out.array([] {}); });
      out.member("rows", [&] {
        out.array_of(std::vector<bool>{true, false}, [&](bool row) { out.object([&] { out.member("row", row); }); });
      });
      out.member("written", [&] { out.written(R"({"x":null})"); });
      out.member("null", [&] { out.null(); });
    });
    return std::move(out).text();
  };
  CHECK(write(JsonWriter()) == R"({"name":"a \"b\"\n","shape":[2,3],"none":[],"rows":[{"row":true},{"row":false}],)"
                               R"("written":{"x":null},"null":null})");
  CHECK(write(JsonWriter(2)) == R"({
  "name": "a \"b\"\n",
  "shape": [
    2,
    3
  ],
  "none": [],
  "rows": [
    {
      "row": true
    },
    {
      "row": false
    }
  ],
  "written": {"x":null},
  "null": null
})");
}

TEST_CASE("numbers in JSON are read back as they were") {
  JsonWriter out;
  out.array([&] {
    out.value(1.0);
    out.value(0.1);
    out.value(1e300);
    out.value(std::numeric_limits<std::int64_t>::min());
    out.value(std::numeric_limits<std::uint64_t>::max());
  });
  CHECK(std::move(out).text() == "[1.0,0.1,1e+300,-9223372036854775808,18446744073709551615]");
}
