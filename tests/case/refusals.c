/* SPDX-License-Identifier: Apache-2.0 */

/* Every rule of a case file, broken once, refused by name. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/draft.h"
#include "support/check.h"

void test_refusals(void);

/* ---- good cases to break ---- */

#define DIMS .B = 2, .H = 2, .Tq = 3, .Tk = 5, .D = 4, .seed = 3
static const test_spec attend = {
    .scheme = "none", .level = LOCUS_ATTEND, DIMS, .with = "mask:11 key_mask"};
static const test_spec layer = {.scheme = "none", .level = LOCUS_LAYER, DIMS, .E = 6};
static const test_spec shaw = {
    .scheme = "shaw", .level = LOCUS_ATTEND, DIMS, .settings = "clip_left=2 clip_right=1"};
static const test_spec tupe = {.scheme = "tupe", .level = LOCUS_ATTEND, DIMS};
static const test_spec t5 = {.scheme = "t5", .level = LOCUS_ATTEND, DIMS};
static const test_spec t5_odd = {
    .scheme = "t5", .level = LOCUS_ATTEND, DIMS, .settings = "buckets=5 bidirectional=0"};
static const test_spec rope = {
    .scheme = "rope", .level = LOCUS_ATTEND, DIMS, .settings = "pairing=half"};
static const test_spec xl = {.scheme = "transformer_xl", .level = LOCUS_ATTEND, DIMS};
static const test_spec xl_layer = {
    .scheme = "transformer_xl", .level = LOCUS_LAYER, DIMS, .E = 6, .settings = "table=half"};
static const test_spec sinusoidal = {.scheme = "sinusoidal",
                                     .level = LOCUS_LAYER,
                                     .B = 2,
                                     .H = 2,
                                     .Tq = 3,
                                     .Tk = 3,
                                     .D = 4,
                                     .E = 6,
                                     .settings = "table=paper"};
static const test_spec deberta = {.scheme = "deberta",
                                  .level = LOCUS_LAYER,
                                  .B = 2,
                                  .H = 2,
                                  .Tq = 3,
                                  .Tk = 3,
                                  .D = 4,
                                  .E = 6,
                                  .settings = "span=4"};
static const test_spec relative = {.scheme = "relative_key", .level = LOCUS_ATTEND, DIMS};

/* ---- verdicts ---- */

static void expect_refused(const char *path, locus_status status, const char *words)
{
    locus_case *loaded = (locus_case *)(void *)&loaded;
    locus_error error = {""};
    const locus_status found = locus_case_load(&loaded, path, NULL, &error);
    CHECK(found == status, "found %s (%s), expected %s", locus_status_text(found), error.text,
          locus_status_text(status));
    CHECK(loaded == NULL, "a refused case came out");
    CHECK(strncmp(error.text, path, strlen(path)) == 0 && error.text[strlen(path)] == ':',
          "\"%s\" does not begin with the path", error.text);
    CHECK(strstr(error.text, words) != NULL, "\"%s\" does not say \"%s\"", error.text, words);
    CHECK(strchr(error.text, '\n') == NULL, "more than one line");
    CHECK(locus_case_load(&loaded, path, NULL, NULL) == status, "another verdict without error");
    if (found == LOCUS_OK) locus_case_free(loaded);
}

static void expect_draft_refused(const draft *d, locus_status status, const char *words)
{
    expect_refused(draft_write(d, "refused.safetensors"), status, words);
}

static void expect_accepted(const draft *d)
{
    locus_case *loaded = NULL;
    locus_error error = {""};
    CHECK(locus_case_load(&loaded, draft_write(d, "good.safetensors"), NULL, &error) == LOCUS_OK,
          "%s", error.text);
    locus_case_free(loaded);
}

/* ---- one key: its value, or NULL to leave it out ---- */

typedef struct bad_key {
    const test_spec *spec;
    const char *key, *value;
    locus_status status;
    const char *words;
} bad_key;

static const bad_key bad_keys[] = {
    {&attend, "format", NULL, LOCUS_ERR_FORMAT, "metadata key format is missing"},
    {&attend, "format", "locus.case/2", LOCUS_ERR_FORMAT, "found \"locus.case/2\""},
    {&attend, "kind", NULL, LOCUS_ERR_FORMAT, "metadata key kind is missing"},
    {&attend, "kind", "model", LOCUS_ERR_FORMAT, "expected attend or layer"},
    {&attend, "scheme", NULL, LOCUS_ERR_FORMAT, "metadata key scheme is missing"},
    {&attend, "scheme", "rotary\n", LOCUS_ERR_SCHEME, "\"rotary\\x0A\""},
    {&attend, "casual", "1", LOCUS_ERR_OPTION, "\"casual\" is not known to scheme none (attend)"},
    {&attend, "bad\x1b[31m", "1", LOCUS_ERR_OPTION, "\"bad\\x1B[31m\""},
    {&attend, "buckets", "32", LOCUS_ERR_OPTION, "\"buckets\" is not known"},
    {&attend, "causal", "2", LOCUS_ERR_OPTION, "metadata key causal: found \"2\""},
    {&attend, "causal", "true", LOCUS_ERR_OPTION, "expected 0 or 1"},
    {&attend, "causal", "", LOCUS_ERR_OPTION, "causal"},
    {&attend, "causal", "01", LOCUS_ERR_OPTION, "causal"},
    {&attend, "causal", "+1", LOCUS_ERR_OPTION, "causal"},
    {&attend, "causal", " 1", LOCUS_ERR_OPTION, "causal"},
    {&attend, "causal", "1 ", LOCUS_ERR_OPTION, "causal"},
    {&attend, "causal", "-0", LOCUS_ERR_OPTION, "causal"},
    {&attend, "causal", "4294967297", LOCUS_ERR_OPTION, "causal"},
    {&attend, "window_left", "-2", LOCUS_ERR_OPTION, "window_left"},
    {&attend, "window_left", "1.0", LOCUS_ERR_OPTION, "window_left"},
    {&attend, "window_right", "9999999999999999999", LOCUS_ERR_OPTION, "window_right"},
    {&attend, "query_offset", "0x10", LOCUS_ERR_OPTION, "query_offset"},
    {&attend, "query_offset", "2147483649", LOCUS_ERR_OPTION, "query_offset"},
    {&attend, "scale", "inf", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "nan", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "0x1p3", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "1e999", LOCUS_ERR_OPTION, "expected a finite decimal number"},
    {&attend, "scale", "1.", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", ".5", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "1e", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "-", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "0,5", LOCUS_ERR_OPTION, "scale"},
    {&attend, "scale", "", LOCUS_ERR_OPTION, "scale"},
    {&attend, "dropout", "1", LOCUS_ERR_OPTION, "expected a number in [0, 1)"},
    {&attend, "dropout", "-0.1", LOCUS_ERR_OPTION, "dropout"},
    {&attend, "dropout_seed", "18446744073709551616", LOCUS_ERR_OPTION, "dropout_seed"},
    {&attend, "dropout_seed", "-1", LOCUS_ERR_OPTION, "dropout_seed"},
    {&attend, "tolerance", "0", LOCUS_ERR_OPTION, "tolerance"},
    {&attend, "tolerance", "0.0101", LOCUS_ERR_OPTION, "tolerance"},
    {&attend, "tolerance_grad", "-1e-4", LOCUS_ERR_OPTION, "tolerance_grad"},
    {&attend, "tolerance_grad", "1e-4x", LOCUS_ERR_OPTION, "tolerance_grad"},
    {&attend, "grad", "2", LOCUS_ERR_OPTION, "metadata key grad"},
    {&attend, "grad", "0", LOCUS_ERR_TENSOR, "tensor dout: found beside grad = 0"},
    {&attend, "heads", "3", LOCUS_ERR_OPTION, "metadata key heads: found 3, expected 2"},
    {&attend, "heads", "0", LOCUS_ERR_OPTION, "metadata key heads"},
    {&layer, "heads", NULL, LOCUS_ERR_OPTION, "metadata key heads is missing"},
    {&layer, "heads", "0", LOCUS_ERR_OPTION, "metadata key heads"},
    {&layer, "heads", "3", LOCUS_ERR_TENSOR, "tensor w_q"},
    {&layer, "heads", "2.0", LOCUS_ERR_OPTION, "metadata key heads"},
    {&shaw, "clip_left", NULL, LOCUS_ERR_OPTION, "metadata key clip_left is missing"},
    {&shaw, "clip_right", "-1", LOCUS_ERR_OPTION, "option clip_right"},
    {&shaw, "clip_right", "2", LOCUS_ERR_TENSOR, "tensor rel_k: found shape [4,4]"},
    {&t5, "buckets", "31", LOCUS_ERR_TENSOR, "tensor bias: found shape [32,2], expected [31,2]"},
    {&t5_odd, "bidirectional", "1", LOCUS_ERR_OPTION, "option buckets: found 5"},
    {&t5, "max_distance", "8", LOCUS_ERR_OPTION, "option max_distance"},
    {&t5, "bidirectional", "yes", LOCUS_ERR_OPTION, "option bidirectional"},
    {&rope, "pairing", NULL, LOCUS_ERR_OPTION, "metadata key pairing is missing"},
    {&rope, "pairing", "halves", LOCUS_ERR_OPTION, "expected half or interleaved"},
    {&rope, "width", "3", LOCUS_ERR_OPTION, "option width"},
    {&rope, "table", "half", LOCUS_ERR_OPTION, "\"table\" is not known"},
    {&xl, "delta_min", NULL, LOCUS_ERR_OPTION, "metadata key delta_min is missing"},
    {&xl, "delta_min", "0", LOCUS_ERR_RANGE, "tensor rel_k"},
    {&xl_layer, "table", NULL, LOCUS_ERR_OPTION, "metadata key table is missing"},
    {&xl_layer, "table", "t2t", LOCUS_ERR_OPTION, "expected half or paper"},
    {&xl_layer, "delta_min", "0", LOCUS_ERR_OPTION, "\"delta_min\" is not known"},
    {&sinusoidal, "table", NULL, LOCUS_ERR_OPTION, "metadata key table is missing"},
    {&sinusoidal, "x_scale", "big", LOCUS_ERR_OPTION, "option x_scale"},
    {&deberta, "span", NULL, LOCUS_ERR_OPTION, "metadata key span is missing"},
    {&deberta, "c2p", "0", LOCUS_ERR_TENSOR, "tensor w_rk"},
    {&deberta, "span", "5", LOCUS_ERR_TENSOR, "tensor rel: found shape [8,6]"},
    {&relative, "query_offset", "9", LOCUS_ERR_RANGE, "tensor rel_k"},
};

static void test_keys(void)
{
    for (size_t i = 0; i < sizeof bad_keys / sizeof *bad_keys; i++) {
        const bad_key *row = &bad_keys[i];
        if (!check_begin("case/refused/%s/%s/%d", row->spec->scheme, row->key, (int)i)) continue;
        draft *d = draft_new(row->spec, 1, 0);
        expect_accepted(d);
        draft_set(d, row->key, row->value);
        expect_draft_refused(d, row->status, row->words);
        draft_free(d);
    }
}

/* ---- tensors ---- */

static const float zeros[4096];

/* Change tensor `name`: drop it, or give it another type or shape. */
typedef struct bad_tensor {
    const test_spec *spec;
    const char *name;
    const char *dtype; /* NULL: drop the tensor */
    uint32_t rank;
    uint64_t shape[5];
    const char *words;
} bad_tensor;

static const bad_tensor bad_tensors[] = {
    {&attend, "q", NULL, 0, {0}, "tensor q is missing"},
    {&attend, "v", NULL, 0, {0}, "tensor v is missing"},
    {&attend, "dout", NULL, 0, {0}, "tensor dout is missing"},
    {&attend,
     "dout",
     "F32",
     4,
     {2, 2, 3, 5},
     "tensor dout: found shape [2,2,3,5], expected [2,2,3,4]"},
    {&attend, "dout", "F32", 3, {2, 2, 12}, "tensor dout: found shape [2,2,12]"},
    {&attend, "dout", "F64", 4, {2, 2, 3, 4}, "tensor dout: found F64, expected F32"},
    {&attend, "q", "F64", 4, {2, 2, 3, 4}, "tensor q: found F64, expected F32"},
    {&attend, "q", "I32", 4, {2, 2, 3, 4}, "tensor q: found I32, expected F32 or F16 or BF16"},
    {&attend, "q", "F32", 3, {4, 3, 4}, "tensor q: found 3 axes"},
    {&attend, "q", "F32", 0, {0}, "tensor q: found no axes"},
    {&attend, "q", "F32", 5, {1, 2, 2, 3, 4}, "tensor q: found more than 4 axes"},
    {&attend, "k", "F32", 4, {2, 2, 5, 3}, "tensor k: found shape [2,2,5,3], expected [2,2,5,4]"},
    {&attend, "mask", "F32", 4, {1, 1, 3, 5}, "tensor mask: found F32, expected U8"},
    {&attend, "mask", "BOOL", 4, {1, 1, 3, 5}, "tensor mask: found BOOL, expected U8"},
    {&attend, "key_mask", "U8", 2, {2, 4}, "tensor key_mask: found shape [2,4]"},
    {&attend, "kk", "F32", 1, {1}, "tensor \"kk\" is unknown"},
    {&attend, "a\x01", "F32", 1, {1}, "tensor \"a\\x01\" is unknown"},
    {&attend, "grad.q", "F32", 1, {1}, "tensor \"grad.q\" is unknown"},
    {&attend, "wanted.out", "F64", 1, {1}, "tensor \"wanted.out\" is unknown"},
    {&attend, "want.out", "F16", 1, {1}, "tensor want.out: found F16, expected F32 or F64"},
    {&attend, "want.out", "F64", 0, {0}, "tensor want.out: found no axes"},
    {&attend, "want.what", "F64", 5, {1, 1, 1, 1, 1}, "tensor want.what: found more than 4 axes"},
    {&attend, "x", "F32", 3, {1, 1, 1}, "tensor x is not known to scheme none (attend)"},
    {&attend, "bias", "F32", 2, {1, 1}, "tensor bias is not known to scheme none"},
    {&layer, "w_q", NULL, 0, {0}, "tensor w_q is missing"},
    {&layer, "w_o", NULL, 0, {0}, "tensor b_o: found without w_o"},
    {&layer, "w_v", "F32", 2, {6, 6}, "tensor w_v: found shape [6,6], expected [8,6]"},
    {&layer, "memory", "F32", 3, {1, 2, 6}, "tensor memory: found shape [1,2,6]"},
    {&layer, "q", "F32", 4, {2, 2, 3, 4}, "tensor q is not known to scheme none (layer)"},
    {&sinusoidal, "memory", "F32", 3, {2, 2, 6}, "tensor memory"},
    {&tupe, "pos_q", "F32", 3, {2, 4, 4}, "tensor pos_q: found rows for positions 0..3"},
    {&relative, "rel_k", "F32", 2, {4, 4}, "tensor rel_k: found 4 rows"},
};

static void test_tensors(void)
{
    for (size_t i = 0; i < sizeof bad_tensors / sizeof *bad_tensors; i++) {
        const bad_tensor *row = &bad_tensors[i];
        if (!check_begin("case/refused/%s/tensor/%d", row->spec->scheme, (int)i)) continue;
        draft *d = draft_new(row->spec, 1, 0);
        expect_accepted(d);
        if (draft_at(d, row->name) != NULL) draft_drop(d, row->name);
        if (row->dtype != NULL) draft_add(d, row->name, row->dtype, row->rank, row->shape, zeros);
        const locus_status status =
            strstr(row->words, "positions") != NULL ? LOCUS_ERR_RANGE : LOCUS_ERR_TENSOR;
        expect_draft_refused(d, status, row->words);
        draft_free(d);
    }
}

/* An option that belongs to a tensor, without the tensor. */
static void test_with(void)
{
    static const char *const keys[] = {"buckets", "max_distance", "bidirectional"};
    for (size_t i = 0; i < 3; i++) {
        if (!check_begin("case/refused/tupe/with/%s", keys[i])) continue;
        draft *d = draft_new(&tupe, 1, 0);
        draft_drop(d, "bias");
        expect_accepted(d);
        draft_set(d, keys[i], i == 2 ? "1" : "32");
        char words[64];
        snprintf(words, sizeof words, "metadata key %s: found without tensor bias", keys[i]);
        expect_draft_refused(d, LOCUS_ERR_OPTION, words);
        draft_free(d);
    }
}

static void test_masks(void)
{
    static const struct {
        const char *name;
        int64_t at;
        uint8_t value;
        const char *words;
    } rows[] = {
        {"mask", 7, 2, "tensor mask: found 2 at [0,0,1,2], expected 0 or 1"},
        {"mask", 14, 255, "tensor mask: found 255 at [0,0,2,4]"},
        {"key_mask", 5, 3, "tensor key_mask: found 3 at [1,0]"},
    };
    for (size_t i = 0; i < 3; i++) {
        if (!check_begin("case/refused/masks/%d", (int)i)) continue;
        draft *d = draft_new(&attend, 1, 0);
        const locus_tensors *in = &d->problem->in[1];
        ((uint8_t *)(rows[i].name[0] == 'k' ? in->key_mask : in->mask).data)[rows[i].at] =
            rows[i].value;
        expect_draft_refused(d, LOCUS_ERR_TENSOR, rows[i].words);
        draft_free(d);
    }
}

/* A file that is no safetensors file, no file, and NULL. */
static void test_files(void)
{
    if (!check_begin("case/refused/files")) return;
    locus_case *loaded = NULL;
    locus_error error = {""};
    const char *path = folder_path("broken");
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fputs("not a case", file) >= 0 && fclose(file) == 0, "can not write");
    expect_refused(path, LOCUS_ERR_FORMAT, "");
    expect_refused(folder_path("nothing here"), LOCUS_ERR_IO, "");
    CHECK(locus_case_load(NULL, path, NULL, &error) == LOCUS_ERR_ARGUMENT, "accepted");
    CHECK(locus_case_load(&loaded, NULL, NULL, &error) == LOCUS_ERR_ARGUMENT, "accepted");
    CHECK(locus_case_run(NULL, NULL, &error) == LOCUS_ERR_ARGUMENT, "accepted");
    locus_case_free(NULL);
}

/* Results that no machine can hold, from a file of a few hundred bytes. */
static void test_huge(void)
{
    if (!check_begin("case/refused/huge")) return;
    draft *d = draft_new(&attend, 0, 0);
    static const uint64_t many[] = {1 << 24, 1 << 19, 1 << 16, 0};
    static const uint64_t keys[] = {1 << 24, 1 << 19, 0, 0}, values[] = {1 << 24, 1 << 19, 0, 1024};
    d->tensor_count = 0;
    draft_add(d, "q", "F32", 4, many, NULL);
    draft_add(d, "k", "F32", 4, keys, NULL);
    draft_add(d, "v", "F32", 4, values, NULL);
    expect_draft_refused(d, LOCUS_ERR_MEMORY, "");
    draft_free(d);
}

void test_refusals(void)
{
    test_keys();
    test_tensors();
    test_with();
    test_masks();
    test_files();
    test_huge();
}
