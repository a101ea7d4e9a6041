/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the library must not change how the caller's arithmetic works: a library
 * linked with fast-math start-up code would turn on flushing for the whole process. */
#include <dlfcn.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int truth, const char *what)
{
    if (truth) return;
    printf("%s\n", what);
    failures++;
}

static void arithmetic(const char *when)
{
    volatile float tiny = FLT_MIN, half = 0.5f, zero = 0.0f;
    volatile double tiny64 = DBL_MIN;
    char text[64];
    snprintf(text, sizeof text, "%s: float denormals are flushed", when);
    expect(tiny * half != 0.0f && tiny * half * 2.0f == tiny, text);
    snprintf(text, sizeof text, "%s: double denormals are flushed", when);
    expect(tiny64 * 0.5 != 0.0, text);
    snprintf(text, sizeof text, "%s: isnan fails", when);
    expect(isnan(zero / zero) && isinf(half / zero), text);
    snprintf(text, sizeof text, "%s: rounding is not to nearest", when);
    expect(fegetround() == FE_TONEAREST, text);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    fenv_t before, after;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    arithmetic("before");
    feclearexcept(FE_ALL_EXCEPT);
    fegetenv(&before);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    fegetenv(&after);
    expect(memcmp(&before, &after, sizeof before) == 0, "the floating-point environment changed");
    arithmetic("after");

    /* And it works from there. */
    const char *(*version)(void);
    *(void **)&version = dlsym(library, "locus_version");
    if (version == NULL) {
        printf("no locus_version\n");
        return 1;
    }
    expect(strchr(version(), '.') != NULL, "locus_version");
    expect(dlclose(library) == 0, "dlclose");
    arithmetic("closed");
    return failures == 0 ? 0 : 1;
}
