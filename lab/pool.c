/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "lab/pool.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "lab/files.h"

enum { MOST_SIDE_BY_SIDE = 64, WAIT_MILLISECONDS = 500, RANKS_MILLISECONDS = 20 };

/* What a run tells the pool. Shorter than PIPE_BUF: messages arrive whole. */
typedef struct message {
    int kind; /* of the enum below */
    locus_status status;
    lab_outcome outcome;
    lab_progress progress;
    char text[512];
} message;
enum { MOVED, NOTED, ENDED };

/* What a rank is told: the number of a job, or */
enum { SAVE_AND_END = -1, NOTHING_LEFT = -2 };

/* A process of this one, or a rank. */
typedef struct worker {
    int busy;
    int rank;      /* 0: a process, */
    pid_t process; /* this one,     */
    int pipe;      /* heard here    */
    int told;      /* a rank: to save and end */
    size_t job;
    int64_t begun_at; /* the first step that this process reported */
    double part;      /* of its run */
    int spoke;        /* its last message has come */
} worker;

typedef struct pool {
    const lab_pool *plan;
    const lab_job *jobs;
    size_t count, next;
    const lab_onlooker *onlooker;
    worker *workers; /* processes, then ranks 1, 2, .. */
    size_t processes, worker_count;
    lab_standing standing;
    double work, done, skipped; /* of all runs, of those that ended, before this began */
    double began;
    int stopping; /* no new runs */
    lab_outcome outcome;
    locus_status status; /* of the first run that failed */
    locus_error *error;
} pool;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- the side of the run ---- */

/* Set where the pool is gone, or asks for an end: save and end. Of a process of one run. */
static volatile sig_atomic_t nobody_listens;

static void speak(int pipe, const message *m)
{
    ssize_t wrote = 0;
    do wrote = write(pipe, m, sizeof *m);
    while (wrote < 0 && errno == EINTR);
    if (wrote < 0) nobody_listens = 1;
}

static void on_interrupt(int number)
{
    (void)number;
    nobody_listens = 1;
}

static void say_progress(void *context, const lab_progress *progress)
{
    const message m = {.kind = MOVED, .progress = *progress};
    speak(*(const int *)context, &m);
}

static void say_note(void *context, const char *line)
{
    message m = {.kind = NOTED};
    snprintf(m.text, sizeof m.text, "%s", line);
    speak(*(const int *)context, &m);
}

/* Train; the last message says what became of it. */
static message train_job(const lab_job *job, const char *folder, const lab_watch *watch)
{
    char name[2 * LAB_VARIANT], runs[LAB_PATH], path[LAB_PATH];
    message last = {.kind = ENDED, .outcome = LAB_FINISHED};
    locus_error error = {""};
    lab_job_name(job, name, sizeof name);
    if (lab_path(runs, folder, "runs") && lab_path(path, runs, name))
        last.status = lab_train(&job->settings, path, 1, NULL, watch, &last.outcome, &error);
    else
        last.status = locus_fail(&error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    snprintf(last.text, sizeof last.text, "%s", error.text);
    return last;
}

/* The life of a process: one run, one last message. */
static void live(const lab_job *job, const char *folder, int pipe)
{
    const struct sigaction stop = {.sa_handler = on_interrupt}, ignore = {.sa_handler = SIG_IGN};
    const lab_watch watch = {.interrupted = &nobody_listens,
                             .progress = say_progress,
                             .note = say_note,
                             .context = &pipe};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    const message last = train_job(job, folder, &watch);
    speak(pipe, &last);
    _exit(0);
}

/* ---- the side of a rank ---- */

/* A rank at work on a run. */
typedef struct servant {
    const lab_crew *crew;
    const volatile sig_atomic_t *interrupted;
    double last; /* when it last spoke of its progress */
} servant;

/* Steps may be a millisecond long: a few words a second are enough. What rank 0 says meanwhile can
 * only be to end. */
static void send_progress(void *context, const lab_progress *progress)
{
    servant *s = context;
    const message m = {.kind = MOVED, .progress = *progress};
    const double time = now();
    int from = 0, order = 0;
    if (*s->interrupted || s->crew->poll(s->crew->context, &from, &order, sizeof order))
        nobody_listens = 1;
    if (s->last > 0.0 && time - s->last < 0.2) return;
    s->last = time;
    s->crew->send(s->crew->context, 0, &m, sizeof m);
}

static void send_note(void *context, const char *line)
{
    const servant *s = context;
    message m = {.kind = NOTED};
    snprintf(m.text, sizeof m.text, "%s", line);
    s->crew->send(s->crew->context, 0, &m, sizeof m);
}

void lab_pool_serve(const lab_pool *plan, const volatile sig_atomic_t *interrupted)
{
    const lab_crew *crew = plan->crew;
    for (;;) {
        servant s = {.crew = crew, .interrupted = interrupted};
        const lab_watch watch = {.interrupted = &nobody_listens,
                                 .progress = send_progress,
                                 .note = send_note,
                                 .context = &s};
        int order = NOTHING_LEFT;
        crew->receive(crew->context, 0, &order, sizeof order);
        if (order == NOTHING_LEFT) return;
        if (order == SAVE_AND_END) continue; /* it came when the run had ended */
        const message last = train_job(&plan->jobs[order], plan->folder, &watch);
        crew->send(crew->context, 0, &last, sizeof last);
    }
}

/* ---- the side of the pool ---- */

static locus_status start_process(pool *p, worker *w)
{
    int ends[2];
    if (pipe(ends) != 0) return locus_system_fail(p->error, "cannot make a pipe", errno);
    const pid_t process = fork();
    if (process == 0) {
        for (size_t i = 0; i < p->processes; i++)
            if (p->workers[i].busy) close(p->workers[i].pipe);
        close(ends[0]);
        if (p->plan->lock >= 0) close(p->plan->lock);
        live(&p->jobs[p->next], p->plan->folder, ends[1]);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return locus_system_fail(p->error, "cannot start a process", errno);
    }
    *w = (worker){.process = process, .pipe = ends[0]};
    return LOCUS_OK;
}

static void tell(const pool *p, int rank, int order)
{
    p->plan->crew->send(p->plan->crew->context, rank, &order, sizeof order);
}

static locus_status start(pool *p, worker *w)
{
    if (w->rank == 0) {
        LOCUS_TRY(start_process(p, w));
    } else {
        tell(p, w->rank, (int)p->next);
        *w = (worker){.rank = w->rank};
    }
    w->busy = 1;
    w->job = p->next++;
    w->begun_at = -1;
    return LOCUS_OK;
}

static double work_done(const pool *p)
{
    double done = p->done;
    for (size_t i = 0; i < p->worker_count; i++)
        if (p->workers[i].busy) done += p->jobs[p->workers[i].job].work * p->workers[i].part;
    return done;
}

static void show(pool *p, const worker *w, const lab_progress *progress, int ended)
{
    char name[2 * LAB_VARIANT];
    const double done = work_done(p), mine = done - p->skipped;
    lab_job_name(&p->jobs[w->job], name, sizeof name);
    p->standing.name = name;
    p->standing.progress = progress;
    p->standing.ended = ended;
    p->standing.part = p->work > 0.0 ? done / p->work : 1.0;
    p->standing.seconds_left = mine > 0.0 ? (now() - p->began) / mine * (p->work - done) : -1.0;
    if (p->onlooker != NULL && p->onlooker->standing != NULL)
        p->onlooker->standing(p->onlooker->context, &p->standing);
}

static void pass_note(const pool *p, const char *line)
{
    if (p->onlooker != NULL && p->onlooker->note != NULL)
        p->onlooker->note(p->onlooker->context, line);
}

static void fail_run(pool *p, const worker *w, locus_status status, const char *text)
{
    char name[2 * LAB_VARIANT];
    lab_job_name(&p->jobs[w->job], name, sizeof name);
    p->standing.failed++;
    p->stopping = 1;
    if (p->status == LOCUS_OK) p->status = locus_fail(p->error, status, "%s: %s", name, text);
}

static void end_run(pool *p, worker *w, const message *m)
{
    w->spoke = 1;
    if (m->status != LOCUS_OK) {
        fail_run(p, w, m->status, m->text);
    } else if (m->outcome == LAB_INTERRUPTED) {
        p->outcome = LAB_INTERRUPTED;
        p->stopping = 1;
    } else {
        if (m->outcome == LAB_STOPPED && p->outcome == LAB_FINISHED) p->outcome = LAB_STOPPED;
        p->standing.finished++;
        if (w->begun_at < 0) p->skipped += p->jobs[w->job].work; /* it was there before */
        p->done += p->jobs[w->job].work;
        w->part = 0.0;
        show(p, w, NULL, 1);
    }
}

static void heed(pool *p, worker *w, message *m)
{
    if (m->kind == NOTED) pass_note(p, m->text);
    if (m->kind == ENDED) end_run(p, w, m);
    if (m->kind != MOVED) return;
    if (w->begun_at < 0) {
        w->begun_at = m->progress.step;
        p->skipped +=
            p->jobs[w->job].work * (double)(m->progress.step - 1) / (double)m->progress.steps;
    }
    w->part = (double)m->progress.step / (double)m->progress.steps;
    m->progress.name = NULL; /* an address of the other process */
    show(p, w, &m->progress, 0);
}

/* One message, or the end of a process that sent none. */
static void listen(pool *p, worker *w)
{
    message m;
    ssize_t got = 0;
    do got = read(w->pipe, &m, sizeof m);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof m) {
        heed(p, w, &m);
        return;
    }
    close(w->pipe);
    while (waitpid(w->process, NULL, 0) < 0 && errno == EINTR) continue;
    if (!w->spoke) fail_run(p, w, LOCUS_ERR_IO, "its process ended early; run again to go on");
    w->busy = 0;
}

/* All messages of ranks that have come. One that dies ends the whole job. */
static void listen_to_ranks(pool *p)
{
    const lab_crew *crew = p->plan->crew;
    message m;
    int from = 0;
    while (crew != NULL && crew->poll(crew->context, &from, &m, sizeof m)) {
        worker *w = &p->workers[p->processes + (size_t)from - 1];
        heed(p, w, &m);
        if (m.kind == ENDED) w->busy = 0;
    }
}

static int is_interrupted(const pool *p)
{
    return p->onlooker != NULL && p->onlooker->interrupted != NULL &&
           *p->onlooker->interrupted != 0;
}

/* Tell every run to save and end; again in each round, as one that was just begun may not listen
 * yet. */
static void interrupt(pool *p)
{
    p->outcome = LAB_INTERRUPTED;
    p->stopping = 1;
    for (size_t i = 0; i < p->worker_count; i++) {
        worker *w = &p->workers[i];
        if (w->busy && w->rank == 0) kill(w->process, SIGTERM);
        if (w->busy && w->rank != 0 && !w->told) tell(p, w->rank, SAVE_AND_END);
        w->told = 1;
    }
}

static size_t fill(pool *p)
{
    size_t busy = 0;
    for (size_t i = 0; i < p->worker_count; i++) {
        worker *w = &p->workers[i];
        if (!w->busy && !p->stopping && p->next < p->count) {
            const locus_status status = start(p, w);
            if (status != LOCUS_OK) {
                p->stopping = 1;
                if (p->status == LOCUS_OK) p->status = status;
            }
        }
        busy += w->busy != 0;
    }
    return busy;
}

static void wait_and_listen(pool *p)
{
    struct pollfd pipes[MOST_SIDE_BY_SIDE];
    for (size_t i = 0; i < p->processes; i++)
        pipes[i] =
            (struct pollfd){.fd = p->workers[i].busy ? p->workers[i].pipe : -1, .events = POLLIN};
    listen_to_ranks(p);
    const int patience = p->plan->crew != NULL ? RANKS_MILLISECONDS : WAIT_MILLISECONDS;
    if (poll(pipes, (nfds_t)p->processes, patience) <= 0) return;
    for (size_t i = 0; i < p->processes; i++)
        if (pipes[i].revents != 0) listen(p, &p->workers[i]);
}

locus_status lab_pool_run(const lab_pool *plan, const lab_onlooker *onlooker, lab_outcome *outcome,
                          locus_error *error)
{
    const uint32_t processes =
        plan->side_by_side < MOST_SIDE_BY_SIDE ? plan->side_by_side : MOST_SIDE_BY_SIDE;
    const size_t ranks = plan->crew != NULL ? (size_t)plan->crew->ranks - 1 : 0;
    pool p = {.plan = plan,
              .jobs = plan->jobs,
              .count = plan->count,
              .onlooker = onlooker,
              .processes = processes,
              .worker_count = processes + ranks,
              .standing = {.runs = (int64_t)plan->count},
              .began = now(),
              .outcome = LAB_FINISHED,
              .error = error};
    p.workers = locus_allocate(NULL, p.worker_count, sizeof *p.workers);
    if (p.workers == NULL)
        p.status = locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %zu workers", p.worker_count);
    for (size_t i = 0; p.workers != NULL && i < ranks; i++)
        p.workers[processes + i].rank = (int)i + 1;
    for (size_t i = 0; i < plan->count; i++) p.work += plan->jobs[i].work;
    while (p.workers != NULL && fill(&p) > 0) {
        if (is_interrupted(&p)) interrupt(&p);
        wait_and_listen(&p);
    }
    for (size_t i = 1; i <= ranks; i++) tell(&p, (int)i, NOTHING_LEFT);
    locus_release(NULL, p.workers);
    *outcome = p.outcome;
    return p.status;
}
