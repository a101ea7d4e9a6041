/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <locus/picture.h>

#include "page.h"
#include "settings.h"

/* Pixels of a picture on a narrow screen, and on a wide one by its panels: three fit side by
 * side in the widest, which reaches beyond the text. */
enum { NARROW = 352 };

static uint32_t wide_pixels(size_t panels)
{
    if (panels == 1) return 480;
    return panels == 2 || panels == 4 ? 736 : 960;
}

void page_escape(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: putc(*text, out);
        }
}

/* ---- pictures ---- */

static int render(locus_text *text, const locus_figure *figure, const char *id, const char *size,
                  uint32_t width)
{
    char prefix[64];
    locus_error error = {""};
    snprintf(prefix, sizeof prefix, "%s-%s", id, size);
    const locus_render how = {.size = sizeof how, .width = width, .fragment = 1, .prefix = prefix};
    const locus_status status = locus_figure_render(figure, LOCUS_FORMAT_SVG, &how, text, &error);
    return status == LOCUS_OK ? CLI_DONE : cli_report("demo", status, id, &error);
}

int page_draw(page_drawing *drawing, const page_lesson *lesson)
{
    cli_pairs options = {.count = 0};
    settings s;
    locus_error error = {""};
    locus_picture *picture = NULL;
    locus_picture_request request;
    for (; lesson->options[options.count] != NULL; options.count++)
        options.text[options.count] = lesson->options[options.count];
    settings_split(&s, &options);
    locus_picture_request_init(&request, lesson->scheme);
    request.what = lesson->what;
    request.heads = lesson->heads;
    request.settings = s.list;
    const locus_status status = locus_picture_new(&picture, &request, &error);
    if (status != LOCUS_OK) return cli_report("demo", status, lesson->id, &error);
    locus_figure figure = *locus_picture_figure(picture);
    figure.size = sizeof figure;
    figure.title = figure.caption = NULL; /* the page says both; the description stays */
    int exit_code =
        render(&drawing->wide, &figure, lesson->id, "wide", wide_pixels(figure.panel_count));
    if (exit_code == CLI_DONE)
        exit_code = render(&drawing->narrow, &figure, lesson->id, "narrow", NARROW);
    locus_picture_free(picture);
    return exit_code;
}

void page_drawing_free(page_drawing *drawing)
{
    locus_text_free(&drawing->wide);
    locus_text_free(&drawing->narrow);
}

static void print_drawing(FILE *out, const char *size, const locus_text *text)
{
    fprintf(out, "<div class=\"%s\">\n", size);
    fwrite(text->data, 1, text->length, out);
    fputs("</div>\n", out);
}

static void print_figure(FILE *out, const page_lesson *lesson, const page_drawing *drawing)
{
    fputs("<figure>\n", out);
    print_drawing(out, "wide", &drawing->wide);
    print_drawing(out, "narrow", &drawing->narrow);
    fprintf(out, "<figcaption>%s Draw it: <code><span>locus plot %s</span> <span>--what %s</span>",
            lesson->caption, lesson->scheme, lesson->what);
    if (lesson->heads > 0) fprintf(out, " <span>--heads %u</span>", (unsigned)lesson->heads);
    for (const char *const *option = lesson->options; *option != NULL; option++)
        fprintf(out, " <span>--option %s</span>", *option);
    fputs("</code></figcaption>\n</figure>\n", out);
}

/* ---- a lesson ---- */

static void print_formula(FILE *out, const page_lesson *lesson)
{
    fprintf(out,
            "<div class=\"formula\" tabindex=\"0\" role=\"group\" aria-label=\"Formula: %s\">\n",
            lesson->title);
    fputs("<math display=\"block\" alttext=\"", out);
    page_escape(out, lesson->said);
    fprintf(out, "\">%s</math>\n</div>\n", lesson->formula);
}

static void print_block(FILE *out, const page_lesson *lesson, const char *title,
                        const char *language, const char *code)
{
    fprintf(out,
            "<details%s aria-label=\"%s, folded: %s\">\n<summary>%s</summary>\n<pre "
            "tabindex=\"0\" role=\"group\" aria-label=\"%s: %s\"><code class=\"language-%s\">",
            strcmp(language, "c") == 0 ? " open" : "", title, lesson->title, title, title,
            lesson->title, language);
    page_escape(out, code);
    fputs("</code></pre>\n</details>\n", out);
}

static void print_code(FILE *out, const page_lesson *lesson)
{
    char shell[256];
    snprintf(shell, sizeof shell,
             "locus schemes %s\nlocus explain --scheme %s --tokens \"a b a\" --query 2\n",
             lesson->scheme, lesson->scheme);
    print_block(out, lesson, "C", "c", lesson->code);
    print_block(out, lesson, "Python, small enough for paper", "python", lesson->python);
    print_block(out, lesson, "Shell", "sh", shell);
}

/* Two to open, three to go on. */
static void print_sentences(FILE *out, const page_lesson *lesson)
{
    for (size_t i = 0; i < PAGE_SENTENCES; i++)
        fprintf(out, "%s%s\n", i == 0 ? "<p>" : i == 2 ? "</p>\n<p>" : "", lesson->sentences[i]);
    fputs("</p>\n", out);
}

void page_print_lesson(FILE *out, const demo *d, const page_lesson *lesson,
                       const page_drawing *drawing)
{
    char label[160];
    const int level = lesson->part ? 3 : 2;
    fprintf(out, "<section id=\"%s\" aria-labelledby=\"%s-heading\">\n", lesson->id, lesson->id);
    fprintf(out, "<h%d id=\"%s-heading\">%s</h%d>\n", level, lesson->id, lesson->title, level);
    if (lesson->because != NULL) fprintf(out, "<p class=\"because\">%s</p>\n", lesson->because);
    print_formula(out, lesson);
    print_sentences(out, lesson);
    print_figure(out, lesson, drawing);
    fprintf(out, "<h%d class=\"piece\">Code</h%d>\n", level + 1, level + 1);
    print_code(out, lesson);
    fprintf(out, "<h%d class=\"piece\">Cost</h%d>\n", level + 1, level + 1);
    snprintf(label, sizeof label, "Cost: %s", lesson->title);
    page_print_costs(out, d, label, lesson->costs);
    fprintf(out, "<p class=\"papers\">%s</p>\n</section>\n", lesson->papers);
}
