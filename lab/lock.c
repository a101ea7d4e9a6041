/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* flock */
#include "lab/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "core/error.h"
#include "io/system.h"
#include "io/tensorfile.h"

enum { CLAIM_TRIES = 100, CLAIM_NANOSECONDS = 100000000 };

locus_status lab_lock(int descriptor, const char *path, locus_error *error)
{
    for (int tries = 0; flock(descriptor, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK) return LOCUS_OK; /* a file system without locks */
        if (tries == CLAIM_TRIES)
            return locus_fail(error, LOCUS_ERR_IO, "%s: another process is at work here", path);
        nanosleep(&(const struct timespec){.tv_nsec = CLAIM_NANOSECONDS}, NULL);
    }
    return LOCUS_OK;
}

locus_status lab_lock_folder(int *descriptor, const char *path, locus_error *error)
{
    *descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*descriptor >= 0) return lab_lock(*descriptor, path, error);
    return locus_file_fail_in(error, locus_system_fail(error, "cannot open", errno), path);
}
