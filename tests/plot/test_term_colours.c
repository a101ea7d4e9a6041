/* SPDX-License-Identifier: Apache-2.0 */

/* One colour per term of a score: each stands out from the paper, and any two are told apart by readers with normal and
 * with the three common kinds of reduced colour vision, on light and on dark paper. */

#include <math.h>

#include <locus/picture.h>
#include <locus/plot.h>
#include <locus/scheme.h>

#include "plot/colour.h"
#include "support/check.h"

/* What is left of linear red, green and blue: Machado, Oliveira and Fernandes (2009), severity 1. */
static const struct {
    const char *name;
    double m[3][3];
} sights[] = {
    {"normal", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {"protanopia",
     {{0.152286, 1.052583, -0.204868},
      {0.114503, 0.786281, 0.099216},
      {-0.003882, -0.048116, 1.051998}}},
    {"deuteranopia",
     {{0.367322, 0.860646, -0.227968},
      {0.280085, 0.672501, 0.047413},
      {-0.011820, 0.042940, 0.968881}}},
    {"tritanopia",
     {{1.255528, -0.076749, -0.178779},
      {-0.078411, 0.930809, 0.147602},
      {0.004733, 0.691367, 0.303900}}},
};
enum { SIGHTS = sizeof sights / sizeof *sights };

static double linear(uint32_t colour, int shift)
{
    const double c = (double)(colour >> shift & 0xFF) / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static double luminance(uint32_t colour)
{
    return 0.2126 * linear(colour, 16) + 0.7152 * linear(colour, 8) + 0.0722 * linear(colour, 0);
}

static double contrast(uint32_t a, uint32_t b)
{
    const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
    return fmax(x, y) / fmin(x, y);
}

static double curve(double t)
{
    return t > 216.0 / 24389.0 ? cbrt(t) : (24389.0 / 27.0 * t + 16.0) / 116.0;
}

/* CIELAB of what a kind of colour vision makes of a colour. */
static void seen(double lab[3], uint32_t colour, int sight)
{
    const double from[3] = {linear(colour, 16), linear(colour, 8), linear(colour, 0)};
    double c[3];
    for (int i = 0; i < 3; i++) {
        const double *row = sights[sight].m[i];
        c[i] = fmin(1, fmax(0, row[0] * from[0] + row[1] * from[1] + row[2] * from[2]));
    }
    const double x = curve((0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047);
    const double y = curve(0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2]);
    const double z = curve((0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883);
    lab[0] = 116 * y - 16;
    lab[1] = 500 * (x - y);
    lab[2] = 200 * (y - z);
}

static double distance(uint32_t a, uint32_t b, int sight)
{
    double p[3], q[3];
    seen(p, a, sight);
    seen(q, b, sight);
    return sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) +
                (p[2] - q[2]) * (p[2] - q[2]));
}

static void test_apart(locus_theme theme)
{
    for (int sight = 0; sight < SIGHTS; sight++) {
        if (!check_begin("plot/term-colours/%s/%s", theme == LOCUS_THEME_DARK ? "dark" : "light",
                         sights[sight].name))
            continue;
        for (uint32_t a = 0; a < PLOT_TERMS; a++) {
            const uint32_t colour = locus_ink_colour(LOCUS_INK_TERM + a, theme);
            const double readable = contrast(colour, locus_ink_colour(LOCUS_INK_PAPER, theme));
            CHECK(readable >= 3.0, "term %u: contrast %.2f", (unsigned)a, readable);
            for (uint32_t b = 0; b < a; b++) {
                const double apart =
                    distance(colour, locus_ink_colour(LOCUS_INK_TERM + b, theme), sight);
                CHECK(apart >= 15.0, "terms %u and %u: %.1f apart", (unsigned)a, (unsigned)b,
                      apart);
            }
        }
    }
}

static void test_names(void)
{
    if (!check_begin("plot/term-colours/names")) return;
    for (uint32_t place = 0; locus_term_name(1u << place) != NULL && place < 8; place++)
        CHECK(locus_picture_term_ink(locus_term_name(1u << place)) == LOCUS_INK_TERM + place,
              "place %u", (unsigned)place);
    const uint32_t other = locus_picture_term_ink("bias_dense");
    CHECK(other == locus_picture_term_ink(NULL) && other == LOCUS_INK_TERM + 8, "ink %u",
          (unsigned)other);
    CHECK(locus_picture_term_ink("u.k") == other + 1, "u.k");
    CHECK(locus_picture_term_ink("w.r") == other + 2, "w.r");
    CHECK(other + 3 == LOCUS_INK_COUNT, "an ink without a name");
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_apart(LOCUS_THEME_LIGHT);
    test_apart(LOCUS_THEME_DARK);
    test_names();
    return check_finish("plot");
}
