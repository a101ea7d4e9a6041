/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cpu_name(char *buffer, size_t capacity)
{
    char line[256];
    snprintf(buffer, capacity, "unknown CPU");
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        colon += 1 + strspn(colon + 1, " ");
        snprintf(buffer, capacity, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file != NULL) fclose(file);
}

char *machine_text(char *buffer, size_t capacity)
{
    char cpu[128];
    cpu_name(cpu, sizeof cpu);
#if defined(__clang__)
    snprintf(buffer, capacity, "%s, clang %d.%d.%d, locus %s", cpu, __clang_major__,
             __clang_minor__, __clang_patchlevel__, locus_version());
#elif defined(__GNUC__)
    snprintf(buffer, capacity, "%s, gcc %d.%d.%d, locus %s", cpu, __GNUC__, __GNUC_MINOR__,
             __GNUC_PATCHLEVEL__, locus_version());
#else
    snprintf(buffer, capacity, "%s, unknown compiler, locus %s", cpu, locus_version());
#endif
    return buffer;
}

/* Its size is written in front of every block. */
static void *counted_allocate(void *context, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    char *block = aligned_alloc(64, (bytes / 64 + 2) * 64);
    if (block == NULL) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    *(size_t *)context += bytes;
    return block + 64;
}

static void counted_release(void *context, void *memory)
{
    size_t bytes = 0;
    if (memory == NULL) return;
    memcpy(&bytes, (char *)memory - 64, sizeof bytes);
    *(size_t *)context -= bytes;
    free((char *)memory - 64);
}

locus_allocator counted_allocator(size_t *bytes)
{
    return (locus_allocator){counted_allocate, counted_release, bytes};
}
