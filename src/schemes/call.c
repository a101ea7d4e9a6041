/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* Limits that CASES sets; positions stay far from the ends of int64_t. */
enum { MAX_WIDTH = 1024, MAX_ROWS = 1 << 20, MAX_OTHER = 1 << 24, MAX_THREADS = 1024 };
static const int64_t max_offset = (int64_t)1 << 31;

locus_status locus_config_init(locus_config *config, const char *scheme)
{
    const locus_config fresh = {
        .size = sizeof *config,
        .scheme = scheme,
        .window_left = LOCUS_NO_WINDOW,
        .window_right = LOCUS_NO_WINDOW,
    };
    *config = fresh;
    return locus_options_init(&config->options, scheme);
}

/* Tensors that every scheme takes. */
static const locus_tensor_info common[] = {
    {.name = "q", .shape = "B H Tq D", .levels = LOCUS_ATTEND, .required = 1},
    {.name = "k", .shape = "B Hk Tk D", .levels = LOCUS_ATTEND, .required = 1},
    {.name = "v", .shape = "B Hk Tk Dv", .levels = LOCUS_ATTEND, .required = 1},
    {.name = "bias_dense", .shape = "1|B 1|H Tq Tk", .levels = LOCUS_BOTH},
    {.name = "key_mask", .shape = "B Tk", .levels = LOCUS_BOTH},
    {.name = "mask", .shape = "1|B 1|H Tq Tk", .levels = LOCUS_BOTH},
    {.name = "x", .shape = "B T E", .levels = LOCUS_LAYER, .required = 1},
    {.name = "memory", .shape = "B M E", .levels = LOCUS_LAYER},
    {.name = "w_q", .shape = "HD E", .levels = LOCUS_LAYER, .required = 1},
    {.name = "w_k", .shape = "HD E", .levels = LOCUS_LAYER, .required = 1},
    {.name = "w_v", .shape = "HD E", .levels = LOCUS_LAYER, .required = 1},
    {.name = "w_o", .shape = "E HD", .levels = LOCUS_LAYER},
    {.name = "b_q", .shape = "HD", .levels = LOCUS_LAYER},
    {.name = "b_k", .shape = "HD", .levels = LOCUS_LAYER},
    {.name = "b_v", .shape = "HD", .levels = LOCUS_LAYER},
    {.name = "b_o", .shape = "E", .levels = LOCUS_LAYER},
    LOCUS_TENSOR_END,
};

const locus_tensor_info *locus_common_tensors(void) { return common; }

/* ---- dimensions ---- */

static locus_status need_rank(const locus_tensor *t, const char *name, uint32_t rank,
                              locus_error *error)
{
    if (!locus_present(t)) return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is missing", name);
    if (t->rank != rank)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %u axes, expected %u", name,
                          (unsigned)t->rank, (unsigned)rank);
    return LOCUS_OK;
}

static locus_status read_attend_dims(locus_call *call, const locus_tensors *s, locus_error *error)
{
    LOCUS_TRY(need_rank(&s->q, "q", 4, error));
    LOCUS_TRY(need_rank(&s->k, "k", 4, error));
    LOCUS_TRY(need_rank(&s->v, "v", 4, error));
    call->B = s->q.shape[0];
    call->H = s->q.shape[1];
    call->Tq = s->q.shape[2];
    call->D = s->q.shape[3];
    call->Hk = s->k.shape[1];
    call->Tk = s->k.shape[2];
    call->Dv = s->v.shape[3];
    if (call->Hk == 0 ? call->H != 0 : call->H % call->Hk != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor q: found %" PRId64 " heads beside %" PRId64
                          " of k, expected a multiple",
                          call->H, call->Hk);
    return LOCUS_OK;
}

static locus_status read_layer_dims(locus_call *call, const locus_config *config,
                                    const locus_tensors *s, locus_error *error)
{
    LOCUS_TRY(need_rank(&s->x, "x", 3, error));
    LOCUS_TRY(need_rank(&s->w_q, "w_q", 2, error));
    if (locus_present(&s->memory)) LOCUS_TRY(need_rank(&s->memory, "memory", 3, error));
    call->B = s->x.shape[0];
    call->T = call->Tq = s->x.shape[1];
    call->E = s->x.shape[2];
    call->M = locus_present(&s->memory) ? s->memory.shape[1] : 0;
    call->Tk = call->M + call->T;
    call->H = call->Hk = config->heads;
    if (config->heads == 0)
        return locus_fail(error, LOCUS_ERR_OPTION, "heads: found 0, expected at least 1");
    if (s->w_q.shape[0] % call->H != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor w_q: found %" PRId64 " rows, expected a multiple of %" PRId64
                          " heads",
                          s->w_q.shape[0], call->H);
    call->D = call->Dv = s->w_q.shape[0] / call->H;
    return LOCUS_OK;
}

static locus_status check_limits(const locus_call *call, locus_error *error)
{
    const int layer = call->level == LOCUS_LAYER;
    const struct {
        const char *tensor, *what;
        int64_t value, most;
    } limits[] = {
        {layer ? "x" : "q", "batch", call->B, MAX_OTHER},
        {layer ? "w_q" : "q", "heads", call->H, MAX_OTHER},
        {layer ? "w_k" : "k", "KV heads", call->Hk, MAX_OTHER},
        {layer ? "x" : "q", "rows", call->Tq, MAX_ROWS},
        {layer ? "memory" : "k", "rows (with those of x, in a layer)", call->Tk, MAX_ROWS},
        {layer ? "w_q" : "q", "head width", call->D, MAX_WIDTH},
        {layer ? "w_v" : "v", "width", call->Dv, MAX_WIDTH},
        {"x", "width", call->E, MAX_OTHER},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].most)
            return locus_fail(error, LOCUS_ERR_TENSOR,
                              "tensor %s: found %" PRId64 " %s, expected 0..%" PRId64,
                              limits[i].tensor, limits[i].value, limits[i].what, limits[i].most);
    return LOCUS_OK;
}

/* ---- shapes against declarations ---- */

/* The extent that one token of a shape stands for; -1: the scheme checks it itself. */
static int64_t extent(const locus_call *call, const char *token, size_t length)
{
    const struct {
        const char *token;
        int64_t value;
    } known[] = {
        {"B", call->B},
        {"H", call->H},
        {"Hk", call->Hk},
        {"Tq", call->Tq},
        {"Tk", call->Tk},
        {"D", call->D},
        {"Dv", call->Dv},
        {"E", call->E},
        {"T", call->T},
        {"M", call->M},
        {"HD", call->H * call->D},
        {"R", call->R},
        {"2", 2},
        {"buckets", call->options.buckets},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].token) == length && memcmp(known[i].token, token, length) == 0)
            return known[i].value;
    return -1;
}

static int axis_fits(const locus_call *call, const char *token, size_t length, int64_t found)
{
    if (length > 2 && memcmp(token, "1|", 2) == 0)
        return found == 1 || found == extent(call, token + 2, length - 2);
    if (length > 2 && memcmp(token, ">=", 2) == 0)
        return call->level != LOCUS_LAYER || found >= call->T;
    const int64_t wanted = extent(call, token, length);
    return wanted < 0 || found == wanted;
}

/* "[3,16,8]" */
static const char *shape_text(const locus_tensor *t, char *text, size_t capacity)
{
    size_t used = 0;
    for (uint32_t i = 0; i < t->rank && used < capacity; i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, i == 0 ? "[" : ",",
                                 t->shape[i]);
    if (used < capacity) snprintf(text + used, capacity - used, "]");
    return text;
}

/* "[3,16,8] (H R D)": the extents that are known, beside their names. */
static const char *wanted_text(const locus_call *call, const char *shape, char *text,
                               size_t capacity)
{
    size_t used = 0;
    for (const char *token = shape; *token != '\0' && used < capacity;) {
        const size_t length = strcspn(token, " ");
        const int64_t value = extent(call, token, length);
        const char *mark = token == shape ? "[" : ",";
        used += value >= 0
                    ? (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, mark, value)
                    : (size_t)snprintf(text + used, capacity - used, "%s%.*s", mark, (int)length,
                                       token);
        token += length + (token[length] == ' ');
    }
    if (used < capacity) snprintf(text + used, capacity - used, "] (%s)", shape);
    return text;
}

static int shape_fits(const locus_call *call, const locus_tensor *t, const char *shape)
{
    uint32_t axis = 0;
    for (const char *token = shape; *token != '\0'; axis++) {
        const size_t length = strcspn(token, " ");
        if (axis >= t->rank || !axis_fits(call, token, length, t->shape[axis])) return 0;
        token += length + (token[length] == ' ');
    }
    return axis == t->rank;
}

static int strides_fit(const locus_tensor *t)
{
    if (t->rank == 0) return 1;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->stride[i] < 0) return 0;
    return t->dtype == LOCUS_U8 || t->shape[t->rank - 1] <= 1 || t->stride[t->rank - 1] == 1;
}

static locus_status check_tensor(const locus_call *call, const locus_tensor_info *info,
                                 const locus_tensor *t, locus_error *error)
{
    if (!locus_present(t))
        return info->required
                   ? locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is missing", info->name)
                   : LOCUS_OK;
    const int is_mask = strcmp(info->name, "mask") == 0 || strcmp(info->name, "key_mask") == 0;
    if ((t->dtype == LOCUS_U8) != is_mask)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found %s, expected %s", info->name,
                          t->dtype == LOCUS_U8 ? "U8" : "a floating type",
                          is_mask ? "U8" : "a floating type");
    if (!shape_fits(call, t, info->shape)) {
        char found[96], wanted[128];
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found shape %s, expected %s",
                          info->name, shape_text(t, found, sizeof found),
                          wanted_text(call, info->shape, wanted, sizeof wanted));
    }
    if (!strides_fit(t))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor %s: found strides that are negative or not 1 on the last axis",
                          info->name);
    return LOCUS_OK;
}

static const locus_tensor_info *find_info(const locus_tensor_info *list, uint32_t level,
                                          const char *name)
{
    for (; list->name != NULL; list++)
        if ((list->levels & level) != 0 && strcmp(list->name, name) == 0) return list;
    return NULL;
}

static locus_status check_tensors(const locus_call *call, const locus_tensor_info *list,
                                  const locus_tensors *shapes, locus_error *error)
{
    for (; list->name != NULL; list++) {
        if ((list->levels & call->level) == 0) continue;
        const int index = locus_tensor_index(list->name);
        LOCUS_TRY(check_tensor(call, list, locus_tensor_at_const(shapes, (size_t)index), error));
    }
    return LOCUS_OK;
}

static locus_status refuse_strangers(const locus_call *call, const locus_tensors *shapes,
                                     locus_error *error)
{
    const locus_scheme_info *info = &call->scheme->info;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const char *name = locus_tensor_name(i);
        if (!locus_present(locus_tensor_at_const(shapes, i))) continue;
        if (find_info(common, call->level, name) || find_info(info->tensors, call->level, name))
            continue;
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is not known to scheme %s (%s)", name,
                          info->name, call->level == LOCUS_LAYER ? "layer" : "attend");
    }
    if (locus_present(&shapes->b_o) && !locus_present(&shapes->w_o))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor b_o: found without w_o, expected both");
    if (call->scheme->embed != NULL && locus_present(&shapes->memory))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor memory: found, but scheme %s takes none (absolute positions)",
                          info->name);
    return LOCUS_OK;
}

/* ---- options ---- */

static double option_value(const locus_options *options, const locus_option_info *info)
{
    const char *field = (const char *)options + info->offset;
    if (info->kind == LOCUS_OPTION_REAL) {
        double value;
        memcpy(&value, field, sizeof value);
        return value;
    }
    int64_t value;
    memcpy(&value, field, sizeof value);
    return (double)value;
}

static locus_status check_options(const locus_call *call, locus_error *error)
{
    for (const locus_option_info *o = call->scheme->info.options; o->name != NULL; o++) {
        const double value = option_value(&call->options, o);
        /* a default may stand outside the range that text must keep: rope's width 0 is D */
        const int allowed = (value >= o->minimum && value <= o->maximum) || value == o->preset;
        if ((o->levels & call->level) != 0 && !allowed)
            return locus_fail(error, LOCUS_ERR_OPTION,
                              "option %s: found %.15g, expected %.15g..%.15g", o->name, value,
                              o->minimum, o->maximum);
    }
    return LOCUS_OK;
}

static locus_status check_config(const locus_config *config, locus_error *error)
{
    if (config->size != sizeof *config || config->options.size != sizeof config->options)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "config: found size %u, expected %u (use locus_config_init)",
                          (unsigned)config->size, (unsigned)sizeof *config);
    if (config->window_left < -1 || config->window_right < -1)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "window: found %" PRId64 " and %" PRId64 ", expected -1 or more",
                          config->window_left, config->window_right);
    if (config->causal > 1)
        return locus_fail(error, LOCUS_ERR_OPTION, "causal: found %u, expected 0 or 1",
                          (unsigned)config->causal);
    if (config->offset_given &&
        (config->query_offset < -max_offset || config->query_offset > max_offset))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "query_offset: found %" PRId64 ", expected -2^31..2^31",
                          config->query_offset);
    if (config->scale_given && !isfinite(config->scale))
        return locus_fail(error, LOCUS_ERR_OPTION, "scale: found %g, expected a finite number",
                          config->scale);
    if (!(config->dropout >= 0.0 && config->dropout < 1.0))
        return locus_fail(error, LOCUS_ERR_OPTION, "dropout: found %g, expected [0, 1)",
                          config->dropout);
    if (config->path != NULL && strcmp(config->path, "tiles") != 0 &&
        strcmp(config->path, "rows") != 0)
        return locus_fail(error, LOCUS_ERR_OPTION, "path: found another, expected tiles or rows");
    if (config->threads > MAX_THREADS)
        return locus_fail(error, LOCUS_ERR_OPTION, "threads: found %u, expected at most %d",
                          (unsigned)config->threads, MAX_THREADS);
    return LOCUS_OK;
}

/* Pairs exist for delta in [offset - (Tk-1), offset + Tq-1]; causal keeps delta >= 0,
 * the window keeps -right <= delta <= left. */
static void find_distances(locus_call *call, const locus_config *config)
{
    call->least = call->query_offset - (call->Tk - 1);
    call->most = call->query_offset + call->Tq - 1;
    if (config->causal && call->least < 0) call->least = 0;
    if (config->window_right >= 0 && call->least < -config->window_right)
        call->least = -config->window_right;
    if (config->window_left >= 0 && call->most > config->window_left)
        call->most = config->window_left;
    if (call->Tq == 0 || call->Tk == 0) call->most = call->least - 1;
}

locus_status locus_call_resolve(locus_call *call, uint32_t level, const locus_config *config,
                                const locus_tensors *shapes, locus_error *error)
{
    LOCUS_TRY(check_config(config, error));
    const locus_scheme *scheme = locus_scheme_lookup(config->scheme);
    if (scheme == NULL) return locus_unknown_scheme(config->scheme, error);
    const locus_call fresh = {
        .scheme = scheme,
        .level = level,
        .options = config->options,
        .R = -1,
        .dropout = config->dropout,
        .dropout_seed = config->dropout_seed,
        .threads = config->threads,
    };
    *call = fresh;

    LOCUS_TRY(level == LOCUS_LAYER ? read_layer_dims(call, config, shapes, error)
                                   : read_attend_dims(call, shapes, error));
    LOCUS_TRY(check_limits(call, error));
    LOCUS_TRY(refuse_strangers(call, shapes, error));
    LOCUS_TRY(check_options(call, error));
    LOCUS_TRY(check_tensors(call, common, shapes, error));
    call->query_offset = config->offset_given ? config->query_offset : call->Tk - call->Tq;
    find_distances(call, config);

    /* Twice: the first pass proves ranks before the scheme reads extents, the second
     * knows R. */
    LOCUS_TRY(check_tensors(call, scheme->info.tensors, shapes, error));
    if (scheme->check != NULL) LOCUS_TRY(scheme->check(call, shapes, error));
    LOCUS_TRY(check_tensors(call, scheme->info.tensors, shapes, error));

    /* At D = 0 every product is an empty sum, which no scale may turn into 0 * inf. */
    call->scale = config->scale_given ? config->scale
                  : call->D == 0      ? 1.0
                                      : scheme->default_scale(call, shapes);
    return LOCUS_OK;
}

void locus_call_inner(locus_call *inner, const locus_call *outer)
{
    *inner = *outer;
    inner->level = LOCUS_ATTEND;
}
