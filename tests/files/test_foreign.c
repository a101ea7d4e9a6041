/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "files/filetest.h"

/* F96-F99: other formats, and things that are not regular files. */

#define FOREIGN(number, bytes, word)                                                               \
    {                                                                                              \
        number, bytes, sizeof(bytes) - 1, word                                                     \
    }
static const struct {
    int number;
    const char *bytes;
    size_t count;
    const char *word;
} foreign[] = {
    FOREIGN(96, "GGUF\003\0\0\0\1\0\0\0\0\0\0\0", "a GGUF file"),
    FOREIGN(96, "\211HDF\r\n\032\n\0\0\0\0\0\010\010\0", "an HDF5 file"),
    FOREIGN(96, "\010\007\022\007pytorch\032\0051.9.0", "an ONNX model"),
    FOREIGN(96, "\010\010\022\000", "found 4 bytes"), /* too short to tell */
    FOREIGN(96, "\037\213\010\0\0\0\0\0\0\003abc", "a gzip file"),
    FOREIGN(96, "\037\213\010", "a gzip file"),
    FOREIGN(96, "\3757zXZ\0\0\004\346\326", "an xz file"),
    FOREIGN(96, "\050\265\057\375\004\0\0\0\0\0", "a zstd file"),
    FOREIGN(96, "BZh91AY&SY", "a bzip2 file"),
    FOREIGN(96, "\223NUMPY\001\0v\0{'descr'", "a NumPy .npy file"),
    FOREIGN(96, "%PDF-1.7\n%\342\343", "a PDF file"),
    FOREIGN(97,
            "PK\003\004\0\0\010\010\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\020\0\0\0archive/data.pkl",
            "pickle refused"),
    FOREIGN(97, "PK\003\004\024\0\0\0\0\0arr_0.npy", "archive not supported"),
    FOREIGN(97, "PK\005\006\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "pickle refused"),
    FOREIGN(97, "\200\002\212\nl\374\234F\371 j\250P\031.", "pickle refused"),
    FOREIGN(97, "\200\002}q\000.", "pickle refused"),
    FOREIGN(97, "\200\003}q\000X\001\000\000\000a", "pickle refused"),
    FOREIGN(97, "\200\004\225\005\0\0\0\0\0\0\0}\224.", "pickle refused"),
    FOREIGN(97, "\200\005\225\377\377\0\0\0\0\0\0}\224.", "pickle refused"),
    FOREIGN(97, "\200\004K\001.", "pickle refused"),
    FOREIGN(98, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "a Git LFS pointer"),
    FOREIGN(98, "<!DOCTYPE html>\n<html><head><title>404</title>", "an HTML page"),
    FOREIGN(98, "<!doctype HTML>", "an HTML page"),
    FOREIGN(98, "<html>", "an HTML page"),
    FOREIGN(98, "\n\n  <HTML lang=\"en\">", "an HTML page"),
    FOREIGN(98, "\357\273\277<html>", "an HTML page"),
    FOREIGN(98, "<?xml version=\"1.0\"?><Error>", "an HTML page"),
    FOREIGN(98, "{\"error\":\"Repository not found\"}", "JSON text without the 8 bytes"),
};

static void test_magic(void)
{
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        if (!check_begin("files/F%d/%zu", foreign[i].number, i)) continue;
        blob file = {0};
        blob_add(&file, foreign[i].bytes, foreign[i].count);
        verdict v = expect_refused(&file, WORDS(foreign[i].word, NULL, NULL));
        CHECK(v.calls == 0, "%zu allocations", v.calls);
        if (strstr(foreign[i].word, "found ") == NULL) { /* the same in a large file */
            blob_fill(&file, 0, 100000);
            expect_refused(&file, WORDS(foreign[i].word, "a safetensors file [S02]", NULL));
        }
        blob_clear(&file);
    }
    if (check_begin("files/F96/tar")) {
        blob file = {0};
        blob_text(&file, "archive.safetensors");
        blob_fill(&file, 0, 257 - file.count);
        blob_text(&file, "ustar");
        blob_fill(&file, 0, 512);
        expect_refused(&file, WORDS("a tar archive", "[S02]", NULL));
        blob_clear(&file);
    }
}

/* A good file may begin with the bytes of a magic: its length is such a number. */
static void test_not_foreign(void)
{
    static const size_t lengths[] = {0x0280, 0x0480, 0x280280, 0x8B1F, 0x685A42};
    if (!check_begin("files/F97/good")) return;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        blob header = {0}, file = {0};
        blob_text(&header, "{}");
        blob_fill(&header, ' ', lengths[i] - header.count);
        blob_file(&file, header.bytes, header.count, 0);
        expect_accepted(&file);
        if (lengths[i] != 0x8B1F && lengths[i] != 0x685A42) { /* cut, and still no pickle */
            file.count -= 1;
            expect_refused(&file, WORDS("1 bytes are missing", "[S05]", NULL));
        }
        blob_clear(&header);
        blob_clear(&file);
    }
}

static void refuse_kind(const char *path, const char *kind)
{
    const verdict v = expect_refused_path(path, WORDS(kind, "expected a regular file [S01]", NULL));
    CHECK(v.calls == 0, "%zu allocations", v.calls);
}

static void test_kinds(void)
{
    char path[1024], link[1024];
    if (check_begin("files/F99/directory")) refuse_kind(folder_path("."), "is a directory");
    if (check_begin("files/F99/fifo")) {
        snprintf(path, sizeof path, "%s", folder_path("fifo"));
        snprintf(link, sizeof link, "%s", folder_path("link"));
        CHECK(mkfifo(path, 0600) == 0 && symlink(path, link) == 0, "mkfifo: %s", strerror(errno));
        refuse_kind(path, "is a FIFO");
        refuse_kind(link, "is a FIFO");
        folder_empty();
    }
    if (check_begin("files/F99/socket")) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(path, sizeof path, "%s", folder_path("socket"));
        const int made = socket(AF_UNIX, SOCK_STREAM, 0);
        const int fits = strlen(path) < sizeof address.sun_path;
        if (fits) memcpy(address.sun_path, path, strlen(path) + 1);
        if (fits && made >= 0 &&
            bind(made, (const struct sockaddr *)(const void *)&address, sizeof address) == 0)
            refuse_kind(path, "is a socket");
        else
            check_skip("no socket here: %s", strerror(errno));
        if (made >= 0) close(made);
        folder_empty();
    }
    if (check_begin("files/F99/devices")) {
        refuse_kind("/dev/zero", "is a character device");
        refuse_kind("/dev/null", "is a character device");
    }
    if (check_begin("files/F99/proc")) {
        if (access("/proc/self/status", R_OK) == 0)
            expect_refused_path("/proc/self/status", WORDS("found 0 bytes", "[S03]", NULL));
        else
            check_skip("no /proc here");
    }
}

static void expect_io(const char *path, const char *word)
{
    const verdict v = judge_path(path);
    CHECK(v.status == LOCUS_ERR_IO, "status %d: %s", v.status, v.text);
    CHECK(strstr(v.text, word) != NULL, "no '%s' in: %s", word, v.text);
}

static void test_system(void)
{
    char path[1024], link[1024];
    blob file = {0};
    snprintf(path, sizeof path, "%s", folder_path("real.safetensors"));
    snprintf(link, sizeof link, "%s", folder_path("link.safetensors"));
    blob_file(&file, "{}", 2, 0);
    if (check_begin("files/missing")) {
        expect_io(path, "cannot open: No such file or directory");
        expect_io("", "cannot open");
        CHECK(symlink(link, link) == 0, "symlink");
        expect_io(link, "cannot open");
        folder_empty();
    }
    if (check_begin("files/permission")) {
        write_path(path, &file);
        CHECK(chmod(path, 0) == 0, "chmod");
        if (geteuid() == 0)
            check_skip("root reads everything");
        else
            expect_io(path, "cannot open: Permission denied");
        folder_empty();
    }
    if (check_begin("files/symlink")) {
        write_path(path, &file);
        CHECK(symlink(path, link) == 0, "symlink");
        CHECK(judge_path(link).status == LOCUS_OK, "a link to a regular file was refused");
        folder_empty();
    }
    if (check_begin("files/arguments")) {
        locus_file *opened = NULL;
        CHECK(locus_file_open(NULL, path, NULL, NULL) == LOCUS_ERR_ARGUMENT, "NULL file");
        CHECK(locus_file_open(&opened, NULL, NULL, NULL) == LOCUS_ERR_ARGUMENT, "NULL path");
        CHECK(locus_file_open(&opened, path, NULL, NULL) == LOCUS_ERR_IO, "NULL error");
        CHECK(locus_file_count(NULL) == 0 && locus_file_find(NULL, "a") == NULL, "NULL file");
        locus_file_close(NULL);
    }
    blob_clear(&file);
}

/* F100: the file is cut while it is open. */
static void test_cut_while_open(void)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}";
    unsigned char out[16];
    locus_file *opened = NULL;
    locus_error error = {{0}};
    blob file = {0};
    if (!check_begin("files/F100")) return;
    blob_file(&file, header, sizeof header - 1, 16);
    write_path(folder_path("cut.safetensors"), &file);
    CHECK(locus_file_open(&opened, folder_path("cut.safetensors"), NULL, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(truncate(folder_path("cut.safetensors"), (off_t)file.count - 8) == 0, "truncate");
    CHECK(locus_file_read(opened, 0, 0, 8, out, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_read(opened, 0, 0, 16, out, &error) == LOCUS_ERR_IO, "read what is gone");
    CHECK(strstr(error.text, "cut while it was read") != NULL, "%s", error.text);
    CHECK(strstr(error.text, "cut.safetensors: ") != NULL, "no path: %s", error.text);
    locus_file_close(opened);
    blob_clear(&file);
    folder_empty();
}

void test_foreign(void)
{
    test_magic();
    test_not_foreign();
    test_kinds();
    test_system();
    test_cut_while_open();
}
