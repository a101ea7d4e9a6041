/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "files/filetest.h"

/* The system as it can be: calls that are interrupted, that do a part of the work,
 * that fail. This program defines the calls itself, so the linker gives them to the
 * library in place of the C library's (which keeps its own for stdio). */

enum call { READ, WRITE, SYNC, CLOSE, RENAME, CALL_COUNT };
static const char *const call_name[CALL_COUNT] = {"pread", "write", "fsync", "close", "renameat"};

static struct {
    int trickle;      /* at most this many bytes per call, 0: as asked           */
    int interrupt;    /* every other call of a kind is interrupted first         */
    enum call target; /* fail call number fail_at (1 = the first) of this kind   */
    int fail_at, code;
    int seen[CALL_COUNT], failed;
} plan;

/* 1: the call fails now, errno says how. */
static int fails(enum call kind)
{
    const int number = ++plan.seen[kind];
    if (kind == plan.target && number == plan.fail_at) {
        plan.failed++;
        errno = plan.code;
        return 1;
    }
    errno = EINTR;
    return plan.interrupt && kind <= SYNC && number % 2 == 1;
}

static size_t part(size_t count)
{
    const size_t most = (size_t)plan.trickle;
    return plan.trickle > 0 && count > most ? most : count;
}

static ssize_t read_at(int descriptor, void *out, size_t count, int64_t at)
{
    return fails(READ) ? -1 : (ssize_t)syscall(SYS_pread64, descriptor, out, part(count), at);
}

/* Both names: which one a source calls depends on its _FILE_OFFSET_BITS. */
ssize_t pread(int descriptor, void *out, size_t count, off_t at)
{
    return read_at(descriptor, out, count, at);
}

ssize_t pread64(int descriptor, void *out, size_t count, off64_t at)
{
    return read_at(descriptor, out, count, at);
}

ssize_t write(int descriptor, const void *bytes, size_t count)
{
    return fails(WRITE) ? -1 : (ssize_t)syscall(SYS_write, descriptor, bytes, part(count));
}

int fsync(int descriptor) { return fails(SYNC) ? -1 : (int)syscall(SYS_fsync, descriptor); }

/* A close that reports an error has closed all the same. */
int close(int descriptor)
{
    const int result = (int)syscall(SYS_close, descriptor);
    return fails(CLOSE) ? -1 : result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

static void plan_clear(void) { memset(&plan, 0, sizeof plan); }

/* ---- a file that is written and read back ---- */

enum { BYTES = 200 };
static char path[1024];
static unsigned char data[BYTES];

static locus_status write_file(locus_error *error)
{
    const uint64_t shape[] = {BYTES};
    locus_file_writer *w = NULL;
    locus_status status = locus_file_create(&w, path, NULL, error);
    if (status != LOCUS_OK) return status;
    status = locus_file_put(w, "data", "U8", 1, shape, data, error);
    if (status != LOCUS_OK) {
        locus_file_abandon(w);
        return status;
    }
    return locus_file_commit(w, error);
}

static locus_status read_file(test_allocator *memory, locus_error *error)
{
    unsigned char back[BYTES] = {0};
    locus_file *file = NULL;
    test_allocator_init(memory);
    locus_status status = locus_file_open(&file, path, &memory->interface, error);
    if (status == LOCUS_OK) status = locus_file_read(file, 0, 0, BYTES, back, error);
    if (status == LOCUS_OK) CHECK(memcmp(back, data, BYTES) == 0, "the data changed");
    locus_file_close(file);
    CHECK(memory->live_blocks == 0 && memory->misuse == 0, "leak");
    return status;
}

static void test_patience(void)
{
    static const int trickles[] = {0, 1, 3, 100};
    test_allocator memory;
    locus_error error = {{0}};
    if (!check_begin("faults/short and interrupted")) return;
    for (size_t i = 0; i < COUNT_OF(trickles); i++) {
        plan_clear();
        plan.trickle = trickles[i];
        plan.interrupt = i > 0;
        CHECK(write_file(&error) == LOCUS_OK, "trickle %d: %s", trickles[i], error.text);
        CHECK(read_file(&memory, &error) == LOCUS_OK, "trickle %d: %s", trickles[i], error.text);
        CHECK(plan.seen[READ] > 0 && plan.seen[WRITE] > 0, "the calls do not come here");
    }
    plan_clear();
    folder_empty();
}

static void test_read_errors(void)
{
    test_allocator memory;
    locus_error error = {{0}};
    int failed = 0;
    if (!check_begin("faults/read")) return;
    plan_clear();
    CHECK(write_file(&error) == LOCUS_OK, "%s", error.text);
    for (int k = 1; k < 100; k++) {
        plan_clear();
        plan.trickle = 50;
        plan.target = READ;
        plan.fail_at = k;
        plan.code = EIO;
        const locus_status status = read_file(&memory, &error);
        CHECK(status == (plan.failed ? LOCUS_ERR_IO : LOCUS_OK), "read %d: %d", k, status);
        if (!plan.failed) break;
        failed++;
        CHECK(strstr(error.text, "cannot read: Input/output error") != NULL, "%s", error.text);
        CHECK(strncmp(error.text, path, strlen(path)) == 0, "no path: %s", error.text);
    }
    CHECK(failed > 5, "only %d reads failed", failed);
    plan_clear();
    folder_empty();
}

/* Every call of the writer fails once: the old file or the new one, never a part, and
 * nothing beside it. The folder's sync comes after the rename: the new file is there. */
static void test_write_errors(void)
{
    static const enum call kinds[] = {WRITE, SYNC, CLOSE, RENAME};
    blob old = {0}, found = {0};
    blob_file(&old, "{}", 2, 0);
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++) {
        if (!check_begin("faults/%s", call_name[kinds[kind]])) continue;
        for (int k = 1; k < 100; k++) {
            locus_error error = {{0}};
            write_path(path, &old);
            plan_clear();
            plan.trickle = 100;
            plan.target = kinds[kind];
            plan.fail_at = k;
            plan.code = kinds[kind] == WRITE ? ENOSPC : EIO;
            const locus_status status = write_file(&error);
            const int failed = plan.failed;
            const int in_place = strstr(error.text, "the new file is in place") != NULL;
            const int ignored = kinds[kind] == CLOSE && k > 1; /* the folder: only read */
            plan_clear();
            read_path(path, &found);
            const int is_old =
                found.count == old.count && memcmp(found.bytes, old.bytes, old.count) == 0;
            CHECK(status == (failed && !ignored ? LOCUS_ERR_IO : LOCUS_OK), "call %d: %d, %s", k,
                  status, error.text);
            CHECK(is_old == (status != LOCUS_OK && !in_place), "call %d: the old file", k);
            if (!is_old) CHECK(judge_path(path).status == LOCUS_OK, "call %d: a part", k);
            CHECK(folder_count() == 1, "call %d: %zu files", k, folder_count());
            CHECK(in_place == (kinds[kind] == SYNC && k == 2), "call %d: %s", k, error.text);
            if (!failed) break;
        }
        folder_empty();
    }
    blob_clear(&old);
    blob_clear(&found);
}

/* A folder that cannot be synced (EINVAL) is no error; a close that was interrupted
 * after a sync is none, either. */
static void test_harmless(void)
{
    static const struct {
        enum call kind;
        int number, code;
    } rows[] = {{SYNC, 2, EINVAL}, {CLOSE, 1, EINTR}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        locus_error error = {{0}};
        if (!check_begin("faults/harmless %s", call_name[rows[i].kind])) continue;
        plan_clear();
        plan.target = rows[i].kind;
        plan.fail_at = rows[i].number;
        plan.code = rows[i].code;
        CHECK(write_file(&error) == LOCUS_OK && plan.failed == 1, "%s", error.text);
        plan_clear();
        CHECK(judge_path(path).status == LOCUS_OK && folder_count() == 1, "the file");
        folder_empty();
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    folder_make();
    snprintf(path, sizeof path, "%s", folder_path("out.safetensors"));
    for (size_t i = 0; i < BYTES; i++) data[i] = (unsigned char)(i * 7);
    test_patience();
    test_read_errors();
    test_write_errors();
    test_harmless();
    folder_remove();
    return check_finish("faults");
}
