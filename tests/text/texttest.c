/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "text/texttest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/allocator.h"
#include "support/check.h"

static char folder[1024];

const char *folder_new(void)
{
    char path[2048];
    snprintf(folder, sizeof folder, "%s/tests/text-%ld", LOCUS_TEST_BINARY_DIR, (long)getpid());
    mkdir(folder, 0777);
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (open != NULL) closedir(open);
    return folder;
}

const char *folder_path(void) { return folder; }

void folder_put(const char *name, const char *text, size_t bytes)
{
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(text, 1, bytes, file) == bytes, "cannot write %s", path);
    if (file != NULL) fclose(file);
}

void folder_text(const char *name, const char *text) { folder_put(name, text, strlen(text)); }

char *whole_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    *bytes = 0;
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    text = size < 0 ? NULL : calloc((size_t)size + 1, 1);
    if (text != NULL) *bytes = fread(text, 1, (size_t)size, file);
    fclose(file);
    return text;
}

void folder_copy(const char *name, const char *from)
{
    char path[2048];
    size_t bytes = 0;
    snprintf(path, sizeof path, TEXT_DATA "/%s", from);
    char *text = whole_file(path, &bytes);
    CHECK(text != NULL, "cannot read %s", path);
    if (text != NULL) folder_put(name, text, bytes);
    free(text);
}

void check_refused(locus_status status, const char *words)
{
    test_allocator memory;
    locus_error error = {{0}};
    locus_tokenizer *t = NULL;
    test_allocator_init(&memory);
    const locus_status found = locus_tokenizer_open(&t, folder, &memory.interface, &error);
    CHECK(found == status && t == NULL, "status %d, expected %d: %s", found, status, error.text);
    CHECK(strstr(error.text, words) != NULL, "\"%s\" does not hold \"%s\"", error.text, words);
    CHECK(strchr(error.text, '\n') == NULL, "more than one line");
    CHECK(strncmp(error.text, folder, strlen(folder) < 60 ? strlen(folder) : 60) == 0,
          "\"%s\" does not begin with the file", error.text);
    CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak of %zu bytes", memory.live_bytes);
    locus_tokenizer_close(t);
}

/* The folder opens, and closes without a leak. */
void check_opens(void)
{
    test_allocator memory;
    locus_error error = {{0}};
    locus_tokenizer *t = NULL;
    test_allocator_init(&memory);
    const locus_status status = locus_tokenizer_open(&t, folder, &memory.interface, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    locus_tokenizer_close(t);
    CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak of %zu bytes", memory.live_bytes);
}

void put_json(const char *member, const char *part)
{
    static const char *const members[][2] = {
        {"added_tokens", "[]"},
        {"normalizer", "null"},
        {"pre_tokenizer", "null"},
        {"post_processor", "null"},
        {"decoder", "null"},
        {"model", "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"}};
    const size_t room = strlen(part) + 1024;
    char *text = calloc(room, 1);
    size_t used = (size_t)snprintf(text, room, "{\"version\":\"1.0\"");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        used += (size_t)snprintf(text + used, room - used, ",\"%s\":%s", members[i][0],
                                 strcmp(members[i][0], member) == 0 ? part : members[i][1]);
    snprintf(text + used, room - used, "}");
    folder_new();
    folder_text("tokenizer.json", text);
    free(text);
}
