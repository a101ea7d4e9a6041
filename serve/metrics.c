/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics, in the text format of Prometheus. */
#include "serve/server.h"

enum { BUCKETS = 12 };

/* Seconds up to which a bucket counts. */
static const double limits[BUCKETS] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                       0.1,   0.2,   0.5,   1.0,  5.0,  30.0};

void serve_metrics_add(metrics *m, int status, double seconds)
{
    int bucket = 0;
    while (bucket < BUCKETS && seconds > limits[bucket]) bucket++;
    atomic_fetch_add(&m->bucket[bucket], 1);
    atomic_fetch_add(&m->answered[status / 100 % 6], 1);
    atomic_fetch_add(&m->micros, (unsigned long long)(seconds * 1e6));
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_times(metrics *m, FILE *out)
{
    static const char name[] = "locus_request_duration_seconds";
    unsigned long long sum = 0;
    head(out, name, "histogram", "time from the head of a request to its answer");
    for (int b = 0; b < BUCKETS; b++) {
        sum += atomic_load(&m->bucket[b]);
        fprintf(out, "%s_bucket{le=\"%g\"} %llu\n", name, limits[b], sum);
    }
    sum += atomic_load(&m->bucket[BUCKETS]);
    fprintf(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, sum);
    fprintf(out, "%s_sum %.6f\n%s_count %llu\n", name, 1e-6 * (double)atomic_load(&m->micros), name,
            sum);
}

/* A name may hold anything: what the format gives a meaning is escaped. */
static void write_name(const served *m, FILE *out)
{
    for (const char *c = m->name; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') fputc('\\', out);
        if (*c == '\n')
            fputs("\\n", out);
        else
            fputc(*c, out);
    }
}

static void write_model(served *m, const char *name, unsigned long long value, FILE *out)
{
    fprintf(out, "%s{model=\"", name);
    write_name(m, out);
    fprintf(out, "\"} %llu\n", value);
}

static void write_counters(server *s, FILE *out)
{
    static const char *const names[] = {"locus_texts_total", "locus_tokens_total",
                                        "locus_written_tokens_total", "locus_batches_total"};
    static const char *const helps[] = {"texts answered", "tokens read", "tokens written",
                                        "passes of a model"};
    for (int k = 0; k < 4; k++) {
        head(out, names[k], "counter", helps[k]);
        for (size_t i = 0; i < s->model_count; i++) {
            served *m = &s->models[i];
            atomic_ullong *const values[] = {&m->texts, &m->tokens, &m->written, &m->batches};
            write_model(m, names[k], atomic_load(values[k]), out);
        }
    }
    head(out, "locus_queue_texts", "gauge", "texts that wait");
    for (size_t i = 0; i < s->model_count; i++)
        write_model(&s->models[i], "locus_queue_texts", serve_queue_count(&s->models[i]), out);
}

void serve_metrics_write(exchange *x, FILE *out)
{
    server *s = x->server;
    head(out, "locus_requests_total", "counter", "requests answered, by the class of their status");
    for (int c = 2; c < 6; c++)
        fprintf(out, "locus_requests_total{status=\"%dxx\"} %llu\n", c,
                (unsigned long long)atomic_load(&s->metrics.answered[c]));
    head(out, "locus_overloaded_total", "counter",
         "requests refused because too many texts waited");
    fprintf(out, "locus_overloaded_total %llu\n",
            (unsigned long long)atomic_load(&s->metrics.overloaded));
    head(out, "locus_open_requests", "gauge", "requests that are being read or answered");
    fprintf(out, "locus_open_requests %zu\n", atomic_load(&s->exchanges));
    write_times(&s->metrics, out);
    write_counters(s, out);
}
