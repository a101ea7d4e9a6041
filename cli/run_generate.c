/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task generate: texts continued, answered or translated. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pieces.h"
#include "run.h"
#include "text.h"

static int given(const locus_model_info *info) { return info->head == LOCUS_MODEL_GENERATE; }

/* ---- settings ---- */

/* Any finite number, also below 0. */
static int read_real(const char *name, const char *text, double *value)
{
    char *end = NULL, quoted[160];
    const int plain = *text != '\0' && strspn(text, "0123456789.eE+-") == strlen(text);
    if (plain) *value = strtod(text, &end);
    if (plain && *end == '\0' && isfinite(*value)) return CLI_DONE;
    return cli_complain("run", CLI_USAGE, "--%s: expected a number, got \"%s\"", name,
                        text_quote(quoted, sizeof quoted, text));
}

/* What the command line says goes before what the model says. */
static int read_settings(const run_session *s, locus_generation *how)
{
    const run_generation *g = &s->values->generation;
    how->size = sizeof *how;
    locus_generation_init(how, s->model);
    if (g->beams > 0) how->beams = g->beams;
    if (g->max_length > 0) {
        how->max_length = g->max_length;
        how->max_new_tokens = 0;
    }
    if (g->min_length != RUN_UNSET) {
        how->min_length = g->min_length;
        how->min_new_tokens = 0;
    }
    if (g->no_repeat_ngram != RUN_UNSET) how->no_repeat_ngram = g->no_repeat_ngram;
    if (g->top_k != RUN_UNSET) how->top_k = g->top_k;
    if (g->top_p > 0.0) how->top_p = g->top_p;
    if (g->temperature > 0.0) how->temperature = g->temperature;
    if (g->sample) how->sample = 1;
    if (g->sample && g->beams == 0) how->beams = 1;
    if (g->beams > 0 && !g->sample) how->sample = 0;
    how->seed = g->seed;
    how->prompt = (const int32_t *)s->decoder_ids;
    how->prompt_count = (int64_t)s->decoder_id_count;
    return g->length_penalty == NULL
               ? CLI_DONE
               : read_real("length-penalty", g->length_penalty, &how->length_penalty);
}

/* ---- text as it comes ---- */

typedef struct stream {
    const run_session *session;
    uint32_t *ids;
    size_t count, printed; /* printed: bytes of the text */
} stream;

/* Those of the ids that have a token; a table may have more rows than there are tokens. The caller
 * frees them. */
static uint32_t *with_tokens(const run_session *s, const uint32_t *ids, size_t *count)
{
    uint32_t *kept = malloc((*count + 1) * sizeof *kept);
    size_t used = 0;
    for (size_t i = 0; kept != NULL && i < *count; i++)
        if (locus_tokenizer_token(s->tokenizer, ids[i], NULL) != NULL) kept[used++] = ids[i];
    *count = used;
    return kept;
}

/* The text of ids without special tokens, *text NULL where no tokenizer makes one; the caller frees
 * it. */
static locus_status decode(const run_session *s, const uint32_t *ids, size_t count, char **text,
                           size_t *bytes, locus_error *error)
{
    *text = NULL;
    *bytes = 0;
    if (s->tokenizer == NULL) return LOCUS_OK;
    uint32_t *kept = with_tokens(s, ids, &count);
    locus_status status =
        kept != NULL ? locus_tokenizer_decode(s->tokenizer, kept, count, 1, NULL, 0, bytes, error)
                     : LOCUS_ERR_MEMORY;
    if (status == LOCUS_OK) *text = calloc(*bytes + 1, 1); /* the decoder reads a letter ahead */
    if (status == LOCUS_OK && *text == NULL) status = LOCUS_ERR_MEMORY;
    if (status == LOCUS_OK)
        status = locus_tokenizer_decode(s->tokenizer, kept, count, 1, *text, *bytes, bytes, error);
    if (status != LOCUS_OK) free(*text);
    if (status != LOCUS_OK) *text = NULL;
    free(kept);
    return status;
}

/* Bytes that end with a whole letter: a part of one may still grow. */
static size_t whole_letters(const char *text, size_t bytes)
{
    static const char unfinished[] = "\xEF\xBF\xBD"; /* what stands for a part of a letter */
    const size_t mark = sizeof unfinished - 1;
    while (bytes >= mark && memcmp(text + bytes - mark, unfinished, mark) == 0) bytes -= mark;
    return bytes;
}

static void print_token(void *context, int64_t which, int32_t id)
{
    stream *to = context;
    locus_error error = {""};
    size_t bytes;
    char *text = NULL;
    (void)which;
    uint32_t *grown = realloc(to->ids, (to->count + 1) * sizeof *grown);
    if (grown == NULL) return; /* the rest comes at the end */
    to->ids = grown;
    to->ids[to->count++] = (uint32_t)id;
    if (decode(to->session, to->ids, to->count, &text, &bytes, &error) != LOCUS_OK) return;
    bytes = whole_letters(text, bytes);
    if (bytes > to->printed) {
        text_show(text + to->printed, bytes - to->printed);
        fflush(stdout);
        to->printed = bytes;
    }
    free(text);
}

static int streams(const run_session *s, const locus_generation *how)
{
    return isatty(STDOUT_FILENO) && !s->values->json && how->beams == 1 && s->tokenizer != NULL &&
           !s->several;
}

/* The prompt of a decoder is part of its text. */
static void begin_stream(stream *to, const run_session *s, const locus_generation *how)
{
    const run_text text = run_text_at(s, 0);
    const int own = s->info.decoder_layers > 0;
    const int32_t *ids = own ? how->prompt : text.ids;
    const int64_t count = own ? how->prompt_count : text.count;
    to->session = s;
    for (int64_t i = 0; i < count; i++) print_token(to, 0, ids[i]);
}

/* ---- results ---- */

static void print_ids(json *j, const char *key, const int32_t *ids, int64_t count)
{
    json_inline_array(j, key);
    for (int64_t i = 0; i < count; i++) json_integer(j, NULL, ids[i]);
    json_end(j);
}

static int print_json(const run_session *s, int64_t index, const locus_generated *generated)
{
    json j = {.out = stdout};
    int64_t count = 0;
    size_t bytes = 0;
    char *answer = NULL;
    locus_error error = {""};
    const run_text text = run_text_at(s, index);
    const int32_t *ids = locus_generated_ids(generated, index, &count);
    const locus_status status =
        decode(s, (const uint32_t *)ids, (size_t)count, &answer, &bytes, &error);
    if (status != LOCUS_OK) return cli_report("run", status, NULL, &error);
    run_json_begin(&j, s, &text);
    print_ids(&j, "generated_ids", ids, count);
    if (answer != NULL) json_bytes(&j, "text", answer, bytes);
    json_real(&j, "score", locus_generated_score(generated, index));
    json_end(&j);
    free(answer);
    return CLI_DONE;
}

/* The text, or the ids where no tokenizer makes one of them. */
static int print_text(const run_session *s, int64_t index, const locus_generated *generated,
                      size_t printed)
{
    int64_t count = 0;
    size_t bytes = 0;
    char *text = NULL;
    locus_error error = {""};
    const int32_t *ids = locus_generated_ids(generated, index, &count);
    const locus_status status =
        decode(s, (const uint32_t *)ids, (size_t)count, &text, &bytes, &error);
    if (status != LOCUS_OK) return cli_report("run", status, NULL, &error);
    if (text != NULL && bytes > printed) text_show(text + printed, bytes - printed);
    for (int64_t i = 0; text == NULL && i < count; i++)
        printf("%s%" PRId32, i > 0 ? "," : "", ids[i]);
    putchar('\n');
    free(text);
    return CLI_DONE;
}

static int run(run_session *s)
{
    locus_generation how;
    locus_generated *generated = NULL;
    locus_error error = {""};
    stream to = {.session = s};
    int exit_code = read_settings(s, &how);
    if (exit_code != CLI_DONE) return exit_code;
    if (streams(s, &how)) {
        how.token = print_token;
        how.context = &to;
        begin_stream(&to, s, &how);
    }
    const int64_t count = locus_texts_count(s->texts);
    const locus_status status =
        locus_generate(&generated, s->model, &how, locus_texts_ids(s->texts),
                       locus_texts_offsets(s->texts), count, &error);
    if (status != LOCUS_OK) exit_code = cli_report("run", status, NULL, &error);
    for (int64_t i = 0; exit_code == CLI_DONE && i < count; i++)
        exit_code =
            s->values->json ? print_json(s, i, generated) : print_text(s, i, generated, to.printed);
    locus_generated_free(generated);
    free(to.ids);
    return exit_code;
}

const run_task run_generate = {.name = "generate", .given = given, .run = run};
