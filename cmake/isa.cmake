# SPDX-License-Identifier: Apache-2.0
# Instruction sets: one file each under src/kernels/isa (and bench/isa), and the flags that
# only it gets.
# The rest of the library runs on any CPU of the architecture. A new ISA is a new line.

set(locus_isa_avx2   x86 -mavx2 -mfma -mf16c)
set(locus_isa_avx512 x86 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)
# Every aarch64 has NEON. gcc that moves loads ahead of products, or constants out of loops, keeps too
# few sums in registers (tools/neon-loops.py looks).
set(locus_isa_neon   arm $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns> $<$<C_COMPILER_ID:GNU>:-fno-move-loop-invariants>)

if(locus_processor MATCHES "^(x86_64|AMD64|amd64|i[3-6]86)$")
  set(locus_architecture x86)
elseif(locus_processor MATCHES "^(aarch64|arm64|ARM64)$")
  set(locus_architecture arm)
else()
  set(locus_architecture other)
endif()

# Give the ISA files in the list their flags, drop those of other architectures, and
# optimise the files that hold inner loops.
function(locus_isa_sources list)
  set(kept)
  foreach(source ${${list}})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_.*" "" name ${name}) # avx2_linear.c belongs to avx2
    set(flags)
    if(source MATCHES "/(src/kernels|bench)/isa/" AND DEFINED locus_isa_${name})
      set(flags ${locus_isa_${name}})
      list(POP_FRONT flags architecture)
      if(NOT architecture STREQUAL locus_architecture)
        continue()
      endif()
    endif()
    if(source MATCHES "/(src/(kernels/isa|nn|attention)|bench|bench/isa)/[^/]*$" AND NOT LOCUS_SANITIZE)
      list(APPEND flags $<$<NOT:$<CONFIG:Debug>>:-O3>)
    endif()
    if(flags)
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}")
    endif()
    list(APPEND kept ${source})
  endforeach()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()
