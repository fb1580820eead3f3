// Tensors of other packages, by DLPack (https://dmlc.github.io/dlpack): where they lie and what they are.
#include <fmt/format.h>

#include <algorithm>

#include "bindings.h"

namespace fusec::python {
namespace {

// DLPack 1.1, as far as it is read.
struct Device {
  std::int32_t type, id;
};
struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

// The dtype's name as ml_dtypes has it.
std::string dtype_name(const DataType& t) {
  const auto with_bits = [&](const char* kind) { return fmt::format("{}{}", kind, t.bits); };
  switch (t.lanes == 1 ? t.code : 255) {
    case 0:
      return with_bits("int");
    case 1:
      return with_bits("uint");
    case 2:
      return with_bits("float");
    case 4:
      return "bfloat16";
    case 6:
      return "bool";
    case 10:
      return "float8_e4m3fn";
    case 12:
      return "float8_e5m2";
    case 14:
      return "float8_e8m0fnu";
    case 17:
      return "float4_e2m1fn";
    default:
      return fmt::format("DLPack type {} of {} bits in {} lanes", t.code, t.bits, t.lanes);
  }
}

// A tensor that was lent; given back when this ends.
class Borrowed {
 public:
  explicit Borrowed(const nb::capsule& capsule) {
    const char* name = PyCapsule_GetName(capsule.ptr());
    if (!name) throw nb::value_error("this is no capsule of DLPack");
    void* held = PyCapsule_GetPointer(capsule.ptr(), name);
    if (!held) throw nb::python_error();
    if (std::string_view(name) == "dltensor_versioned") {
      versioned_ = static_cast<ManagedVersioned*>(held);
      if (versioned_->major != 1) throw nb::value_error("this version of DLPack is not known");
      PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    } else if (std::string_view(name) == "dltensor") {
      plain_ = static_cast<Managed*>(held);
      PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    } else {
      throw nb::value_error("this is no capsule of DLPack, or one that was used");
    }
  }
  ~Borrowed() {
    if (versioned_ && versioned_->deleter) versioned_->deleter(versioned_);
    if (plain_ && plain_->deleter) plain_->deleter(plain_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  const Tensor& tensor() const { return versioned_ ? versioned_->tensor : plain_->tensor; }
  bool is_read_only() const { return versioned_ && (versioned_->flags & 1) != 0; }

  std::vector<std::int64_t> shape() const { return {tensor().shape, tensor().shape + tensor().ndim}; }

  bool is_dense() const {
    const Tensor& t = tensor();
    if (std::ranges::count(shape(), 0) > 0) return true;
    std::int64_t stride = 1;
    for (std::int32_t d = t.ndim - 1; t.strides && d >= 0; --d) {
      if (t.shape[d] != 1 && t.strides[d] != stride) return false;
      stride *= t.shape[d];
    }
    return true;
  }

 private:
  Managed* plain_ = nullptr;
  ManagedVersioned* versioned_ = nullptr;
};

}  // namespace

void bind_dlpack(nb::module_& m) {
  nb::class_<Borrowed>(m, "Borrowed", "A tensor of another package, for as long as this object lives.")
      .def(nb::init<const nb::capsule&>(), "capsule"_a)
      .def_prop_ro("address",
                   [](const Borrowed& self) {
                     return reinterpret_cast<std::uintptr_t>(self.tensor().data) +
                            static_cast<std::uintptr_t>(self.tensor().byte_offset);
                   })
      .def_prop_ro("dtype", [](const Borrowed& self) { return dtype_name(self.tensor().dtype); })
      .def_prop_ro("shape", &Borrowed::shape)
      .def_prop_ro("is_dense", &Borrowed::is_dense)
      .def_prop_ro("is_read_only", &Borrowed::is_read_only)
      .def_prop_ro("device_type", [](const Borrowed& self) { return self.tensor().device.type; })
      .def_prop_ro("device_id", [](const Borrowed& self) { return self.tensor().device.id; });
}

}  // namespace fusec::python
