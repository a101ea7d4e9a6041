/* SPDX-License-Identifier: Apache-2.0 */
/* locus plot: the pictures of a scheme. */
#include <stddef.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "plot.h"
#include "text.h"

static const plot_kind *const kinds[] = {
    &plot_encoding, &plot_layouts, &plot_similarity, &plot_distance,  &plot_rows,  &plot_bias,
    &plot_angles,   &plot_decay,   &plot_position,   &plot_attention, &plot_terms, &plot_variants,
};

enum { KINDS = sizeof kinds / sizeof *kinds, WHAT = 160 };

/* What shows best what the scheme is about, by what it declares. */
static const char *usual_kinds(const locus_scheme_info *scheme)
{
    if ((scheme->terms & LOCUS_TERM_INPUT) != 0) return "encoding,similarity";
    if ((scheme->terms & LOCUS_TERM_ROTATION) != 0) return "angles,decay";
    if ((scheme->terms & LOCUS_TERM_POSITION_POSITION) != 0) return "position";
    if (plot_has_tensor(scheme, "u")) return "terms";
    if (plot_has_tensor(scheme, "bias")) return "rows,bias";
    if (plot_has_tensor(scheme, "rel_k"))
        return plot_has_option(scheme, "clip_left") ? "distance,rows" : "rows";
    if ((scheme->terms & LOCUS_TERM_BIAS) != 0) return "bias,attention";
    return "attention";
}

/* ---- choosing ---- */

static void append(char *text, size_t capacity, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s", more);
}

static int unknown_kind(const plot_values *values, const locus_scheme_info *scheme,
                        const char *word)
{
    const char *names[KINDS];
    char quoted[WHAT], list[256] = "";
    size_t count = 0;
    for (size_t i = 0; i < KINDS; i++) {
        if (!kinds[i]->applies(scheme)) continue;
        if (count > 0) append(list, sizeof list, ", ");
        append(list, sizeof list, names[count++] = kinds[i]->name);
    }
    const char *near = cli_nearest(word, names, count);
    text_quote(quoted, sizeof quoted, word);
    if (near != NULL)
        return cli_complain("plot", CLI_USAGE,
                            "--what: unknown picture \"%s\"; did you mean \"%s\"?", quoted, near);
    return cli_complain("plot", CLI_USAGE, "--what: %s has no picture \"%s\", it has: %s",
                        values->scheme, quoted, list);
}

static const plot_kind *find_kind(const locus_scheme_info *scheme, const char *word)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i]->name, word) == 0 && kinds[i]->applies(scheme)) return kinds[i];
    return NULL;
}

/* Draw the comma-separated kinds one after the other. */
static int draw_kinds(picture *p, const char *what)
{
    snprintf(p->title, sizeof p->title, "%s", p->scheme->title);
    snprintf(p->description, sizeof p->description, "%s.", p->scheme->title);
    for (size_t i = 0; *what != '\0'; i++) {
        char word[WHAT];
        const size_t length = strcspn(what, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < WHAT ? length : WHAT - 1), what);
        const plot_kind *kind = find_kind(p->scheme, word);
        if (kind == NULL) return unknown_kind(p->values, p->scheme, word);
        append(p->title, sizeof p->title, i > 0 ? "; " : " \u2013 ");
        append(p->title, sizeof p->title, kind->title);
        append(p->description, sizeof p->description, i > 0 ? "; " : " The picture shows ");
        append(p->description, sizeof p->description, kind->help);
        const int exit_code = kind->draw(p);
        if (exit_code != CLI_DONE) return exit_code;
        if (p->failed)
            return cli_complain("plot", CLI_RESOURCES, "out of memory, or more than %d panels",
                                PLOT_PANELS);
        what += length;
        what += *what == ',' ? 1 : 0;
    }
    return CLI_DONE;
}

static void write_caption(picture *p)
{
    char seed[96];
    snprintf(p->caption, sizeof p->caption, "%s.", p->scheme->formula);
    if (p->pairs) append(p->caption, sizeof p->caption, " Query m down, key n across.");
    if (p->pairs && (p->values->causal || p->values->window != PLOT_NONE))
        append(p->caption, sizeof p->caption, " Grey pairs are hidden.");
    snprintf(seed, sizeof seed, " Learned numbers and contents are made up, seed %u.",
             (unsigned)p->values->seed);
    if (p->made_up) append(p->caption, sizeof p->caption, seed);
    append(p->caption, sizeof p->caption, " ");
    append(p->caption, sizeof p->caption, p->scheme->citation);
    append(p->caption, sizeof p->caption, p->scheme->citation[0] != '\0' ? "." : "");
    append(p->description, sizeof p->description, ". ");
    append(p->description, sizeof p->description, p->caption);
}

/* ---- the command ---- */

/* A case names its scheme itself. */
static int scheme_of_case(plot_values *values, locus_case **loaded)
{
    locus_error error = {""};
    char quoted[160];
    const locus_status status = locus_case_load(loaded, values->path, NULL, &error);
    if (status != LOCUS_OK) return cli_report("plot", status, values->path, &error);
    const char *scheme = locus_case_config(*loaded)->scheme;
    if (values->scheme != NULL && strcmp(values->scheme, scheme) != 0)
        return cli_complain("plot", CLI_USAGE, "%s holds a call of %s, not of %s",
                            text_quote(quoted, sizeof quoted, values->path), scheme,
                            values->scheme);
    values->scheme = scheme;
    return CLI_DONE;
}

static int check_values(const plot_values *v)
{
    char quoted[160];
    const char *themes[] = {"auto", "light", "dark"};
    int known = v->theme == NULL;
    for (size_t i = 0; i < 3 && !known; i++) known = strcmp(v->theme, themes[i]) == 0;
    if (!known)
        return cli_complain("plot", CLI_USAGE, "--theme: expected light, dark or auto, got \"%s\"",
                            text_quote(quoted, sizeof quoted, v->theme));
    if (v->csv && v->json)
        return cli_complain("plot", CLI_USAGE, "--csv and --json exclude each other");
    if ((v->tokens != NULL) + (v->text != NULL) + (v->length != PLOT_NONE) > 1)
        return cli_complain("plot", CLI_USAGE, "--tokens, --text and --length exclude each other");
    if (v->path != NULL &&
        (v->length != PLOT_NONE || v->heads != PLOT_NONE || v->dim != PLOT_NONE ||
         v->window != PLOT_NONE || v->options.count > 0 || v->causal))
        return cli_complain("plot", CLI_USAGE,
                            "a case brings its own length, heads, options and masks");
    if (v->scheme == NULL && v->path == NULL)
        return cli_complain("plot", CLI_USAGE, "SCHEME is missing; see \"locus plot --help\"");
    return CLI_DONE;
}

int plot_make(picture *p, const plot_values *values)
{
    *p = (picture){.values = values, .scheme = locus_scheme_find(values->scheme)};
    if (p->scheme == NULL) return cli_unknown_scheme("plot", values->scheme);
    const int exit_code =
        draw_kinds(p, values->what != NULL ? values->what : usual_kinds(p->scheme));
    if (exit_code == CLI_DONE) write_caption(p);
    return exit_code;
}

static int draw(const plot_values *values)
{
    picture p;
    int exit_code = plot_make(&p, values);
    if (exit_code == CLI_DONE) exit_code = plot_write(&p);
    picture_free(&p);
    return exit_code;
}

static int plot_run(int argc, char **argv)
{
    plot_values values = PLOT_USUAL;
    locus_case *loaded = NULL;
    int exit_code = CLI_DONE;
    if (!cli_parse(&cmd_plot, argc, argv, &values, &exit_code)) return exit_code;
    exit_code = check_values(&values);
    if (exit_code == CLI_DONE && values.path != NULL) exit_code = scheme_of_case(&values, &loaded);
    if (exit_code == CLI_DONE) exit_code = draw(&values);
    locus_case_free(loaded);
    return exit_code;
}

static const cli_example plot_examples[] = {
    {"locus plot t5", "buckets and biases, in the terminal"},
    {"locus plot sinusoidal -o sinusoidal.svg",
     "a picture for a page, light or dark as it is read"},
    {"locus plot shaw --what distance --tokens \"the cat sat\"", "clip(m - n) among three tokens"},
    {"locus plot alibi --what attention --causal -o a.png", "the attention maps that result"},
    {"locus plot --case tests/golden/t5/encoder.safetensors", "from given q, k and tables"},
    {"locus plot rope --what decay --csv", "the numbers of the curve"},
    {NULL, NULL},
};

/* clang-format off */
static const cli_option plot_options[] = {
    {.name = "what", .letter = 'w', .argument = "LIST", .kind = CLI_LIST,
     .help = "encoding, layouts, similarity, distance, rows, bias, angles, decay, position, "
             "attention, terms, variants",
     .offset = offsetof(plot_values, what)},
    {.name = "tokens", .letter = 't', .argument = "TEXT", .kind = CLI_LIST,
     .help = "a sentence, cut at blanks; its words name rows and columns",
     .offset = offsetof(plot_values, tokens)},
    {.name = "text", .argument = "FILE", .kind = CLI_INPUT,
     .help = "the same from a file; \"-\": standard input", .offset = offsetof(plot_values, text)},
    {.name = "length", .letter = 'n', .argument = "N", .kind = CLI_INTEGER,
     .help = "positions, or the farthest distance", .minimum = 1, .maximum = PLOT_LENGTH,
     .offset = offsetof(plot_values, length)},
    {.name = "heads", .argument = "N", .kind = CLI_INTEGER, .help = "heads of the made-up call",
     .minimum = 1, .maximum = 64, .offset = offsetof(plot_values, heads)},
    {.name = "head", .argument = "N", .kind = CLI_INTEGER, .help = "show this head only",
     .maximum = 4096, .offset = offsetof(plot_values, head)},
    {.name = "dim", .argument = "N", .kind = CLI_INTEGER, .help = "width of a head",
     .minimum = 2, .maximum = 256, .offset = offsetof(plot_values, dim)},
    {.name = "option", .argument = "NAME=VALUE", .kind = CLI_PAIRS,
     .help = "an option of the scheme, as locus schemes SCHEME lists them; may be repeated",
     .offset = offsetof(plot_values, options)},
    {.name = "causal", .kind = CLI_FLAG, .help = "a query sees no keys after it",
     .offset = offsetof(plot_values, causal)},
    {.name = "window", .argument = "N", .kind = CLI_INTEGER,
     .help = "a query sees keys at most this far away", .maximum = PLOT_LENGTH,
     .offset = offsetof(plot_values, window)},
    {.name = "seed", .argument = "N", .kind = CLI_INTEGER, .help = "of the made-up numbers",
     .maximum = UINT32_MAX, .offset = offsetof(plot_values, seed)},
    {.name = "case", .argument = "FILE", .kind = CLI_INPUT,
     .help = "take q, k and tables from a case file", .offset = offsetof(plot_values, path)},
    {.name = "output", .letter = 'o', .argument = "FILE", .kind = CLI_OUTPUT,
     .help = "write FILE.svg, .png, .csv, .json or .txt instead of drawing here",
     .offset = offsetof(plot_values, output)},
    {.name = "theme", .argument = "NAME", .kind = CLI_LIST,
     .help = "light, dark or auto (as the reader's screen)",
     .offset = offsetof(plot_values, theme)},
    {.name = "width", .argument = "PIXELS", .kind = CLI_INTEGER, .help = "of an .svg or .png",
     .minimum = 200, .maximum = 10000, .offset = offsetof(plot_values, width)},
    {.name = "csv", .kind = CLI_FLAG, .help = "print the numbers as CSV",
     .offset = offsetof(plot_values, csv)},
    {.name = "json", .kind = CLI_FLAG, .help = "print the numbers as JSON",
     .offset = offsetof(plot_values, json)},
    {.name = NULL},
};
/* clang-format on */

const cli_command cmd_plot = {
    .name = "plot",
    .summary = "pictures of what a scheme does to attention",
    .description =
        "Draws a scheme from its own rules and, in double precision, from the score they lead to: "
        "what is added to the input, which table row serves which pair, biases and rotations by "
        "distance, the terms of the score, the attention that results. Queries run down, keys "
        "across. Without --output the picture is drawn in letters, in colour on a terminal. "
        "Without --what a scheme gets the pictures that show best what it is about.",
    .usage = "SCHEME [--what LIST] [--tokens TEXT | --text FILE | --length N] [-o FILE]",
    .examples = plot_examples,
    .options = plot_options,
    .operand = {.name = "SCHEME",
                .help = "one of the names that locus schemes lists; may be left out beside --case",
                .kind = CLI_SCHEME,
                .offset = offsetof(plot_values, scheme)},
    .run = plot_run,
};
