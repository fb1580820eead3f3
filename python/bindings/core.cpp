#include "bindings.h"

NB_MODULE(_core, m) {
  using namespace fusec::python;
#ifdef NDEBUG
  nb::set_leak_warnings(false);  // TorchDynamo's caches keep compiled modules beyond the end of the extension
#endif
  m.doc() = "The fusec library. The package fusec is what users import.";
  bind_errors(m);
  bind_models(m);
  bind_options(m);
  bind_compilations(m);
  bind_passes(m);
  bind_modules(m);
  bind_dlpack(m);
  bind_doctor(m);
}
