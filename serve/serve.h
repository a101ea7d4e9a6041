/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

/* locus serve: trained models behind HTTP. The one door of this folder. */

#include <stddef.h>
#include <stdint.h>

typedef struct serve_options {
    const char *const *models; /* folders, or NAME=FOLDER                                */
    size_t model_count;
    const char *host, *isa, *key_file; /* key_file NULL: anybody may ask                  */
    uint32_t port;                     /* 0: one that is free                             */
    uint32_t threads;                  /* of every pass; 0: all processors                */
    uint32_t tokens_per_batch;         /* a batch takes no further text beyond so many    */
    uint32_t rows;                     /* texts that a decoder writes at a time           */
    uint32_t truncate;                 /* 1: texts that are too long are cut, not refused */
    /* limits */
    uint32_t max_body;        /* KiB of one request                                      */
    uint32_t max_texts;       /* of one request                                          */
    uint32_t max_new_tokens;  /* of one text that is written                             */
    uint32_t max_queue;       /* texts that wait for one model                           */
    uint32_t max_connections; /* at a time                                               */
    uint32_t max_memory;      /* MiB of all requests together                            */
    uint32_t precision;       /* locus_precision of every model                          */
    uint32_t timeout;         /* seconds to send a request, or to take an answer         */
    int quiet;                /* 1: no line for each request                             */
} serve_options;

/* Serve until SIGTERM or SIGINT; an exit code of the program. */
int serve_run(const serve_options *options);

/* The HTTP library and its version, for `locus --version`; NULL: the program was built without. */
const char *serve_library(void);

#endif
