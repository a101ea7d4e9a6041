/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "bounds/constants.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct list {
    named_constant *items;
    size_t count, room;
} list;

/* ---- text ---- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room + 1);
    for (size_t got; text != NULL && (got = fread(text + used, 1, room - used, file)) > 0;) {
        used += got;
        if (used == room) text = realloc(text, (room *= 2) + 1);
    }
    fclose(file);
    if (text == NULL) exit(2);
    text[used] = '\0';
    return text;
}

/* Blanks instead of comments, strings and characters; lines stay. */
static void strip(char *s)
{
    while (*s != '\0') {
        char *end = s + 1;
        if (s[0] == '/' && s[1] == '*') {
            end = strstr(s + 2, "*/");
            end = end == NULL ? s + strlen(s) : end + 2;
        } else if (s[0] == '"' || s[0] == '\'') {
            while (*end != '\0' && *end != *s) end += *end == '\\' && end[1] != '\0' ? 2 : 1;
            end += *end != '\0';
        } else {
            s++;
            continue;
        }
        for (; s < end; s++)
            if (*s != '\n') *s = ' ';
    }
}

static int is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *skip_blanks(const char *s)
{
    while (isspace((unsigned char)*s)) s++;
    return s;
}

static size_t name_length(const char *s)
{
    size_t length = 0;
    while (is_name(s[length])) length++;
    return length;
}

/* ---- collecting ---- */

static void add(list *all, const char *folder, const char *file, const char *name, size_t name_size,
                const char *text, size_t text_size)
{
    while (text_size > 0 && isspace((unsigned char)text[text_size - 1])) text_size--;
    if (name_size == 0 || name[0] == '_' || name_size >= sizeof all->items->name) return;
    if (all->count == all->room) {
        all->room = all->room == 0 ? 256 : 2 * all->room;
        all->items = realloc(all->items, all->room * sizeof *all->items);
        if (all->items == NULL) exit(2);
    }
    named_constant *c = &all->items[all->count];
    memset(c, 0, sizeof *c);
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    snprintf(c->file, sizeof c->file, "%s", file);
    snprintf(c->name, sizeof c->name, "%.*s", (int)name_size, name);
    snprintf(c->text, sizeof c->text, "%.*s", (int)text_size, text);
    if (strstr(c->text, "sizeof") == NULL) all->count++;
}

/* `s` stands behind the brace of an anonymous enum. */
static void read_enum(list *all, const char *folder, const char *file, const char *s)
{
    while (*s != '\0' && *s != '}') {
        s = skip_blanks(s);
        const size_t length = name_length(s), end = strcspn(s, ",}");
        const char *value = memchr(s, '=', end);
        if (value != NULL) {
            const char *text = skip_blanks(value + 1);
            add(all, folder, file, s, length, text, (size_t)(s + end - text));
        }
        s += end + (s[end] == ',');
    }
}

static void read_c(list *all, const char *folder, const char *file, char *text)
{
    strip(text);
    for (const char *s = text; *s != '\0'; s++) {
        const int first = s == text || s[-1] == '\n';
        if (first && strncmp(s, "#define ", 8) == 0) {
            const char *name = s + 8;
            const size_t length = name_length(name), line = strcspn(name, "\n");
            if (name[length] == ' ' && name[line - 1] != '\\')
                add(all, folder, file, name, length, name + length + 1, line - length - 1);
        } else if (first && strncmp(s, "static const ", 13) == 0) {
            const char *type = s + 13, *name = skip_blanks(type + name_length(type));
            const char *value = skip_blanks(name + name_length(name));
            const int is_integer = strncmp(type, "int", 3) == 0 || strncmp(type, "uint", 4) == 0 ||
                                   strncmp(type, "size_t", 6) == 0;
            if (is_integer && *value == '=')
                add(all, folder, file, name, name_length(name), value + 2,
                    strcspn(value + 2, ";,"));
        } else if (strncmp(s, "enum", 4) == 0 && (s == text || !is_name(s[-1])) &&
                   *skip_blanks(s + 4) == '{') {
            read_enum(all, folder, file, skip_blanks(s + 4) + 1);
        }
    }
}

static void read_python(list *all, const char *file, const char *text)
{
    for (const char *s = text; *s != '\0'; s += strcspn(s, "\n"), s += *s == '\n') {
        const size_t length = name_length(s);
        if (length == 0 || strncmp(s + length, " = ", 3) != 0) continue;
        size_t upper = 0;
        while (upper < length && !islower((unsigned char)s[upper])) upper++;
        if (upper == length && isdigit((unsigned char)s[length + 3]))
            add(all, "python", file, s + (s[0] == '_'), length - (s[0] == '_'), s + length + 3,
                strcspn(s + length + 3, "#\n"));
    }
}

static int ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* `folder` NULL: that of the path below the first slash of `path`. */
static void read_folder(list *all, const char *root, const char *path, const char *folder)
{
    char full[512], below[256], own[32];
    snprintf(full, sizeof full, "%s/%s", root, path);
    DIR *directory = opendir(full);
    if (directory == NULL) return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] == '.') continue;
        snprintf(below, sizeof below, "%s/%.120s", path, entry->d_name);
        snprintf(full, sizeof full, "%s/%s", root, below);
        if (stat(full, &status) != 0) continue;
        snprintf(own, sizeof own, "%.31s", folder != NULL ? folder : entry->d_name);
        if (S_ISDIR(status.st_mode)) {
            read_folder(all, root, below, own);
            continue;
        }
        char *text = read_text(full);
        if (text == NULL) continue;
        if (ends_with(below, ".py")) read_python(all, below, text);
        if (ends_with(below, ".c") || ends_with(below, ".h")) read_c(all, own, below, text);
        free(text);
    }
    closedir(directory);
}

/* ---- values ---- */

typedef struct reader {
    const list *all;
    const named_constant *of;
    const char *at;
    int failed, depth;
} reader;

static int64_t sum(reader *r);

/* The value of a name: of this folder, or else of any. */
static int64_t look_up(reader *r, const char *name, size_t length)
{
    for (int own = 1; own >= 0 && r->depth < 8; own--)
        for (size_t i = 0; i < r->all->count; i++) {
            const named_constant *c = &r->all->items[i];
            if (strlen(c->name) != length || memcmp(c->name, name, length) != 0) continue;
            if (own && strcmp(c->folder, r->of->folder) != 0) continue;
            reader inner = {r->all, c, c->text, 0, r->depth + 1};
            const int64_t value = sum(&inner);
            r->failed |= inner.failed || *skip_blanks(inner.at) != '\0';
            return value;
        }
    r->failed = 1;
    return 0;
}

static int64_t atom(reader *r)
{
    r->at = skip_blanks(r->at);
    if (*r->at == '-') {
        r->at++;
        return -atom(r);
    }
    if (*r->at == '(') {
        const char *name = skip_blanks(r->at + 1);
        const size_t length = name_length(name);
        if (length > 0 && (strncmp(name + length, ")", 1) == 0) && strstr(name, "_t)") != NULL &&
            strstr(name, "_t)") < name + length) { /* a cast */
            r->at = name + length + 1;
            return atom(r);
        }
        r->at++;
        const int64_t value = sum(r);
        r->at = skip_blanks(r->at);
        r->failed |= *r->at != ')';
        r->at += *r->at == ')';
        return value;
    }
    if (isdigit((unsigned char)*r->at)) {
        char *end;
        const int64_t value = (int64_t)strtoull(r->at, &end, 0);
        while (*end == 'u' || *end == 'U' || *end == 'l' || *end == 'L') end++;
        r->failed |= *end == '.' || is_name(*end);
        r->at = end;
        return value;
    }
    const char *name = r->at;
    const size_t length = name_length(name);
    r->at += length;
    if (length == 0) r->failed = 1;
    return length == 0 ? 0 : look_up(r, name, length);
}

static int64_t product(reader *r)
{
    int64_t value = atom(r);
    for (r->at = skip_blanks(r->at); !r->failed && (*r->at == '*' || *r->at == '/');
         r->at = skip_blanks(r->at)) {
        const char sign = *r->at++;
        const int64_t next = atom(r);
        r->failed |= sign == '/' && next == 0;
        value = sign == '*' ? value * next : next != 0 ? value / next : 0;
    }
    return value;
}

static int64_t terms(reader *r)
{
    int64_t value = product(r);
    for (r->at = skip_blanks(r->at); !r->failed && (*r->at == '+' || *r->at == '-');
         r->at = skip_blanks(r->at)) {
        const char sign = *r->at++;
        const int64_t next = product(r);
        value += sign == '+' ? next : -next;
    }
    return value;
}

static int64_t sum(reader *r)
{
    int64_t value = terms(r);
    while (!r->failed && (*r->at == '<' || *r->at == '>') && r->at[1] == *r->at) {
        const int left = *r->at == '<';
        r->at += 2;
        const int64_t bits = terms(r);
        value = left ? (int64_t)((uint64_t)value << bits) : value >> bits;
    }
    return value;
}

static int by_name(const void *a, const void *b)
{
    const named_constant *x = a, *y = b;
    const int folder = strcmp(x->folder, y->folder), name = strcmp(x->name, y->name);
    return folder != 0 ? folder : name != 0 ? name : strcmp(x->file, y->file);
}

/* What is no integer is no constant: a type, an attribute, a real number, a count of public
 * names. A choice between numbers is one without a known value. */
static void drop_others(list *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        named_constant *c = &all->items[i];
        reader r = {all, c, c->text, 0, 0};
        c->value = sum(&r);
        c->known = !r.failed && *skip_blanks(r.at) == '\0';
    }
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].known || strchr(all->items[i].text, '?') != NULL)
            all->items[kept++] = all->items[i];
    all->count = kept;
}

named_constant *constants_read(const char *root, size_t *count)
{
    list all = {0};
    read_folder(&all, root, "include/locus", "include");
    read_folder(&all, root, "src", NULL);
    read_folder(&all, root, "lab", "lab");
    read_folder(&all, root, "bench", "bench");
    read_folder(&all, root, "cli", "cli");
    read_folder(&all, root, "bindings/python/src", "python");
    read_folder(&all, root, "bindings/python/locus", "python");
    drop_others(&all);
    if (all.count > 0) qsort(all.items, all.count, sizeof *all.items, by_name);
    *count = all.count;
    return all.items;
}

size_t constant_values(const char *path, int64_t *values, size_t room)
{
    static named_constant *all;
    static size_t count;
    if (all == NULL) all = constants_read(LOCUS_TEST_SOURCE_DIR, &count);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        char own[128];
        snprintf(own, sizeof own, "%s/%s", all[i].folder, all[i].name);
        if (strcmp(own, path) != 0 || !all[i].known) continue;
        size_t same = 0;
        while (same < found && values[same] != all[i].value) same++;
        if (same == found && found < room) values[found++] = all[i].value;
    }
    if (found > 0) return found;
    fprintf(stderr, "constant %s: the sources have none of a known value\n", path);
    exit(2);
}

int64_t constant_value(const char *path)
{
    int64_t values[2];
    if (constant_values(path, values, 2) == 1) return values[0];
    fprintf(stderr, "constant %s: the sources have several\n", path);
    exit(2);
}
