// Maps that cuTensorMapEncodeTiled refuses are refused, each for its own reason.
#include "runtime/emulator/tensor_map.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace fusec::emulator;

TEST_CASE("the driver's rules of tensor maps") {
  const TensorMap good{.address = 0x1000,
                       .element_bytes = 2,
                       .rank = 2,
                       .swizzle = 128,
                       .extents = {100, std::uint64_t{1} << 32},
                       .strides = {2, 208},
                       .box = {64, 256}};
  CHECK(tensor_map_fault(good).empty());
  const auto fault_after = [&](const std::function<void(TensorMap&)>& change) {
    TensorMap map = good;
    change(map);
    const auto decoded = decode_tensor_map(encode_tensor_map(map));  // nothing is lost on the way to a kernel
    if (decoded) CHECK(tensor_map_fault(*decoded) == tensor_map_fault(map));
    return std::string(tensor_map_fault(map));
  };
  CHECK(fault_after([](TensorMap& m) { m.rank = 6; }) == "a rank that is not 1 to 5");
  CHECK(fault_after([](TensorMap& m) { m.address = 0x1008; }) == "an address that is no multiple of 16 bytes");
  CHECK(fault_after([](TensorMap& m) { m.extents[1] += 1; }) == "an extent that is not 1 to 2^32");
  CHECK(fault_after([](TensorMap& m) { m.extents[0] = 0; }) == "an extent that is not 1 to 2^32");
  CHECK(fault_after([](TensorMap& m) { m.box[1] = 257; }) == "an extent of a box that is not 1 to 256");
  CHECK(fault_after([](TensorMap& m) { m.element_strides[1] = 9; }) == "an element stride that is not 1 to 8");
  CHECK(fault_after([](TensorMap& m) { m.strides[1] = 200; }) == "a stride that is no multiple of 16 bytes");
  CHECK(fault_after([](TensorMap& m) { m.strides[1] = std::uint64_t{1} << 40; }) == "a stride of 2^40 bytes or more");
  CHECK(fault_after([](TensorMap& m) { m.box[0] = 60; }) == "boxes whose rows are no multiple of 16 bytes");
  CHECK(fault_after([](TensorMap& m) { m.swizzle = 64; }) == "boxes whose rows are wider than the swizzle");
  CHECK(fault_after([](TensorMap& m) { m.swizzle = 0; }).empty());
}
