/* A thread that is cancelled ends behind the call that it is in, with all that the call promises done. */
#include <evener.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 100 };

#define DEMAND(is_so) do { if (!(is_so)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, evener_error_text()); exit(1); } } while (0)

#define STEP(is_so) do { DEMAND(is_so); step++; } while (0)

static int step;

/* Nothing in it is a point of cancellation but calls of the library, if they are. */
static void *user(void *nothing)
{
    static struct evener_job jobs[JOBS], *burst[JOBS], *came[JOBS];
    struct evener_runtime *runtime;
    struct evener_session *session;
    struct evener_queue *queue;
    int state;

    DEMAND(pthread_cancel(pthread_self()) == 0);
    STEP(evener_runtime_open(&runtime, NULL) == EVENER_OK);
    STEP(evener_session_open(runtime, &session, "SHA-256", EVENER_ENCRYPT, 0, NULL, 0) == EVENER_OK);
    STEP(evener_queue_open(runtime, &queue, JOBS) == EVENER_OK);
    for (int i = 0; i < JOBS; i++)
        jobs[i].session = session, jobs[i].src = "abc", jobs[i].src_len = 3, burst[i] = &jobs[i];
    STEP(evener_queue_fd(queue) >= 0);
    STEP(evener_submit(queue, burst, JOBS) == JOBS);
    STEP(evener_reap(queue, came, JOBS, JOBS, -1) == JOBS);
    STEP(evener_crypt(queue, burst, JOBS) == JOBS);
    STEP(evener_queue_close(queue) == EVENER_OK);
    STEP(evener_session_close(session) == EVENER_OK);
    STEP(evener_runtime_close(runtime) == EVENER_OK);
    STEP(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0 && state == PTHREAD_CANCEL_ENABLE);
    pthread_testcancel();
    return nothing;
}

int main(void)
{
    pthread_t thread;
    void *end;

    DEMAND(pthread_create(&thread, NULL, user, NULL) == 0);
    DEMAND(pthread_join(thread, &end) == 0);
    DEMAND(end == PTHREAD_CANCELED && step == 11);
    return 0;
}
