/* Four threads share a runtime and a session; each has a queue, submits, cancels some, and one closes the session in the middle. */
#include <evener.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, JOBS = 96, BYTES = 3000, ROUNDS = 30 };

#define DEMAND(is_so) do { if (!(is_so)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, evener_error_text()); exit(1); } } while (0)

static struct evener_runtime *runtime;
static struct evener_session *shared;

static void *work(void *own)
{
    unsigned char *buffers = malloc((size_t)JOBS * BYTES), *first = own;
    struct evener_job *jobs = calloc(JOBS, sizeof *jobs), *burst[JOBS];
    struct evener_queue *queue;
    int canceled = 0;
    DEMAND(buffers && jobs && evener_queue_open(runtime, &queue, JOBS) == EVENER_OK);
    for (int round = 0; round < ROUNDS; round++) {
        memset(buffers, 'x', (size_t)JOBS * BYTES);
        for (int i = 0; i < JOBS; i++) {
            jobs[i].session = shared, jobs[i].src = jobs[i].dst = buffers + i * BYTES;
            jobs[i].src_len = jobs[i].dst_space = BYTES;
            burst[i] = &jobs[i];
        }
        DEMAND(evener_submit(queue, burst, JOBS) == JOBS);
        if (round % 3 == 2)
            DEMAND(evener_cancel(queue) == EVENER_OK);
        for (int came = 0, count; came < JOBS; came += count) {
            DEMAND((count = evener_reap(queue, burst, JOBS, 1, -1)) > 0);
            for (int i = 0; i < count; i++) {
                struct evener_job *job = burst[i];
                int is_canceled = job->status == EVENER_ECANCELED;
                DEMAND(job->status == EVENER_OK || (is_canceled && round % 3 == 2));
                /* One key and one IV: each result is the same, and what was given up is as it was. */
                const unsigned char *result = job->dst;
                DEMAND(is_canceled ? result[0] == 'x' : memcmp(result, first, BYTES) == 0);
                canceled += is_canceled;
            }
        }
    }
    DEMAND(evener_queue_close(queue) == EVENER_OK);
    free(buffers), free(jobs);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    static unsigned char first[BYTES];
    struct evener_options options = EVENER_OPTIONS_INIT;
    struct evener_queue *queue;
    struct evener_job job = {.src = first, .dst = first, .src_len = BYTES, .dst_space = BYTES}, *one = &job;
    options.threads = 2;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_OK);
    DEMAND(evener_session_open(runtime, &shared, "aes-256-ctr", EVENER_ENCRYPT, 0, "0123456789abcdef0123456789ABCDEF", 32) == EVENER_OK);
    DEMAND(evener_queue_open(runtime, &queue, 1) == EVENER_OK);
    memset(first, 'x', BYTES), job.session = shared;
    DEMAND(evener_crypt(queue, &one, 1) == 1 && job.status == EVENER_OK);
    for (int i = 0; i < THREADS; i++)
        DEMAND(pthread_create(&threads[i], NULL, work, first) == 0);
    for (int i = 0; i < THREADS; i++)
        DEMAND(pthread_join(threads[i], NULL) == 0);
    /* Closed while its job is under way. */
    DEMAND(evener_submit(queue, &one, 1) == 1 && evener_session_close(shared) == EVENER_OK);
    DEMAND(evener_reap(queue, &one, 1, 1, -1) == 1 && job.status == EVENER_OK);
    DEMAND(evener_queue_close(queue) == EVENER_OK && evener_runtime_close(runtime) == EVENER_OK);
    puts("each job came back once");
    return 0;
}
