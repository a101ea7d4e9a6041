/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "run.h"
#include "text.h"

const run_task *run_task_at(size_t index)
{
    static const run_task *const tasks[] = {&run_classify, &run_tokens, &run_answer, &run_fill,
                                            &run_generate, &run_embed,  &run_hidden};
    return index < sizeof tasks / sizeof *tasks ? tasks[index] : NULL;
}

const run_task *run_task_default(const locus_model_info *info)
{
    if (info->modules) return &run_embed;
    for (size_t i = 0; run_task_at(i) != NULL; i++)
        if (run_task_at(i)->given(info)) return run_task_at(i);
    return &run_embed;
}

/* "embed, hidden" */
static void list_given(char *list, size_t room, const locus_model_info *info)
{
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; run_task_at(i) != NULL && used + 16 < room; i++)
        if (run_task_at(i)->given(info))
            used += (size_t)snprintf(list + used, room - used, "%s%s", used > 0 ? ", " : "",
                                     run_task_at(i)->name);
}

int run_task_choose(run_session *s)
{
    char list[128], quoted[512];
    const char *name = s->values->task;
    s->task = s->values->labels != NULL ? &run_zero_shot
              : s->values->rank != NULL ? &run_rank
                                        : run_task_default(&s->info);
    if (s->task->begin != NULL) return s->task->begin(s);
    if (name == NULL && s->info.unread_head != NULL && !s->info.modules)
        return cli_complain("run", CLI_REFUSED,
                            "%s: config.json: architectures.0: the head of %s is not read; --task "
                            "embed or hidden gives states without it",
                            text_quote(quoted, sizeof quoted, s->values->model),
                            s->info.unread_head);
    if (name == NULL) return CLI_DONE;
    size_t i = 0;
    while (strcmp(run_task_at(i)->name, name) != 0) i++; /* the options were checked */
    s->task = run_task_at(i);
    if (s->task->given(&s->info)) return CLI_DONE;
    list_given(list, sizeof list, &s->info);
    return cli_complain("run", CLI_REFUSED, "%s: has no head for the task %s; it gives %s",
                        text_quote(quoted, sizeof quoted, s->values->model), name, list);
}
