/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_COMPILER_H
#define LOCUS_CORE_COMPILER_H

/* The only home of compiler extensions outside src/kernels/vec. */

#if defined(__GNUC__)
#define LOCUS_PRINTF(template, first) __attribute__((format(printf, template, first)))
#define LOCUS_INLINE static inline __attribute__((always_inline))
#define LOCUS_NOINLINE __attribute__((noinline))
#define LOCUS_RESTRICT __restrict
#define LOCUS_PREFETCH_FAR(p) __builtin_prefetch(p, 0, 2) /* into the second cache */
__extension__ typedef unsigned __int128 locus_u128;
__extension__ typedef __int128 locus_i128;
#else
#error "Locus needs a compiler with 128-bit integers and vector types (gcc or clang)"
#endif

/* Before an array that is written before it is read, and large enough for -ftrivial-auto-var-init to be
 * felt. */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define LOCUS_UNINITIALIZED __attribute__((uninitialized))
#endif
#endif
#ifndef LOCUS_UNINITIALIZED
#define LOCUS_UNINITIALIZED
#endif

/* Before a short loop of constant length over registers: unroll it altogether, or the
 * registers become an array in memory. */
#if defined(__clang__)
#define LOCUS_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define LOCUS_UNROLL _Pragma("GCC unroll 32")
#else
#define LOCUS_UNROLL
#endif

#endif
