/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <inttypes.h>
#include <stdlib.h>

#include "machine.h"
#include "terms.h"

static const page_lesson *const groups[] = {page_absolute, page_relative, page_terms,
                                            page_successors};

enum { GROUPS = sizeof groups / sizeof *groups };

/* Lesson `index` of all, NULL beyond the end. */
static const page_lesson *lesson_at(size_t index)
{
    for (size_t g = 0; g < GROUPS; g++)
        for (const page_lesson *l = groups[g]; l->id != NULL; l++)
            if (index-- == 0) return l;
    return NULL;
}

static size_t lesson_count(void)
{
    size_t count = 0;
    while (lesson_at(count) != NULL) count++;
    return count;
}

/* ---- head and contents ---- */

static void print_head(FILE *out)
{
    /* The policy makes a promise of "no network, no script" that a browser holds us to. */
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta name=\"description\" content=\"Position in attention, scheme by scheme: formula, "
          "picture, code and measured cost.\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n"
          "<title>Where is a token? Position in attention, scheme by scheme</title>\n<style>\n",
          out);
    for (const char *const *line = page_style; *line != NULL; line++) fprintf(out, "%s\n", *line);
    fputs(
        "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the first lesson</a>\n",
        out);
}

static void print_machine(FILE *out, const demo *d)
{
    char machine[256];
    const locus_problem_request *s = &d->small, *l = &d->large;
    fputs("<p class=\"machine\">Measured with ", out);
    page_escape(out, machine_text(machine, sizeof machine));
    fprintf(out,
            ", instruction set %s, one thread. Errors are the worst against an oracle in double "
            "precision, over the sentence (%" PRId64 " heads of %" PRId64 ") and over random "
            "numbers (<i>T</i> = %" PRId64 ", %" PRId64 " heads of %" PRId64 "); learned numbers, "
            "time and memory are those of the latter, time as a multiple of plain attention, "
            "memory beyond it.</p>\n",
            locus_isa_pick(NULL), s->H, s->D, l->T, l->H, l->D);
}

static void print_introduction(FILE *out, const demo *d)
{
    fputs("<header>\n<h1>Where is a token? Position in attention, scheme by scheme</h1>\n"
          "<p class=\"lead\">Attention by itself does not know the order of its tokens. Each of "
          "the classic ways to tell it is shown here with its formula, a picture of what it does "
          "to the sentence <q>",
          out);
    for (size_t i = 0; i < d->words; i++) fprintf(out, "%s%s", i > 0 ? " " : "", d->sentence[i]);
    fputs("</q>, the C code that computes it with Locus, and what it cost on this machine a "
          "moment ago.</p>\n",
          out);
    print_machine(out, d);
}

static void print_contents(FILE *out)
{
    int inside = 0; /* a chapter of several lessons */
    fputs("<nav aria-labelledby=\"contents\">\n<h2 id=\"contents\">Contents</h2>\n"
          "<ol class=\"chapters\">\n",
          out);
    for (size_t i = 0; lesson_at(i) != NULL; i++) {
        const page_lesson *l = lesson_at(i);
        if (l->chapter != NULL)
            fprintf(out, "<li><a href=\"#chapter-%s\">%s</a>\n<ol>\n", l->id, l->chapter);
        inside |= l->chapter != NULL;
        fprintf(out, "<li><a href=\"#%s\">%s</a></li>\n", l->id, l->title);
    }
    fputs(inside ? "</ol>\n</li>\n" : "", out);
    fputs("<li><a href=\"#all\">All of them, measured here</a></li>\n</ol>\n</nav>\n</header>\n",
          out);
}

/* ---- the table of all ---- */

static void print_all(FILE *out, const demo *d)
{
    const demo_outcome *plain = demo_find(d, "none");
    fputs("<section id=\"all\" aria-labelledby=\"all-heading\">\n"
          "<h2 id=\"all-heading\">All of them, measured here</h2>\n"
          "<p>A score is a sum of terms, and a scheme chooses among eight places where a position "
          "can enter:</p>\n<ol>\n",
          out);
    for (size_t i = 0; i < TERM_COUNT; i++) {
        fprintf(out, "<li>%s: <code>", locus_term_name(1u << i));
        page_escape(out, locus_term_formula(1u << i));
        fputs("</code></li>\n", out);
    }
    fprintf(out,
            "</ol>\n<p>Plain attention takes %.1f MB for plan and workspace at <i>T</i> = %" PRId64
            "; extra memory is what a scheme takes beyond that in the greedier of its two passes, "
            "and grows with <i>T</i>. One array of scores over all pairs, which is never made, "
            "would take %.1f MB and grow with <i>T</i>&sup2;. Schemes marked "
            "<small>(layer)</small> act on the input, so a whole layer is run, against a plain "
            "one. Errors are relative to the largest number of a result, or to 1 where that is "
            "smaller.</p>\n",
            (double)plain->bytes / 1e6, d->large.T, (double)demo_score_bytes(d) / 1e6);
    page_print_costs(out, d, "All schemes", NULL);
    fputs("</section>\n", out);
}

static void print_foot(FILE *out)
{
    fprintf(out,
            "<footer>\n<p>Written by <code>locus demo</code>, Locus %s. The snippets, one after "
            "the other, are one C source file: <code>cc -c page.c $(pkg-config --cflags "
            "locus)</code>. Pictures are drawn from the same rules that compute; where a picture "
            "needs learned numbers, they are seeded random ones. Apache License 2.0.</p>\n"
            "</footer>\n</body>\n</html>\n",
            locus_version());
}

/* ---- the whole ---- */

static void print_page(FILE *out, const demo *d, const page_drawing *drawings)
{
    int inside = 0;
    print_head(out);
    print_introduction(out, d);
    print_contents(out);
    fputs("<main id=\"main\">\n", out);
    for (size_t i = 0; lesson_at(i) != NULL; i++) {
        const page_lesson *l = lesson_at(i);
        if (l->chapter != NULL)
            fprintf(out,
                    "<section id=\"chapter-%s\" aria-labelledby=\"chapter-%s-heading\">\n"
                    "<h2 id=\"chapter-%s-heading\">%s</h2>\n<p>%s</p>\n",
                    l->id, l->id, l->id, l->chapter, l->lead);
        inside |= l->chapter != NULL;
        page_print_lesson(out, d, l, &drawings[i]);
    }
    fputs(inside ? "</section>\n" : "", out);
    print_all(out, d);
    fputs("</main>\n", out);
    print_foot(out);
}

int page_write(const demo *d, const char *path)
{
    const size_t count = lesson_count();
    page_drawing *drawings = calloc(count, sizeof *drawings);
    int exit_code = CLI_DONE;
    if (drawings == NULL) return cli_complain("demo", CLI_RESOURCES, "out of memory");
    for (size_t i = 0; i < count && exit_code == CLI_DONE; i++)
        exit_code = page_draw(&drawings[i], lesson_at(i));
    if (exit_code == CLI_DONE) {
        cli_output output;
        cli_output_begin(&output, path);
        if (output.file != NULL) print_page(output.file, d, drawings);
        exit_code = cli_output_finish(&output, "demo");
    }
    for (size_t i = 0; i < count; i++) page_drawing_free(&drawings[i]);
    free(drawings);
    return exit_code;
}
