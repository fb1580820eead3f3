# `cpack` in the build folder: fusec_VERSION_ARCH.deb (and with -G TGZ an archive), with what `cmake --install` installs:
# the programs, manual pages, completions, headers and static libraries, and NVRTC in lib/fusec where scripts/setup.sh has
# unpacked it. The Python package is a wheel instead.
set(CPACK_PACKAGE_NAME fusec)
set(CPACK_PACKAGE_VENDOR fusec)
set(CPACK_PACKAGE_CONTACT "the fusec developers <fusec@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Fuses the operators of a neural network into few CUDA kernels")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};fusec;Unspecified;/")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS /usr/lib/fusec)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "graphviz, g++")  # --emit=svg; --host-part=recorded
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "fusec reads a graph of tensor operators as JSON, decides which operators become one kernel, says why,\nand writes CUDA source with the host code to launch it.")
include(CPack)
