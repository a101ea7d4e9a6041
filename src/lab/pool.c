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
#include "io/system.h"
#include "lab/files.h"

enum { MOST_SIDE_BY_SIDE = 64, WAIT_MILLISECONDS = 500 };

/* What a run tells the pool. Shorter than PIPE_BUF: messages arrive whole. */
typedef struct message {
    int kind; /* of the enum below */
    locus_status status;
    lab_outcome outcome;
    lab_progress progress;
    char text[512];
} message;
enum { MOVED, NOTED, ENDED };

typedef struct worker {
    pid_t process; /* 0: free */
    int pipe;
    size_t job;
    int64_t begun_at; /* the first step that this process reported */
    double part;      /* of its run */
    int spoke;        /* its last message has come */
} worker;

typedef struct pool {
    const lab_job *jobs;
    size_t count, next;
    const char *folder;
    const lab_onlooker *onlooker;
    worker workers[MOST_SIDE_BY_SIDE];
    uint32_t side_by_side;
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

/* The life of a process: one run, one last message. */
static void live(const lab_job *job, const char *folder, int pipe)
{
    char name[2 * LAB_VARIANT], runs[LAB_PATH], path[LAB_PATH];
    message last = {.kind = ENDED, .outcome = LAB_FINISHED};
    locus_error error = {""};
    const struct sigaction stop = {.sa_handler = on_interrupt}, ignore = {.sa_handler = SIG_IGN};
    const lab_watch watch = {.interrupted = &nobody_listens,
                             .progress = say_progress,
                             .note = say_note,
                             .context = &pipe};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    lab_job_name(job, name, sizeof name);
    if (lab_path(runs, folder, "runs") && lab_path(path, runs, name))
        last.status = lab_train(&job->settings, path, 1, NULL, &watch, &last.outcome, &error);
    else
        last.status = locus_fail(&error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    snprintf(last.text, sizeof last.text, "%s", error.text);
    speak(pipe, &last);
    _exit(0);
}

/* ---- the side of the pool ---- */

static locus_status start(pool *p, worker *w)
{
    int ends[2];
    if (pipe(ends) != 0) return locus_system_fail(p->error, "cannot make a pipe", errno);
    const pid_t process = fork();
    if (process == 0) {
        for (size_t i = 0; i < MOST_SIDE_BY_SIDE; i++)
            if (p->workers[i].process != 0) close(p->workers[i].pipe);
        close(ends[0]);
        live(&p->jobs[p->next], p->folder, ends[1]);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return locus_system_fail(p->error, "cannot start a process", errno);
    }
    *w = (worker){.process = process, .pipe = ends[0], .job = p->next++, .begun_at = -1};
    return LOCUS_OK;
}

static double work_done(const pool *p)
{
    double done = p->done;
    for (size_t i = 0; i < p->side_by_side; i++)
        if (p->workers[i].process != 0)
            done += p->jobs[p->workers[i].job].work * p->workers[i].part;
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

/* One message, or the end of a process that sent none. */
static void listen(pool *p, worker *w)
{
    message m;
    ssize_t got = 0;
    do got = read(w->pipe, &m, sizeof m);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof m) {
        if (m.kind == NOTED) pass_note(p, m.text);
        if (m.kind == ENDED) end_run(p, w, &m);
        if (m.kind != MOVED) return;
        if (w->begun_at < 0) {
            w->begun_at = m.progress.step;
            p->skipped +=
                p->jobs[w->job].work * (double)(m.progress.step - 1) / (double)m.progress.steps;
        }
        w->part = (double)m.progress.step / (double)m.progress.steps;
        m.progress.name = NULL; /* an address of the other process */
        show(p, w, &m.progress, 0);
        return;
    }
    close(w->pipe);
    while (waitpid(w->process, NULL, 0) < 0 && errno == EINTR) continue;
    if (!w->spoke) fail_run(p, w, LOCUS_ERR_IO, "its process ended early; run again to go on");
    w->process = 0;
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
    for (size_t i = 0; i < p->side_by_side; i++)
        if (p->workers[i].process != 0) kill(p->workers[i].process, SIGTERM);
}

static size_t fill(pool *p)
{
    size_t busy = 0;
    for (size_t i = 0; i < p->side_by_side; i++) {
        worker *w = &p->workers[i];
        if (w->process == 0 && !p->stopping && p->next < p->count) {
            const locus_status status = start(p, w);
            if (status != LOCUS_OK) {
                p->stopping = 1;
                if (p->status == LOCUS_OK) p->status = status;
            }
        }
        busy += w->process != 0;
    }
    return busy;
}

static void wait_and_listen(pool *p)
{
    struct pollfd pipes[MOST_SIDE_BY_SIDE];
    for (size_t i = 0; i < p->side_by_side; i++)
        pipes[i] = (struct pollfd){.fd = p->workers[i].process != 0 ? p->workers[i].pipe : -1,
                                   .events = POLLIN};
    if (poll(pipes, p->side_by_side, WAIT_MILLISECONDS) <= 0) return;
    for (size_t i = 0; i < p->side_by_side; i++)
        if (pipes[i].revents != 0) listen(p, &p->workers[i]);
}

locus_status lab_pool_run(const lab_job *jobs, size_t count, uint32_t side_by_side,
                          const char *folder, const lab_onlooker *onlooker, lab_outcome *outcome,
                          locus_error *error)
{
    pool p = {.jobs = jobs,
              .count = count,
              .folder = folder,
              .onlooker = onlooker,
              .side_by_side = side_by_side < MOST_SIDE_BY_SIDE ? side_by_side : MOST_SIDE_BY_SIDE,
              .standing = {.runs = (int64_t)count},
              .began = now(),
              .outcome = LAB_FINISHED,
              .error = error};
    for (size_t i = 0; i < count; i++) p.work += jobs[i].work;
    while (fill(&p) > 0) {
        if (is_interrupted(&p)) interrupt(&p);
        wait_and_listen(&p);
    }
    *outcome = p.outcome;
    return p.status;
}
