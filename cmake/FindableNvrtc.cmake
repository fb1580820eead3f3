# Where programs find NVRTC beside the CUDA toolkit (codegen/nvrtc/nvrtc_search_paths): in lib/fusec beside their folder
# bin. In the build folder that is a link to what scripts/setup.sh unpacks, in the install prefix a copy of it.
set(unpacked_nvrtc ${PROJECT_SOURCE_DIR}/.deps/nvrtc/lib)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
file(CREATE_LINK ${unpacked_nvrtc} ${CMAKE_BINARY_DIR}/lib/fusec SYMBOLIC)
install(DIRECTORY ${unpacked_nvrtc}/ DESTINATION lib/fusec OPTIONAL)
set_property(SOURCE codegen/nvrtc/nvrtc_search_paths.cpp APPEND PROPERTY COMPILE_DEFINITIONS
                                                                         FUSEC_INSTALL_PREFIX="${CMAKE_INSTALL_PREFIX}")
