/* SPDX-License-Identifier: Apache-2.0 */
/* locus bench: from words on the command line to lists of what to measure. */
#include <stdio.h>
#include <string.h>

#include "bench/measure.h"
#include "cli/text.h"

enum { WORD = 64, MOST_N = 65536, MOST_D = 1024, MOST_WIDTH = 16384, MOST_THREADS = 256 };

/* ---- lists ---- */

/* The next word of "a,b,c" into `word`; 0 at the end, -1 when it is empty or too long. */
static int next_word(const char **list, char *word)
{
    if (*list == NULL) return 0;
    const size_t length = strcspn(*list, ",");
    if (length == 0 || length >= WORD) return -1;
    memcpy(word, *list, length);
    word[length] = '\0';
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    return 1;
}

static int bad_list(const char *option, const char *expected, const char *list)
{
    char quoted[160];
    return cli_complain("bench", CLI_USAGE, "--%s: expected %s, got \"%s\"", option, expected,
                        text_quote(quoted, sizeof quoted, list));
}

static int read_number(const char *word, uint32_t most, uint32_t *number)
{
    uint32_t value = 0;
    for (; *word != '\0'; word++) {
        if (*word < '0' || *word > '9') return 0;
        value = 10 * value + (uint32_t)(*word - '0');
        if (value > most) return 0;
    }
    *number = value;
    return value > 0;
}

static int read_numbers(const char *option, const char *list, uint32_t most, uint32_t *numbers,
                        size_t *count)
{
    char word[WORD], expected[96];
    int more;
    const char *rest = list;
    snprintf(expected, sizeof expected, "at most %d whole numbers from 1 to %u with commas between",
             (int)BENCH_LIST, (unsigned)most);
    *count = 0;
    while ((more = next_word(&rest, word)) > 0)
        if (*count >= BENCH_LIST || !read_number(word, most, &numbers[(*count)++]))
            return bad_list(option, expected, list);
    return more < 0 ? bad_list(option, expected, list) : CLI_DONE;
}

/* ---- names ---- */

static int unknown_name(const char *option, const char *what, const char *word,
                        const char *const *names, size_t count)
{
    char quoted[160];
    const char *near = locus_nearest(word, names, count);
    text_quote(quoted, sizeof quoted, word);
    if (near != NULL)
        return cli_complain("bench", CLI_USAGE, "--%s: no %s \"%s\"; did you mean \"%s\"?", option,
                            what, quoted, near);
    return cli_complain("bench", CLI_USAGE, "--%s: no %s \"%s\" to measure", option, what, quoted);
}

static int unknown_kind(const char *word, const bench_kind *kinds, size_t count)
{
    const char *names[BENCH_KINDS];
    for (size_t i = 0; i < count; i++) names[i] = kinds[i].name;
    return unknown_name("scheme", "scheme", word, names, count);
}

static int read_kinds(bench_request *r, const char *list)
{
    bench_kind all[BENCH_KINDS];
    char word[WORD];
    int more;
    const char *rest = list;
    const size_t count = bench_list_kinds(all, BENCH_KINDS);
    while ((more = next_word(&rest, word)) > 0) {
        size_t i = 0;
        while (i < count && strcmp(all[i].name, word) != 0) i++;
        if (i == count) return unknown_kind(word, all, count);
        if (r->kind_count >= BENCH_KINDS) return bad_list("scheme", "fewer schemes", list);
        r->kinds[r->kind_count] = all[i];
        r->kinds[r->kind_count++].asked = 1;
    }
    return more < 0 ? bad_list("scheme", "names with commas between", list) : CLI_DONE;
}

static int unknown_isa(const char *word)
{
    const char *names[BENCH_LIST];
    size_t count = 0;
    while (count < BENCH_LIST && locus_isa_name(count) != NULL) {
        names[count] = locus_isa_name(count);
        count++;
    }
    return unknown_name("isa", "instruction set", word, names, count);
}

/* A plan that asks for it gets it. */
static int is_usable(const char *isa)
{
    const char *picked = locus_isa_pick(isa);
    return picked != NULL && strcmp(picked, isa) == 0;
}

/* Names of kernel tables; the strings of the library outlive the list. */
static int read_isas(bench_request *r, const char *list)
{
    char word[WORD];
    int more;
    const char *rest = list;
    while ((more = next_word(&rest, word)) > 0) {
        const char *isa = NULL;
        for (size_t i = 0; isa == NULL && locus_isa_name(i) != NULL; i++)
            if (strcmp(locus_isa_name(i), word) == 0) isa = locus_isa_name(i);
        if (isa == NULL) return unknown_isa(word);
        if (!is_usable(isa))
            return cli_complain("bench", CLI_USAGE,
                                "--isa: %s is not on this CPU, or above LOCUS_ISA", isa);
        if (r->isa_count >= BENCH_LIST) return bad_list("isa", "fewer instruction sets", list);
        r->isas[r->isa_count++] = isa;
    }
    return more < 0 ? bad_list("isa", "names with commas between", list) : CLI_DONE;
}

/* Half precision beside F32, which is always measured. */
static int read_dtypes(bench_request *r, const char *list)
{
    char word[WORD];
    int more;
    const char *rest = list;
    r->dtypes[r->dtype_count++] = LOCUS_F32;
    while (list != NULL && (more = next_word(&rest, word)) > 0) {
        const int f16 = strcmp(word, "f16") == 0;
        const locus_dtype dtype = f16 ? LOCUS_F16 : LOCUS_BF16;
        if ((!f16 && strcmp(word, "bf16") != 0) || r->dtypes[r->dtype_count - 1] == dtype ||
            r->dtype_count == sizeof r->dtypes / sizeof *r->dtypes)
            return bad_list("dtype", "f16, bf16 or f16,bf16", list);
        r->dtypes[r->dtype_count++] = dtype;
    }
    return list != NULL && more < 0 ? bad_list("dtype", "f16, bf16 or f16,bf16", list) : CLI_DONE;
}

static const struct {
    const char *name;
    int directions[BENCH_DIRECTIONS];
} directions[] = {
    {"forward", {1, 0, 0}},
    {"backward", {0, 1, 0}},
    {"both", {1, 1, 0}},
    {"all", {1, 1, 1}},
};

const char *bench_direction_at(size_t index)
{
    return index < sizeof directions / sizeof *directions ? directions[index].name : NULL;
}

static int read_direction(bench_request *r, const char *word)
{
    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++) {
        if (strcmp(directions[i].name, word) != 0) continue;
        memcpy(r->directions, directions[i].directions, sizeof r->directions);
        return CLI_DONE;
    }
    return bad_list("direction", "forward, backward, both or all", word);
}

/* ---- defaults ---- */

static void set_numbers(uint32_t *numbers, size_t *count, const uint32_t *from, size_t given)
{
    memcpy(numbers, from, given * sizeof *numbers);
    *count = given;
}

static void default_numbers(bench_request *r, int full, int decode)
{
    static const uint32_t usual[] = {512, 2048}, every[] = {64, 128, 512, 2048, 8192};
    static const uint32_t cache[] = {16384}, widths[] = {64, 128}, threads[] = {1, 2};
    if (r->n_count == 0 && decode) set_numbers(r->n, &r->n_count, cache, 1);
    if (r->n_count == 0) set_numbers(r->n, &r->n_count, full ? every : usual, full ? 5 : 2);
    if (r->d_count == 0) set_numbers(r->d, &r->d_count, widths, full ? 2 : 1);
    if (r->thread_count == 0) set_numbers(r->threads, &r->thread_count, threads, full ? 2 : 1);
}

/* The widths of small and middling models, and of their feed-forward layers. */
static void default_maps(bench_request *r)
{
    static const uint32_t tokens[] = {128, 512}, widths[] = {384, 768, 1024, 3072};
    if (r->token_count == 0) set_numbers(r->tokens, &r->token_count, tokens, 2);
    if (r->width_count == 0) set_numbers(r->widths, &r->width_count, widths, 4);
}

static void default_isas(bench_request *r, int full)
{
    if (r->isa_count > 0) return;
    for (size_t i = 0; full && r->isa_count < BENCH_LIST && locus_isa_name(i) != NULL; i++)
        if (is_usable(locus_isa_name(i))) r->isas[r->isa_count++] = locus_isa_name(i);
    if (!full) r->isas[r->isa_count++] = locus_isa_pick(NULL);
}

static void set_views(bench_request *r, const bench_values *v)
{
    r->views[BENCH_WHOLE] = !v->decode;
    r->views[BENCH_CAUSAL] = v->causal && !v->decode;
    r->views[BENCH_PADDED] = v->padded && !v->decode;
    r->views[BENCH_DROPOUT] = v->dropout > 0 && !v->decode;
    r->views[BENCH_PEAKED] = v->peaked && !v->decode;
    r->views[BENCH_KEPT] = v->kept && !v->decode;
    r->dropout = v->dropout;
    r->views[BENCH_DECODE] = v->decode;
    r->prepared = v->prepared;
    r->by_tokens = v->by_tokens;
    if (v->decode) r->directions[BENCH_BACKWARD] = r->directions[BENCH_TOGETHER] = 0;
}

/* --n and --d are rows and widths where linear maps or operators are asked for. */
static int read_sizes(bench_request *r, const bench_values *v)
{
    const int rows = v->linear || v->operators;
    uint32_t *n = rows ? r->tokens : r->n, *d = rows ? r->widths : r->d;
    size_t *n_count = rows ? &r->token_count : &r->n_count;
    size_t *d_count = rows ? &r->width_count : &r->d_count;
    int code = v->n != NULL ? read_numbers("length", v->n, MOST_N, n, n_count) : CLI_DONE;
    if (code == CLI_DONE && v->d != NULL)
        code = read_numbers("dim", v->d, rows ? MOST_WIDTH : MOST_D, d, d_count);
    if (code == CLI_DONE && v->threads != NULL)
        code = read_numbers("threads", v->threads, MOST_THREADS, r->threads, &r->thread_count);
    return code;
}

/* Requests that contradict themselves. */
static int refuse_pairs(const bench_request *r, const bench_values *v)
{
    const int variants = v->causal || v->padded || v->peaked || v->kept || v->dropout > 0;
    if ((v->linear || v->operators) && v->dtypes != NULL)
        return cli_complain("bench", CLI_USAGE, "--dtype measures attention only");
    if (v->linear && (v->schemes != NULL || v->decode || variants || v->heads > 0 || v->batch > 0))
        return cli_complain("bench", CLI_USAGE,
                            "--linear measures no attention: it goes without --scheme, --decode, "
                            "--causal, --padded, --dropout, --peaked, --kept, --heads and --batch");
    if (v->operators && (v->schemes != NULL || v->linear || v->decode || variants || v->full ||
                         v->markdown || v->svg != NULL || v->direction != NULL))
        return cli_complain(
            "bench", CLI_USAGE,
            "--operators goes with --length, --dim, --isa, --threads, --rounds and --json "
            "only");
    if (v->mask != NULL && strcmp(v->mask, "blocks") != 0)
        return cli_complain("bench", CLI_USAGE, "--mask: found %s, expected blocks", v->mask);
    if ((v->ragged || v->mask != NULL) &&
        (v->linear || v->operators || v->decode || variants || v->full || v->markdown ||
         v->n != NULL || v->batch > 0 || v->dtypes != NULL || v->svg != NULL))
        return cli_complain(
            "bench", CLI_USAGE,
            "--ragged and --mask go with --scheme, --dim, --heads, --direction, --isa, "
            "--threads, --rounds and --json only");
    if (v->dropout >= 1)
        return cli_complain("bench", CLI_USAGE, "--dropout: expected a number below 1, got %g",
                            v->dropout);
    if (v->decode && !r->directions[BENCH_FORWARD])
        return cli_complain("bench", CLI_USAGE, "--decode measures the forward direction only");
    if (v->decode && r->kind_count == 1 && r->kinds[0].dense)
        return cli_complain("bench", CLI_USAGE, "--decode does not measure %s", r->kinds[0].name);
    if (v->json && v->markdown)
        return cli_complain("bench", CLI_USAGE, "--json and --markdown exclude each other");
    return CLI_DONE;
}

int bench_compares_threads(const bench_request *r)
{
    int one = 0, more = 0;
    for (size_t i = 0; i < r->thread_count; i++) {
        one |= r->threads[i] == 1;
        more |= r->threads[i] > 1;
    }
    return one && more;
}

int bench_read_request(bench_request *r, const bench_values *v)
{
    memset(r, 0, sizeof *r);
    r->heads = v->heads;
    r->batch = v->batch;
    r->rounds = v->rounds > 0 ? v->rounds : v->full ? 3 : 5;
    r->seconds = v->rounds > 0 || v->full ? 1e9 : 130.0;
    r->baseline = !v->no_baseline && !v->by_tokens;
    if (locus_isa_pick(NULL) == NULL)
        return cli_complain("bench", CLI_USAGE, "LOCUS_ISA does not name an instruction set");
    int code = read_direction(r, v->direction != NULL ? v->direction : "both");
    if (code == CLI_DONE && v->schemes != NULL) code = read_kinds(r, v->schemes);
    if (code == CLI_DONE && v->isas != NULL) code = read_isas(r, v->isas);
    if (code == CLI_DONE) code = read_dtypes(r, v->dtypes);
    if (code == CLI_DONE) code = read_sizes(r, v);
    if (code == CLI_DONE) code = refuse_pairs(r, v);
    if (code != CLI_DONE) return code;
    if (r->kind_count == 0 && !v->linear) r->kind_count = bench_list_kinds(r->kinds, BENCH_KINDS);
    if (v->linear || (v->full && v->schemes == NULL && !v->decode)) default_maps(r);
    default_isas(r, v->full);
    default_numbers(r, v->full, v->decode);
    set_views(r, v);
    return CLI_DONE;
}
