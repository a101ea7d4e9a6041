/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain -o page.html: the position switch on the heads of a layer, or of all layers, as one file that asks the
 * network for nothing. The page itself is web/explain.html with its scripts (cmake/explain-page.cmake); it lies in the
 * program, and the numbers are put into it here. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include <inttypes.h>
#include <locus/picture.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "json.h"
#include "lab/embed.h"
#include "page.h"

EMBED_FILE(explain_page_text, EXPLAIN_PAGE_FILE);

enum { PAGE_NUMBERS = 400000 }; /* at most: 4.3 MB of them in the page */

/* The terms of the page; `plain`: the products of content, where the scheme has turned or faded them, so that what
 * position does to them is the difference. */
typedef struct switch_terms {
    size_t count;
    const char *name[EXPLAIN_TERMS], *formula[EXPLAIN_TERMS];
    int plain;
} switch_terms;

static int no_memory(void) { return cli_complain("explain", CLI_RESOURCES, "out of memory"); }

/* ---- the terms ---- */

/* The cap bends the sum of the others: the page does that itself. */
static int is_cap(const locus_explainer_term *term) { return strcmp(term->name, "softcap") == 0; }

static int is_content(const char *name)
{
    return strcmp(name, "content") == 0 || strcmp(name, "u.k") == 0;
}

static int is_position(const char *name)
{
    return !is_content(name) && strcmp(name, "bias_dense") != 0;
}

static void list_terms(switch_terms *terms, const explain_call *call)
{
    *terms = (switch_terms){.plain = call->terms[0]->place == LOCUS_TERM_ROTATION};
    if (terms->plain) {
        terms->name[terms->count] = "content";
        terms->formula[terms->count++] = "c q_m . k_n";
    }
    for (size_t t = 0; t < call->info.terms; t++) {
        if (is_cap(call->terms[t])) continue;
        terms->name[terms->count] = call->terms[t]->name;
        terms->formula[terms->count++] = t == 0 && terms->plain
                                             ? "c q_m . k_n, both turned, - c q_m . k_n"
                                             : call->terms[t]->formula;
    }
}

/* ---- the numbers of a head ---- */

/* [queries][keys] of what `explainer` says: its terms one after the other, and which pairs there are. */
static locus_status explain_head(const explain_call *call, locus_explainer *explainer, int64_t head,
                                 double *terms, uint8_t *visible, locus_error *error)
{
    const locus_explain_block block = {.size = sizeof block,
                                       .batch = explain_block_of(call).batch,
                                       .head = head,
                                       .queries = call->info.queries,
                                       .keys = call->info.keys};
    const locus_explained into = {.size = sizeof into, .terms = terms, .visible = visible};
    return locus_explain(explainer, &block, &into, error);
}

/* The same q and k without a scheme. */
static locus_status open_plain(const explain_call *call, locus_explainer **plain,
                               locus_error *error)
{
    const locus_config *from = call->config;
    const locus_tensors *in = call->in;
    locus_config config;
    locus_status status = locus_config_init(&config, "none");
    config.causal = from->causal;
    config.heads = from->heads;
    config.window_left = from->window_left;
    config.window_right = from->window_right;
    config.query_offset = from->query_offset;
    config.key_offset = from->key_offset;
    config.scale = call->info.scale;
    const locus_tensors rows = {.size = sizeof rows,
                                .q = in->q,
                                .k = in->k,
                                .v = in->v,
                                .q_offsets = in->q_offsets,
                                .k_offsets = in->k_offsets,
                                .x = in->x,
                                .memory = in->memory,
                                .w_q = in->w_q,
                                .w_k = in->w_k,
                                .w_v = in->w_v,
                                .b_q = in->b_q,
                                .b_k = in->b_k,
                                .b_v = in->b_v,
                                .w_o = in->w_o,
                                .b_o = in->b_o};
    if (status == LOCUS_OK) status = locus_explainer_new(plain, call->level, &config, &rows, error);
    return status;
}

static size_t find_term(const switch_terms *terms, const char *name)
{
    size_t t = 0;
    while (t < terms->count && strcmp(terms->name[t], name) != 0) t++;
    return t;
}

/* What `call` says of a head as the terms of the page: `found` are its own, `plain` the untouched content. */
static int sort_terms(const switch_terms *terms, const explain_call *call, const double *found,
                      const double *plain, const uint8_t *visible, double *numbers)
{
    const int64_t pairs = call->info.queries * call->info.keys;
    for (size_t t = 0; t < call->info.terms; t++) {
        const locus_explainer_term *term = call->terms[t];
        const size_t at = find_term(terms, term->name);
        if (is_cap(term)) continue;
        if (at == terms->count)
            return cli_complain("explain", CLI_REFUSED,
                                "layer %u: found the term \"%s\", which the first layer has not; "
                                "give a --layer",
                                call->values->layer, term->name);
        const int turned = term->place == LOCUS_TERM_ROTATION;
        for (int64_t i = 0; i < pairs; i++) {
            numbers[(int64_t)at * pairs + i] =
                found[(int64_t)t * pairs + i] - (turned ? plain[i] : 0.0);
            if (turned) numbers[i] = plain[i];
        }
    }
    for (int64_t i = 0; i < (int64_t)terms->count * pairs; i++)
        if (!visible[i % pairs]) numbers[i] = NAN;
    return CLI_DONE;
}

/* Bytes as letters, lowest byte of a number first; the caller's to free. */
static char *base64_doubles(const double *numbers, size_t count)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t bytes = 8 * count;
    char *text = malloc((bytes + 2) / 3 * 4 + 1), *out = text;
    for (size_t i = 0; text != NULL && i < bytes; i += 3) {
        uint32_t three = 0;
        for (size_t j = i; j < i + 3; j++) {
            uint64_t bits = 0;
            if (j < bytes) memcpy(&bits, &numbers[j / 8], sizeof bits);
            three = three << 8 | (uint32_t)(bits >> 8 * (j % 8) & 255);
        }
        for (size_t j = 0; j < 4; j++)
            *out++ = i + j > bytes ? '=' : letters[three >> (18 - 6 * j) & 63];
    }
    if (text != NULL) *out = '\0';
    return text;
}

static int write_sink(json *j, const explain_call *call, int64_t head)
{
    const locus_tensor *sink = &call->in->sink;
    if (sink->data == NULL) return CLI_DONE;
    if (sink->dtype != LOCUS_F32)
        return cli_complain("explain", CLI_REFUSED, "sink: found %s, expected F32 for a page",
                            locus_dtype_name(sink->dtype));
    json_real(j, "sink", (double)((const float *)sink->data)[head * sink->stride[0]]);
    return CLI_DONE;
}

static int write_head(json *j, const switch_terms *terms, const explain_call *call,
                      locus_explainer *plain_explainer, int64_t head)
{
    const size_t pairs = (size_t)(call->info.queries * call->info.keys);
    double *room = calloc((terms->count + call->info.terms + 1) * pairs, sizeof *room);
    uint8_t *visible = calloc(pairs, 1);
    char *text = NULL;
    locus_error error = {""};
    int exit_code = room != NULL && visible != NULL ? CLI_DONE : no_memory();
    if (exit_code == CLI_DONE) {
        double *found = room + terms->count * pairs, *plain = found + call->info.terms * pairs;
        locus_status status = LOCUS_OK;
        if (plain_explainer != NULL)
            status = explain_head(call, plain_explainer, head, plain, visible, &error);
        if (status == LOCUS_OK)
            status = explain_head(call, call->explainer, head, found, visible, &error);
        exit_code = status != LOCUS_OK ? cli_report("explain", status, call->values->path, &error)
                                       : sort_terms(terms, call, found, plain, visible, room);
    }
    if (exit_code == CLI_DONE && (text = base64_doubles(room, terms->count * pairs)) == NULL)
        exit_code = no_memory();
    if (exit_code == CLI_DONE) {
        json_inline_object(j, NULL);
        json_size(j, "layer", call->values->layer != EXPLAIN_NONE ? call->values->layer : 0);
        json_integer(j, "head", head);
        exit_code = write_sink(j, call, head);
        json_text(j, "numbers", text);
        json_end(j);
    }
    free(text);
    free(room);
    free(visible);
    return exit_code;
}

static int write_layer(json *j, const switch_terms *terms, const explain_call *call)
{
    locus_explainer *plain = NULL;
    locus_error error = {""};
    if (call->terms[0]->place == LOCUS_TERM_ROTATION) {
        const locus_status status = open_plain(call, &plain, &error);
        if (status != LOCUS_OK) return cli_report("explain", status, call->values->path, &error);
    }
    int exit_code = CLI_DONE;
    for (int64_t head = 0; exit_code == CLI_DONE && head < call->info.heads; head++)
        exit_code = write_head(j, terms, call, plain, head);
    locus_explainer_free(plain);
    return exit_code;
}

/* ---- the whole ---- */

static void write_names(json *j, const char *key, const char *const *names, int64_t count)
{
    char number[24];
    json_inline_array(j, key);
    for (int64_t i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%" PRId64, i);
        json_text(j, NULL, names != NULL ? names[i] : number);
    }
    json_end(j);
}

static void write_terms(json *j, const switch_terms *terms)
{
    json_array(j, "terms");
    for (size_t t = 0; t < terms->count; t++) {
        const uint32_t ink = locus_picture_term_ink(terms->name[t]);
        char colour[8];
        json_inline_object(j, NULL);
        json_text(j, "name", terms->name[t]);
        json_text(j, "formula", terms->formula[t]);
        json_integer(j, "position", is_position(terms->name[t]));
        json_inline_array(j, "inks");
        for (int dark = 0; dark < 2; dark++) {
            const locus_theme theme = dark ? LOCUS_THEME_DARK : LOCUS_THEME_LIGHT;
            snprintf(colour, sizeof colour, "#%06x", (unsigned)locus_ink_colour(ink, theme));
            json_text(j, NULL, colour);
        }
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

/* Where the page begins: at a query of a head, or, by itself, where position moves most. */
static void write_start(json *j, const explain_call *call)
{
    const explain_values *v = call->values;
    if (v->query == EXPLAIN_NONE) return;
    json_inline_object(j, "start");
    json_integer(j, "head", explain_block_of(call).head);
    json_size(j, "query", v->query);
    json_end(j);
}

static void title_of(const explain_call *call, char *title, size_t room)
{
    char quoted[160];
    const char *path = call->values->path != NULL ? call->values->path : call->config->scheme;
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    snprintf(quoted, sizeof quoted, "%.*s", (int)(end - begin < 120 ? end - begin : 120),
             path + begin);
    snprintf(title, room, "%s%s", quoted,
             call->model.model != NULL ? model_stack_note(&call->model) : "");
}

static void about_of(const explain_call *call, int64_t layers, char *about, size_t room)
{
    const explain_values *v = call->values;
    if (call->model.model == NULL)
        snprintf(about, room, "%s, %s", call->config->scheme,
                 v->path != NULL ? "a case file" : "made-up weights");
    else if (layers > 1)
        snprintf(about, room, "%s, %" PRId64 " layers, %" PRId64 " heads", call->model.info.family,
                 layers, call->info.heads);
    else
        snprintf(about, room, "%s, layer %u of %" PRId64, call->model.info.family, v->layer,
                 call->model.info.layers);
}

static int write_others(json *j, const switch_terms *terms, const explain_call *call,
                        int64_t layers)
{
    int exit_code = CLI_DONE;
    for (int64_t layer = 1; exit_code == CLI_DONE && layer < layers; layer++) {
        explain_values values = *call->values;
        explain_call other;
        values.layer = (uint32_t)layer;
        exit_code = explain_open_layer(&other, &values, &call->model);
        if (exit_code != CLI_DONE) return exit_code;
        exit_code = write_layer(j, terms, &other);
        explain_close(&other);
    }
    return exit_code;
}

static int write_numbers(FILE *out, const explain_call *call, int64_t layers)
{
    switch_terms terms;
    char title[200], about[200];
    json j = {.out = out};
    list_terms(&terms, call);
    title_of(call, title, sizeof title);
    about_of(call, layers, about, sizeof about);
    const double numbers = (double)terms.count * (double)call->info.queries *
                           (double)call->info.keys * (double)call->info.heads * (double)layers;
    if (numbers > PAGE_NUMBERS)
        return cli_complain("explain", CLI_REFUSED,
                            "--output: found %.0f numbers, expected %d at most in a page: give %s",
                            numbers, PAGE_NUMBERS,
                            layers > 1 ? "a --layer, or a shorter --text" : "a shorter text");
    json_object(&j, NULL);
    json_text(&j, "title", title);
    json_text(&j, "about", about);
    write_names(&j, "tokens", explain_keys_shown(call), call->info.keys);
    if (explain_across(call))
        write_names(&j, "queries", explain_queries_shown(call), call->info.queries);
    write_terms(&j, &terms);
    if (call->config->softcap > 0.0) json_real(&j, "softcap", call->config->softcap);
    write_start(&j, call);
    json_array(&j, "heads");
    int exit_code = write_layer(&j, &terms, call);
    if (exit_code == CLI_DONE) exit_code = write_others(&j, &terms, call, layers);
    json_end(&j);
    json_end(&j);
    return exit_code;
}

/* JSON inside a script element: no "<" but those of JavaScript's own spelling. */
static void put_numbers(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc(text[i], out);
}

/* The page with its places filled in: @TITLE@, @ABOUT@, @NUMBERS@. */
static void put_page(FILE *out, const explain_call *call, int64_t layers, const char *numbers,
                     size_t length)
{
    char title[200], about[200];
    const char *text = (const char *)explain_page_text, *at;
    title_of(call, title, sizeof title);
    about_of(call, layers, about, sizeof about);
    for (; (at = strchr(text, '@')) != NULL; text = at) {
        fwrite(text, 1, (size_t)(at - text), out);
        if (strncmp(at, "@TITLE@", 7) == 0)
            page_escape(out, title), at += 7;
        else if (strncmp(at, "@ABOUT@", 7) == 0)
            page_escape(out, about), at += 7;
        else if (strncmp(at, "@NUMBERS@", 9) == 0)
            put_numbers(out, numbers, length), at += 9;
        else
            putc(*at++, out);
    }
    fputs(text, out);
}

static int write_page(const explain_call *call, int64_t layers)
{
    char *numbers = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&numbers, &length);
    if (memory == NULL) return no_memory();
    int exit_code = write_numbers(memory, call, layers);
    const int whole = !ferror(memory);
    if ((fclose(memory) != 0 || !whole) && exit_code == CLI_DONE) exit_code = no_memory();
    if (exit_code == CLI_DONE) {
        cli_output output;
        cli_output_begin(&output, call->values->output);
        if (output.file != NULL) put_page(output.file, call, layers, numbers, length);
        exit_code = cli_output_finish(&output, "explain");
    }
    free(numbers);
    return exit_code;
}

int explain_page(const explain_values *values)
{
    explain_values first = *values;
    explain_call call;
    const int all = model_call_is_folder(values->path) && values->layer == EXPLAIN_NONE;
    if (all) first.layer = 0;
    int exit_code = explain_open(&call, &first);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = write_page(&call, all ? call.model.info.layers : 1);
    explain_close(&call);
    return exit_code;
}
