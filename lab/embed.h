/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_EMBED_H
#define LOCUS_LAB_EMBED_H

/* EMBED_FILE(name, path): the bytes of a file become a part of the program, put there by the assembler: name[],
 * a 0 behind them, and name_bytes, how many there are without it. */

#include <stdint.h>

#if defined(__APPLE__)
#define EMBED_SECTION ".section __TEXT,__const\n"
#define EMBED_SYMBOL(name) ".globl _" name "\n.private_extern _" name "\n_" name ":\n"
#define EMBED_END ".text\n"
#elif defined(_WIN32)
#define EMBED_SECTION ".section .rdata,\"dr\"\n"
#define EMBED_SYMBOL(name) ".globl " name "\n" name ":\n"
#define EMBED_END ".text\n"
#else
#define EMBED_SECTION ".section .rodata\n"
#define EMBED_SYMBOL(name) ".globl " name "\n.hidden " name "\n" name ":\n"
#define EMBED_END ".previous\n"
#endif

#define EMBED_FILE(name, path)                                                                     \
    __asm__(EMBED_SECTION ".balign 8\n" EMBED_SYMBOL(                                              \
        #name "_bytes") ".quad 772f - 771f\n" EMBED_SYMBOL(#name) "771: .incbin \"" path           \
                                                                  "\"\n772: .byte 0\n" EMBED_END); \
    extern const unsigned char name[];                                                             \
    extern const uint64_t name##_bytes

#endif
