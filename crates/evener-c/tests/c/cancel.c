/* Jobs that no thread has begun come back cancelled, their memory as it was; what a thread has begun, and what is submitted afterwards, is done. */
#include <evener.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 1024, BYTES = 32768, AFTER = 4, ROUNDS = 50 };

#define DEMAND(is_so) do { if (!(is_so)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, evener_error_text()); exit(1); } } while (0)

static struct evener_job jobs[JOBS + AFTER], *burst[JOBS + AFTER], *came[JOBS + AFTER];
static unsigned char first[BYTES];

static int is_filled(const unsigned char *bytes)
{
    return bytes[0] == 'x' && memcmp(bytes, bytes + 1, BYTES - 1) == 0;
}

int main(void)
{
    struct evener_runtime *runtime;
    struct evener_session *session;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;
    unsigned char *buffers = malloc((size_t)(JOBS + AFTER) * BYTES);
    int canceled = 0;

    options.threads = 1, options.flags = EVENER_NO_COST_CACHE;
    DEMAND(buffers && evener_runtime_open(&runtime, &options) == EVENER_OK);
    DEMAND(evener_session_open(runtime, &session, "AES-256-CTR", EVENER_ENCRYPT, 0, "0123456789abcdef0123456789ABCDEF", 32) == EVENER_OK);
    DEMAND(evener_queue_open(runtime, &queue, JOBS + AFTER) == EVENER_OK);
    DEMAND(evener_cancel(NULL) == EVENER_EINVAL && evener_cancel(queue) == EVENER_OK); /* nothing is under way */
    memset(first, 'x', BYTES);
    struct evener_job job = {.session = session, .src = first, .dst = first, .src_len = BYTES, .dst_space = BYTES}, *one = &job;
    DEMAND(evener_crypt(queue, &one, 1) == 1 && job.status == EVENER_OK);

    /* One thread may be done with all of a round before this one goes on, but not with those of each. */
    for (int round = 0; round < ROUNDS && canceled == 0; round++) {
        memset(buffers, 'x', (size_t)(JOBS + AFTER) * BYTES);
        for (int i = 0; i < JOBS + AFTER; i++) {
            jobs[i] = job, jobs[i].src = jobs[i].dst = buffers + (size_t)i * BYTES, jobs[i].user_data = (uint64_t)i;
            burst[i] = &jobs[i];
        }
        DEMAND(evener_submit(queue, burst, JOBS) == JOBS && evener_cancel(queue) == EVENER_OK);
        DEMAND(evener_submit(queue, burst + JOBS, AFTER) == AFTER);
        for (int count, all = 0; all < JOBS + AFTER; all += count) {
            DEMAND((count = evener_reap(queue, came, JOBS + AFTER, 1, -1)) > 0);
            for (int i = 0; i < count; i++) {
                const unsigned char *result = came[i]->dst;
                if (came[i]->status == EVENER_ECANCELED) {
                    canceled++;
                    DEMAND(came[i]->user_data < JOBS && came[i]->written == 0 && is_filled(result));
                } else {
                    DEMAND(came[i]->status == EVENER_OK && came[i]->written == BYTES && memcmp(result, first, BYTES) == 0);
                }
            }
        }
    }
    DEMAND(canceled > 0 && evener_in_flight(queue) == 0);
    DEMAND(evener_queue_close(queue) == EVENER_OK && evener_session_close(session) == EVENER_OK && evener_runtime_close(runtime) == EVENER_OK);
    free(buffers);
    puts("some were cancelled and the others done");
    return 0;
}
