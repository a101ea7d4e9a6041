/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_LOCK_H
#define LOCUS_LAB_LOCK_H

#include <locus/status.h>

/* One process at a time has the open file or folder `path`, until it closes it. One that was told to
 * end may still be at its last step: it is waited for, a little. */
locus_status lab_lock(int descriptor, const char *path, locus_error *error);

/* The same for a folder; *descriptor is what to close, -1 where it could not be opened. */
locus_status lab_lock_folder(int *descriptor, const char *path, locus_error *error);

#endif
