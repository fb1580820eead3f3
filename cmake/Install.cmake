# `cmake --install`: the two programs, the public headers (include/fusec and nothing else), the static libraries,
# libfusec.so, and a package that `find_package(fusec)` and pkg-config find. A program in C++ links fusec::fusec, along
# with which the folder libraries come; any other links fusec::c, which is libfusec.so (component `c`), or `-lfusec`.
include(CMakePackageConfigHelpers)

install(TARGETS fusec_program fusec_run_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fusec fusec_ir fusec_analysis fusec_schedule fusec_transforms fusec_codegen fusec_runtime
        EXPORT fusec_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fusec_shared EXPORT fusec_c_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fusec)
install(DIRECTORY include/fusec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fusec)
install(EXPORT fusec_targets NAMESPACE fusec:: FILE fusecTargets.cmake DESTINATION ${package_dir})
install(EXPORT fusec_c_targets NAMESPACE fusec:: FILE fusecCTargets.cmake DESTINATION ${package_dir})
file(RELATIVE_PATH prefix_from_package /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/fusec.pc.in fusec.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fusec.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(cmake/fusecConfig.cmake.in fusecConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(fusecConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fusecConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/fusecConfigVersion.cmake
        DESTINATION ${package_dir})

# Manual pages and completions, which scripts/generate_docs.py makes of --help.
set(packaging ${PROJECT_SOURCE_DIR}/packaging)
install(FILES ${packaging}/man/fusec.1 ${packaging}/man/fusec-run.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
foreach(program fusec fusec-run)
  install(FILES ${packaging}/completions/fusec.bash RENAME ${program}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${packaging}/completions/fusec.fish RENAME ${program}.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endforeach()
install(FILES ${packaging}/completions/_fusec DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${packaging}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fusec)
