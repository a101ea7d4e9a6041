/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures there are, and the whole of one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/nearest.h"
#include "pictures/pictures.h"

static const picture_kind *const kinds[] = {
    &picture_encoding, &picture_layouts,   &picture_similarity, &picture_distance,
    &picture_rows,     &picture_bias,      &picture_angles,     &picture_decay,
    &picture_position, &picture_attention, &picture_terms,      &picture_variants,
};

enum { KINDS = sizeof kinds / sizeof *kinds, WHAT = 160 };

const locus_picture_kind *locus_picture_kind_at(const char *scheme, size_t index)
{
    const locus_scheme_info *info = scheme != NULL ? locus_scheme_find(scheme) : NULL;
    if (scheme != NULL && info == NULL) return NULL;
    for (size_t i = 0; i < KINDS; i++)
        if ((info == NULL || kinds[i]->applies(info)) && index-- == 0) return &kinds[i]->about;
    return NULL;
}

/* What shows best what the scheme is about, by what it declares. */
static const char *usual_kinds(const locus_scheme_info *scheme)
{
    if ((scheme->traits & LOCUS_TRAIT_COUNTED) != 0) return "terms";
    if ((scheme->terms & LOCUS_TERM_INPUT) != 0) return "encoding,similarity";
    if ((scheme->terms & LOCUS_TERM_ROTATION) != 0) return "angles,decay";
    if ((scheme->terms & LOCUS_TERM_POSITION_POSITION) != 0) return "position";
    if (picture_has_tensor(scheme, "u")) return "terms";
    if (picture_has_tensor(scheme, "rel_k"))
        return picture_has_option(scheme, "clip_left") ? "distance,rows" : "rows";
    if ((scheme->terms & LOCUS_TERM_BIAS) != 0)
        return picture_has_option(scheme, "buckets") ? "rows,bias" : "bias,attention";
    return "attention";
}

/* ---- drawing ---- */

static void append(char *text, size_t capacity, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s", more);
}

static locus_status unknown_kind(const locus_picture *p, const char *word)
{
    char quoted[WHAT], list[256] = "";
    const locus_picture_kind *kind;
    for (size_t i = 0; (kind = locus_picture_kind_at(p->scheme->name, i)) != NULL; i++) {
        append(list, sizeof list, i > 0 ? ", " : "");
        append(list, sizeof list, kind->name);
    }
    return locus_fail(p->error, LOCUS_ERR_ARGUMENT, "what: %s has no picture \"%s\", it has: %s",
                      p->scheme->name, locus_escape(quoted, sizeof quoted, word, strlen(word)),
                      list);
}

static const picture_kind *find_kind(const locus_scheme_info *scheme, const char *word)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i]->about.name, word) == 0 && kinds[i]->applies(scheme)) return kinds[i];
    return NULL;
}

/* Draw the comma-separated kinds one after the other. */
static locus_status draw_kinds(locus_picture *p, const char *what)
{
    snprintf(p->title, sizeof p->title, "%s", p->scheme->title);
    snprintf(p->description, sizeof p->description, "%s.", p->scheme->title);
    for (size_t i = 0; *what != '\0'; i++) {
        char word[WHAT];
        const size_t length = strcspn(what, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < WHAT ? length : WHAT - 1), what);
        const picture_kind *kind = find_kind(p->scheme, word);
        if (kind == NULL) return unknown_kind(p, word);
        append(p->title, sizeof p->title, i > 0 ? "; " : " \u2013 ");
        append(p->title, sizeof p->title, kind->about.title);
        append(p->description, sizeof p->description, i > 0 ? "; " : " The picture shows ");
        append(p->description, sizeof p->description, kind->about.help);
        LOCUS_TRY(kind->draw(p));
        if (p->out_of_memory) return LOCUS_ERR_MEMORY;
        if (p->too_much)
            return locus_fail(p->error, LOCUS_ERR_ARGUMENT,
                              "what: found more than %d panels or %d curves", PICTURE_PANELS,
                              PICTURE_SERIES);
        what += length;
        what += *what == ',' ? 1 : 0;
    }
    return LOCUS_OK;
}

static int are_equal(const locus_panel *a, const locus_panel *b)
{
    if (a->kind != LOCUS_PANEL_HEATMAP || b->kind != a->kind || a->rows != b->rows ||
        a->columns != b->columns || a->values == NULL || b->values == NULL)
        return 0;
    for (size_t i = 0; i < a->rows * a->columns; i++)
        if (a->values[i] != b->values[i] && !(isnan(a->values[i]) && isnan(b->values[i]))) return 0;
    return 1;
}

/* Two maps with the same numbers: the second says so, or readers look for the difference. */
static void note_equal_panels(locus_picture *p)
{
    for (size_t i = 1; i < p->panel_count; i++) {
        locus_panel *panel = &p->panels[i];
        size_t k = 0;
        while (k < i && !are_equal(panel, &p->panels[k])) k++;
        if (k < i)
            panel->note = picture_text(p, "%s%sThe same numbers as \"%s\".",
                                       panel->note != NULL ? panel->note : "",
                                       panel->note != NULL ? ". " : "", p->panels[k].title);
    }
}

static void write_caption(locus_picture *p)
{
    char seed[96];
    snprintf(p->caption, sizeof p->caption, "%s.", p->scheme->formula);
    if (p->options[0] != '\0' && !p->options_differ) {
        append(p->caption, sizeof p->caption, " With ");
        append(p->caption, sizeof p->caption, p->options);
        append(p->caption, sizeof p->caption, ".");
    }
    if (p->pairs) append(p->caption, sizeof p->caption, " Query m down, key n across.");
    if (p->pairs && (p->values->causal || p->values->window >= 0))
        append(p->caption, sizeof p->caption, " Grey pairs are hidden.");
    snprintf(seed, sizeof seed, " Learned numbers and contents are made up, seed %" PRIu64 ".",
             p->values->seed);
    if (p->made_up) append(p->caption, sizeof p->caption, seed);
    append(p->caption, sizeof p->caption, " ");
    append(p->caption, sizeof p->caption, p->scheme->citation);
    append(p->caption, sizeof p->caption, p->scheme->citation[0] != '\0' ? "." : "");
    append(p->description, sizeof p->description, ". ");
    append(p->description, sizeof p->description, p->caption);
}

/* ---- what is asked for ---- */

static locus_status check_numbers(const locus_picture_request *v, locus_error *error)
{
    const struct {
        const char *name;
        int64_t value, usual, least, most;
    } fields[] = {
        {"length", v->length, 0, 1, LOCUS_PICTURE_LENGTH},
        {"heads", v->heads, 0, 1, LOCUS_PICTURE_HEADS},
        {"dim", v->dim, 0, 2, LOCUS_PICTURE_DIM},
        {"head", v->head, -1, 0, INT32_MAX},
        {"window", v->window, -1, 0, LOCUS_PICTURE_LENGTH},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value != fields[i].usual &&
            (fields[i].value < fields[i].least || fields[i].value > fields[i].most))
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "%s: found %" PRId64 ", expected %" PRId64 " to %" PRId64,
                              fields[i].name, fields[i].value, fields[i].least, fields[i].most);
    if (v->tokens != NULL && (v->token_count < 1 || v->token_count > LOCUS_PICTURE_TOKENS))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tokens: found %zu tokens, expected 1 to %d",
                          v->token_count, LOCUS_PICTURE_TOKENS);
    return LOCUS_OK;
}

static locus_status check_request(const locus_picture_request *v, locus_error *error)
{
    LOCUS_TRY(check_numbers(v, error));
    if (v->tokens != NULL && v->length != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tokens and length exclude each other");
    if (v->path != NULL && (v->length != 0 || v->heads != 0 || v->dim != 0 || v->window >= 0 ||
                            v->causal || (v->settings != NULL && v->settings->name != NULL)))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "a case brings its own length, heads, options and masks");
    if (v->scheme == NULL && v->path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "scheme: expected a name or a case");
    return LOCUS_OK;
}

/* A case names its scheme itself. */
static locus_status load(locus_picture *p)
{
    const locus_picture_request *v = p->values;
    char quoted[160];
    LOCUS_TRY(locus_case_load(&p->loaded, v->path, p->allocator, p->error));
    const char *scheme = locus_case_config(p->loaded)->scheme;
    if (v->scheme != NULL && strcmp(v->scheme, scheme) != 0)
        return locus_fail(p->error, LOCUS_ERR_ARGUMENT, "%s holds a call of %s, not of %.60s",
                          locus_escape(quoted, sizeof quoted, v->path, strlen(v->path)), scheme,
                          v->scheme);
    p->scheme = locus_scheme_find(scheme);
    return LOCUS_OK;
}

static const char *scheme_name(size_t index)
{
    const locus_scheme_info *info = locus_scheme_at(index);
    return info != NULL ? info->name : NULL;
}

static locus_status find_scheme(locus_picture *p)
{
    const char *name = p->values->scheme;
    char quoted[160], suggestion[LOCUS_SUGGESTION];
    if (p->values->path != NULL) return load(p);
    p->scheme = locus_scheme_find(name);
    if (p->scheme != NULL) return LOCUS_OK;
    return locus_fail(p->error, LOCUS_ERR_SCHEME, "unknown scheme \"%s\"%s",
                      locus_escape(quoted, sizeof quoted, name, strlen(name)),
                      locus_suggest_from(suggestion, name, scheme_name));
}

/* ---- the whole picture ---- */

static locus_status make(locus_picture *p)
{
    LOCUS_TRY(find_scheme(p));
    LOCUS_TRY(draw_kinds(p, p->values->what != NULL ? p->values->what : usual_kinds(p->scheme)));
    note_equal_panels(p);
    if (p->out_of_memory) return LOCUS_ERR_MEMORY;
    write_caption(p);
    p->figure = (locus_figure){.size = sizeof p->figure,
                               .title = p->title,
                               .description = p->description,
                               .caption = p->caption,
                               .panels = p->panels,
                               .panel_count = p->panel_count,
                               .columns = (uint32_t)p->across};
    return LOCUS_OK;
}

static const locus_picture_request usual_request = {
    .size = sizeof usual_request, .head = -1, .window = -1, .seed = 2017};

void locus_picture_request_init_sized(locus_picture_request *request, size_t size,
                                      const char *scheme)
{
    locus_picture_request fresh = usual_request;
    fresh.scheme = scheme;
    request->size = (uint32_t)size;
    locus_hand_back(request, &fresh, sizeof fresh);
}

locus_status locus_picture_new(locus_picture **picture, const locus_picture_request *request,
                               locus_error *error)
{
    locus_error reason = {""};
    if (picture != NULL) *picture = NULL;
    locus_picture_request own = usual_request;
    if (picture == NULL || request == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "locus_picture_new: expected a picture and a request");
    LOCUS_ADOPT(request, own, "request", error);
    LOCUS_TRY(check_request(request, error));
    locus_picture *p = locus_allocate(request->allocator, 1, sizeof *p);
    if (p == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "out of memory");
    p->allocator = request->allocator;
    p->values = request;
    p->error = &reason;
    const locus_status status = make(p);
    locus_case_free(p->loaded);
    p->loaded = NULL;
    p->values = NULL;
    p->error = NULL;
    if (status == LOCUS_OK) {
        *picture = p;
        return status;
    }
    locus_picture_free(p);
    return locus_fail(error, status, "%s",
                      reason.text[0] != '\0' ? reason.text : locus_status_text(status));
}

void locus_picture_free(locus_picture *picture)
{
    if (picture == NULL) return;
    picture_let_go(picture);
    locus_release(picture->allocator, picture);
}

const locus_figure *locus_picture_figure(const locus_picture *picture)
{
    return picture != NULL ? &picture->figure : NULL;
}
