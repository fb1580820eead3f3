# `cmake --install`: the two programs, the public headers (include/fusec and nothing else), the static libraries, and a
# package that `find_package(fusec)` finds. A program links fusec::fusec; the folder libraries come along with it.
include(CMakePackageConfigHelpers)

install(TARGETS fusec_program fusec_run_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fusec fusec_ir fusec_analysis fusec_transforms fusec_codegen fusec_runtime EXPORT fusec_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fusec)
install(DIRECTORY include/fusec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fusec)
install(EXPORT fusec_targets NAMESPACE fusec:: FILE fusecTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/fusecConfig.cmake.in fusecConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fusecConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fusecConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/fusecConfigVersion.cmake
        DESTINATION ${package_dir})
