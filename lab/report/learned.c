/* SPDX-License-Identifier: Apache-2.0 */
/* What a scheme has learned: the first layer of a trained language model becomes a case file,
 * DIR/learned/SCHEME.safetensors, and the picture code draws it, as `locus plot --case` would. */
#include <locus/picture.h>
#include <locus/tensorfile.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/print.h"
#include "io/system.h"
#include "io/tensorfile.h"
#include "lab/report/sheet.h"

enum { WORDS = 24, BEGIN = 256, TENSORS = 8, PAIRS = 4, LAYERS_DRAWN = 8 };

/* What is read, byte by byte, behind a token that begins it. */
static const char sentence[WORDS] = "It is a truth universal";

/* A scheme, how its case is described, and which pictures show what it learned. */
typedef struct lesson {
    const char *scheme, *what, *caption;
    const char *tensors[TENSORS]; /* "name": of the layer; "+name": shared by all */
    const char *options[2 * PAIRS];
    int plain_scale; /* 1: the lab scales by 1/sqrt(D), which is not the scheme's own */
} lesson;

static const lesson lessons[] = {
    {"t5",
     "bias",
     "What each head adds to the score at each distance, as it was learned.",
     {"+bias"},
     {"buckets", "32", "max_distance", "128", "bidirectional", "0"},
     1},
    {"kerple", "bias", "The curve that each head has learned.", {"a", "p"}, {"form", "log"}, 0},
    {"alibi",
     "bias",
     "Nothing is learned here: the slopes are given, one per head.",
     {NULL},
     {NULL},
     0},
    {"transformer_xl",
     "terms",
     "The score of each pair, term by term.",
     {"w_r", "u", "w"},
     {"table", "half"},
     0},
    {"deberta",
     "terms",
     "The score of each pair, term by term.",
     {"+rel"},
     {"span", "32", "buckets", "32", "max_distance", "128"},
     0},
    {"tupe",
     "terms",
     "The score of each pair, term by term.",
     {"+pos", "+w_pq", "+w_pk"},
     {NULL},
     0},
};
enum { LESSONS = sizeof lessons / sizeof *lessons };

/* ---- a checkpoint ---- */

/* A tensor of floats that lives with the chart; NULL: not there, or not floats. */
static const float *read_tensor(lab_chart *c, const locus_file *file, const char *name,
                                const locus_file_tensor **found)
{
    const locus_file_tensor *tensor = locus_file_find(file, name);
    *found = tensor;
    if (tensor == NULL || strcmp(tensor->dtype, "F32") != 0) return NULL;
    float *data = locus_arena_take(&c->arena, (size_t)(tensor->end - tensor->begin) + 1, 16);
    for (size_t i = 0; data != NULL && i < locus_file_count(file); i++)
        if (locus_file_tensor_at(file, i) == tensor &&
            locus_file_read(file, i, 0, tensor->end - tensor->begin, data, NULL) == LOCUS_OK)
            return data;
    return NULL;
}

/* The checkpoint of the first finished run of a scheme on text; NULL: none. */
static locus_file *open_checkpoint(const lab_results *r, const char *scheme)
{
    const int32_t task = lab_task_index(r, "text"), index = lab_scheme_index(r, scheme);
    for (size_t i = 0; task >= 0 && index >= 0 && i < r->run_count; i++) {
        const lab_run *run = &r->runs[i];
        char path[LAB_PATH];
        locus_file *file = NULL;
        if (run->task != task || run->scheme != index || !run->finished) continue;
        const int length =
            snprintf(path, sizeof path, "%s/runs/text/%s/seed%d/checkpoint.safetensors", r->folder,
                     scheme, (int)run->seed);
        if (length < LAB_PATH && locus_system_exists(path) &&
            locus_file_open(&file, path, NULL, NULL) == LOCUS_OK) {
            if (locus_file_check_sum(file, NULL) == LOCUS_OK) return file;
            locus_file_close(file);
        }
    }
    return NULL;
}

/* ---- the case ---- */

static int is_vector(const locus_file_tensor *tensor, uint64_t extent)
{
    return tensor->rank == 1 && tensor->shape[0] == extent;
}

/* x = LN1(embed[token] sqrt(E)): what the first layer's attention reads. */
static float *make_input(lab_chart *c, const locus_file *file, uint64_t *width)
{
    const locus_file_tensor *embed, *gain, *shift;
    const float *rows = read_tensor(c, file, "embed.weight", &embed);
    const float *weight = read_tensor(c, file, "blocks.0.norm1.weight", &gain);
    const float *bias = read_tensor(c, file, "blocks.0.norm1.bias", &shift);
    if (rows == NULL || weight == NULL || bias == NULL || embed->rank != 2 ||
        embed->shape[0] <= BEGIN || !is_vector(gain, embed->shape[1]) ||
        !is_vector(shift, embed->shape[1]))
        return NULL;
    const size_t e = (size_t)embed->shape[1];
    float *x = locus_arena_take(&c->arena, WORDS * e * sizeof *x, 16);
    for (size_t t = 0; x != NULL && t < WORDS; t++) {
        const size_t token = t == 0 ? BEGIN : (unsigned char)sentence[t - 1];
        const float *row = rows + token * e;
        double mean = 0, square = 0;
        for (size_t i = 0; i < e; i++) mean += row[i] * sqrt((double)e) / (double)e;
        for (size_t i = 0; i < e; i++) square += pow(row[i] * sqrt((double)e) - mean, 2);
        const double scale = 1 / sqrt(square / (double)e + 1e-5);
        for (size_t i = 0; i < e; i++)
            x[t * e + i] = (float)((row[i] * sqrt((double)e) - mean) * scale) * weight[i] + bias[i];
    }
    *width = e;
    return x;
}

static int put(locus_file_writer *writer, lab_chart *c, const locus_file *file, const char *name,
               const char *from)
{
    const locus_file_tensor *tensor;
    const float *data = read_tensor(c, file, from, &tensor);
    return data != NULL &&
           locus_file_put(writer, name, "F32", tensor->rank, tensor->shape, data, NULL) == LOCUS_OK;
}

static int put_tensors(locus_file_writer *writer, lab_chart *c, const locus_file *file,
                       const lesson *l)
{
    static const char *const maps[] = {"w_q", "w_k", "w_v", "w_o"};
    char from[LAB_NAME];
    int good = 1;
    for (size_t i = 0; i < 4; i++) {
        snprintf(from, sizeof from, "blocks.0.attn.%s", maps[i]);
        good &= put(writer, c, file, maps[i], from);
    }
    for (size_t i = 0; i < TENSORS && l->tensors[i] != NULL; i++) {
        const char *name = l->tensors[i];
        const int shared = *name == '+';
        snprintf(from, sizeof from, "%s%s", shared ? "shared." : "blocks.0.attn.", name + shared);
        good &= put(writer, c, file, name + shared, from);
    }
    return good;
}

static int put_metadata(locus_file_writer *writer, const lab_results *r, const lesson *l,
                        uint64_t width)
{
    const char *heads = lab_record_text(&r->run, "heads");
    char scale[LAB_NAME];
    const double d = (double)width / (double)lab_record_number(&r->run, "heads");
    const char *const fixed[] = {"format",  "locus.case/1", "kind", "layer",  "scheme",
                                 l->scheme, "heads",        heads,  "causal", "1"};
    int good = 1;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i += 2)
        good &= locus_file_put_metadata(writer, fixed[i], fixed[i + 1], NULL) == LOCUS_OK;
    for (size_t i = 0; i < 2 * PAIRS && l->options[i] != NULL; i += 2)
        good &= locus_file_put_metadata(writer, l->options[i], l->options[i + 1], NULL) == LOCUS_OK;
    locus_print(scale, sizeof scale, "%.17g", 1 / sqrt(d));
    if (l->plain_scale) good &= locus_file_put_metadata(writer, "scale", scale, NULL) == LOCUS_OK;
    return good;
}

/* 0: the checkpoint does not hold what it takes. */
static int write_case(const lab_results *r, const lesson *l, const char *path, locus_file *file)
{
    lab_chart scratch;
    locus_file_writer *writer = NULL;
    uint64_t width = 0;
    int good = 0;
    chart_begin(&scratch, "", "");
    const float *x = make_input(&scratch, file, &width);
    if (x != NULL && locus_file_create(&writer, path, NULL, NULL) == LOCUS_OK) {
        const uint64_t shape[] = {1, WORDS, width};
        good = put_metadata(writer, r, l, width) && put_tensors(writer, &scratch, file, l) &&
               locus_file_put(writer, "x", "F32", 3, shape, x, NULL) == LOCUS_OK;
        if (good)
            good = locus_file_commit(writer, NULL) == LOCUS_OK;
        else
            locus_file_abandon(writer);
    }
    chart_free(&scratch);
    return good;
}

/* ---- pictures ---- */

static int draw_lesson(lab_sheet *sheet, const lesson *l, const char *folder)
{
    char path[LAB_PATH], file_name[LAB_NAME], name[LAB_NAME], caption[512];
    locus_picture_request request;
    locus_picture *picture = NULL;
    snprintf(file_name, sizeof file_name, "%s.safetensors", l->scheme);
    locus_file *file = open_checkpoint(sheet->results, l->scheme);
    const int written = file != NULL && lab_path(path, folder, file_name) &&
                        write_case(sheet->results, l, path, file);
    locus_file_close(file);
    if (!written) return 0;
    locus_picture_request_init(&request, NULL);
    request.what = l->what;
    request.path = path;
    if (locus_picture_new(&picture, &request, NULL) != LOCUS_OK) return 0;
    snprintf(name, sizeof name, "learned-%s", l->scheme);
    snprintf(
        caption, sizeof caption,
        "%s First layer of the language model. <a href=\"learned/%s\" aria-label=\"the layer of "
        "%s as a case file\">Case</a>",
        l->caption, file_name, l->scheme);
    sheet_figure(sheet, name, locus_picture_figure(picture), caption);
    locus_picture_free(picture);
    return 1;
}

/* Norms of the rows of a table; `own`: each layer has one, by distance, and gets a curve. */
static void draw_norms(lab_sheet *sheet, const char *scheme, const char *tensor, const char *title,
                       int own)
{
    locus_file *file = open_checkpoint(sheet->results, scheme);
    lab_chart chart;
    char name[LAB_NAME];
    if (file == NULL) return;
    chart_begin(&chart, title, "Lines of the length of each row of a learned table.");
    for (int layer = 0; layer < LAYERS_DRAWN; layer++) {
        const locus_file_tensor *table;
        if (own)
            snprintf(name, sizeof name, "blocks.%d.attn.%s", layer, tensor);
        else
            snprintf(name, sizeof name, "shared.%s", tensor);
        const float *data = read_tensor(&chart, file, name, &table);
        if (data == NULL || table->rank != 2 || table->shape[1] == 0) break;
        const size_t rows = (size_t)table->shape[0], width = (size_t)table->shape[1];
        double *y = chart_numbers(&chart, rows);
        for (size_t i = 0; y != NULL && i < rows; i++) {
            double sum = 0;
            for (size_t k = 0; k < width; k++) sum += pow(data[i * width + k], 2);
            y[i] = sqrt(sum);
        }
        locus_panel *panel =
            layer == 0 ? chart_panel(&chart, LOCUS_PANEL_LINES, "") : &chart.panels[0];
        if (panel == NULL) break;
        panel->x.label = "row of the table";
        panel->x.first = own ? -(double)(rows / 2) : 0;
        panel->y.label = "norm";
        panel->aspect = 0.4;
        chart_curve(&chart, chart_text(&chart, "layer %d", layer + 1), NULL, y, NULL, NULL, rows,
                    0);
        if (!own) break;
    }
    locus_file_close(file);
    snprintf(name, sizeof name, "norms-%s", scheme);
    sheet_chart(sheet, name, &chart,
                "Length of each row after training. A row that no pair reached has kept the length "
                "it was given.");
}

void sheet_learned(lab_sheet *sheet)
{
    char folder[LAB_PATH];
    locus_file *any = NULL;
    for (size_t i = 0; i < LESSONS && any == NULL; i++)
        any = open_checkpoint(sheet->results, lessons[i].scheme);
    locus_file_close(any);
    if (any == NULL || !lab_path(folder, sheet->results->folder, "learned")) return;
    sheet->status =
        sheet->status != LOCUS_OK ? sheet->status : lab_folder_make(folder, sheet->error);
    sheet_section(sheet, "learned", "What they learned");
    sheet_print(
        sheet,
        "<p>Read from the checkpoints of the language models: what the first layer does with "
        "the bytes of <q>%.*s</q>, and how long the rows of learned tables have become.</p>\n",
        WORDS - 1, sentence);
    for (size_t i = 0; i < LESSONS; i++) draw_lesson(sheet, &lessons[i], folder);
    draw_norms(sheet, "shaw", "rel_k", "Shaw: rows of the key table by distance", 1);
    draw_norms(sheet, "relative_key", "rel_k", "relative_key: rows of the table by distance", 1);
    draw_norms(sheet, "deberta", "rel", "DeBERTa: rows of the shared table", 0);
    draw_norms(sheet, "learned", "pos", "Learned positions: rows of the table", 0);
    sheet_section_end(sheet);
}
