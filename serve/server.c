/* SPDX-License-Identifier: Apache-2.0 */
/* The server from its socket to its end. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "serve/server.h"

enum { MOST_KEY = 4096, BACKLOG = 512, STACK = 8 << 20 };

const char *serve_library(void) { return MHD_get_version(); }

/* ---- the key ---- */

/* The first line of the file. */
static int read_key(server *s)
{
    const char *path = s->options->key_file;
    char line[MOST_KEY] = "";
    if (path == NULL) return CLI_DONE;
    FILE *file = fopen(path, "r");
    if (file == NULL) return cli_complain("serve", CLI_RESOURCES, "%s: %s", path, strerror(errno));
    const int good = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    line[strcspn(line, "\r\n")] = '\0';
    if (!good || line[0] == '\0')
        return cli_complain("serve", CLI_REFUSED, "%s: found no key, expected a line with one",
                            path);
    s->key = strdup(line);
    return s->key != NULL ? CLI_DONE : cli_complain("serve", CLI_RESOURCES, "out of memory");
}

/* ---- the socket ---- */

static int bind_one(const struct addrinfo *at)
{
    const int on = 1;
    const int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int open_socket(const serve_options *o, int *fd)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[16], quoted[160];
    snprintf(port, sizeof port, "%u", (unsigned)o->port);
    text_quote(quoted, sizeof quoted, o->host);
    const int failed = getaddrinfo(o->host, port, &hints, &found);
    if (failed != 0)
        return cli_complain("serve", CLI_USAGE, "--host: %s: %s", quoted, gai_strerror(failed));
    *fd = -1;
    for (const struct addrinfo *at = found; at != NULL && *fd < 0; at = at->ai_next)
        *fd = bind_one(at);
    freeaddrinfo(found);
    if (*fd >= 0) return CLI_DONE;
    return cli_complain("serve", CLI_RESOURCES, "%s port %s: %s", quoted, port, strerror(errno));
}

static unsigned port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    char port[16] = "0";
    if (getsockname(fd, (struct sockaddr *)&at, &bytes) == 0)
        getnameinfo((struct sockaddr *)&at, bytes, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    return (unsigned)strtoul(port, NULL, 10);
}

/* ---- threads ---- */

static int start_workers(server *s)
{
    pthread_attr_t attributes;
    int failed = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    for (size_t i = 0; i < s->model_count && !failed; i++) {
        served *m = &s->models[i];
        failed = pthread_create(&m->thread, &attributes, serve_worker, m) != 0;
        m->runs = !failed;
    }
    pthread_attr_destroy(&attributes);
    return failed ? cli_complain("serve", CLI_RESOURCES, "a thread cannot be started") : CLI_DONE;
}

static void stop_workers(server *s)
{
    for (size_t i = 0; i < s->model_count; i++) serve_queue_close(&s->models[i]);
    for (size_t i = 0; i < s->model_count; i++)
        if (s->models[i].runs) pthread_join(s->models[i].thread, NULL);
}

static int start_http(server *s, int fd)
{
    const serve_options *o = s->options;
    s->daemon =
        MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME,
                         0, NULL, NULL, serve_access, s, MHD_OPTION_LISTEN_SOCKET, fd,
                         MHD_OPTION_NOTIFY_COMPLETED, serve_completed, s,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->max_connections,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->timeout, MHD_OPTION_END);
    if (s->daemon != NULL) return CLI_DONE;
    close(fd);
    return cli_complain("serve", CLI_RESOURCES, "the HTTP library cannot start");
}

/* ---- the end ---- */

/* No new requests; those that are there are answered, as long as they may take. */
static void stop_http(server *s)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    const double until = serve_clock() + (double)s->options->timeout;
    atomic_store(&s->stopping, 1);
    const MHD_socket fd = MHD_quiesce_daemon(s->daemon);
    while (atomic_load(&s->exchanges) > 0 && serve_clock() < until) nanosleep(&pause, NULL);
    stop_workers(s); /* nothing is suspended any more */
    while (atomic_load(&s->exchanges) > 0 && serve_clock() < until) nanosleep(&pause, NULL);
    MHD_stop_daemon(s->daemon);
    if (fd != MHD_INVALID_SOCKET) close(fd);
}

/* SIGHUP opens the models anew; the others end the server. */
static void wait_for_end(server *s, const sigset_t *signals)
{
    int number = 0;
    while (sigwait(signals, &number) == 0 && number == SIGHUP) serve_models_reload(s);
}

static int run(server *s, const sigset_t *signals)
{
    int fd = -1;
    int exit_code = read_key(s);
    if (exit_code == CLI_DONE) exit_code = serve_models_open(s);
    if (exit_code == CLI_DONE) exit_code = open_socket(s->options, &fd);
    if (exit_code != CLI_DONE) return exit_code;
    const unsigned port = port_of(fd);
    exit_code = start_workers(s);
    if (exit_code == CLI_DONE) exit_code = start_http(s, fd);
    if (exit_code != CLI_DONE) {
        stop_workers(s);
        return exit_code;
    }
    const char *host = s->options->host;
    fprintf(stderr,
            strchr(host, ':') != NULL ? "locus serve: http://[%s]:%u\n"
                                      : "locus serve: http://%s:%u\n",
            host, port);
    wait_for_end(s, signals);
    stop_http(s);
    return CLI_DONE;
}

int serve_run(const serve_options *options)
{
    sigset_t signals;
    server *s = calloc(1, sizeof *s);
    if (s == NULL) return cli_complain("serve", CLI_RESOURCES, "out of memory");
    s->options = options;
    pthread_mutex_init(&s->compute_lock, NULL);
    pthread_cond_init(&s->compute_turn, NULL);
    /* Threads inherit this mask: signals come to sigwait alone. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    const int exit_code = run(s, &signals);
    serve_models_close(s);
    pthread_cond_destroy(&s->compute_turn);
    pthread_mutex_destroy(&s->compute_lock);
    free(s->key);
    free(s);
    return exit_code;
}
