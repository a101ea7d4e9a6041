/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "fuzz/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128];

static void remove_folder(void)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;)
        if (entry->d_name[0] != '.') fuzz_remove(entry->d_name);
    if (open != NULL) closedir(open);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/dev/shm/locus-fuzz-%ld", (long)getpid());
        mkdir(folder, 0700);
        atexit(remove_folder);
    }
    return folder;
}

const char *fuzz_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

void fuzz_put(const char *name, const void *data, size_t size)
{
    const int file = open(fuzz_path(name), O_WRONLY | O_CREAT, 0600);
    if (file < 0 || write(file, data, size) != (ssize_t)size || ftruncate(file, (off_t)size) != 0)
        abort();
    close(file);
}

void fuzz_remove(const char *name) { unlink(fuzz_path(name)); }
