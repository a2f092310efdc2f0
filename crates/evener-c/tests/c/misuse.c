/* Arguments that cannot be: each is answered with its error and a text, and nothing else happens. */
#include <evener.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEMAND(is_so) do { if (!(is_so)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #is_so, evener_error_text()); exit(1); } } while (0)

int main(void)
{
    static const char *const modules[] = {"no-such-module", NULL};
    struct evener_runtime *runtime;
    struct evener_session *session;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;
    struct evener_statistics statistics = {.size = 16, .bytes = 77};
    struct evener_job job = {0}, *one = &job, *none = NULL;
    char text[1000];
    size_t length = sizeof text;

    DEMAND(evener_runtime_open(NULL, NULL) == EVENER_EINVAL && *evener_error_text());
    options.size = 7;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_EINVAL && strstr(evener_error_text(), "OPTIONS_INIT"));
    /* A later header's struct: taken where what it adds is zero. */
    struct { struct evener_options known; uint64_t added; } later = {EVENER_OPTIONS_INIT, 1};
    later.known.size = sizeof later;
    DEMAND(evener_runtime_open(&runtime, &later.known) == EVENER_EINVAL);
    later.added = 0;
    DEMAND(evener_runtime_open(&runtime, &later.known) == EVENER_OK && evener_runtime_close(runtime) == EVENER_OK);
    options.size = (size_t)1 << 40; /* nobody began it: what lies behind it is not looked at */
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_EINVAL);
    options.size = sizeof options, options.threads = -2;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_EINVAL && strstr(evener_error_text(), "threads"));
    options.threads = 0, options.flags = 1u << 31;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_EINVAL && strstr(evener_error_text(), "flags"));
    options.flags = EVENER_NO_COST_CACHE, options.policy = "no-such-policy";
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_EINVAL && strstr(evener_error_text(), "no-such-policy"));
    options.policy = NULL, options.modules = modules;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_EMODULE && strstr(evener_error_text(), "no-such-module"));
    options.modules = NULL;
    DEMAND(evener_runtime_open(&runtime, &options) == EVENER_OK);

    DEMAND(evener_session_open(runtime, &session, "AES-129-CBC", 0, 0, "", 0) == EVENER_EALGORITHM);
    DEMAND(evener_session_open(runtime, &session, NULL, 0, 0, "", 0) == EVENER_EINVAL);
    DEMAND(evener_session_open(runtime, &session, "AES-128-CBC", 0, 0, "short", 5) == EVENER_EKEY);
    DEMAND(evener_session_open(runtime, &session, "AES-128-CBC", 2, 0, "0123456789abcdef", 16) == EVENER_EINVAL);
    DEMAND(evener_session_open(runtime, &session, "AES-128-CBC", 0, 2, "0123456789abcdef", 16) == EVENER_EINVAL);
    DEMAND(evener_session_open(runtime, &session, "AES-128-CTR", 0, EVENER_PADDING, "0123456789abcdef", 16) == EVENER_EKEY);
    DEMAND(evener_session_open(runtime, &session, "SHA-256", EVENER_DECRYPT, 0, NULL, 0) == EVENER_EKEY);
    DEMAND(!strstr(evener_error_text(), "0123456789abcdef"));
    DEMAND(evener_session_open(runtime, &session, "AES-128-CBC", 0, EVENER_PADDING, "0123456789abcdef", 16) == EVENER_OK);
    DEMAND(evener_iv_length(session) == 16 && evener_tag_length(session) == 0 && evener_output_length(session, 16) == 32);
    DEMAND(evener_iv_length(NULL) == 0 && evener_output_length(session, SIZE_MAX) == SIZE_MAX);

    DEMAND(evener_queue_open(runtime, &queue, 0) == EVENER_EINVAL && evener_queue_open(runtime, &queue, 65537) == EVENER_EINVAL);
    DEMAND(evener_queue_open(NULL, &queue, 1) == EVENER_EINVAL);
    DEMAND(evener_queue_open(runtime, &queue, 65536) == EVENER_OK);
    DEMAND(evener_submit(queue, NULL, 1) == EVENER_EINVAL && evener_submit(queue, &none, 1) == EVENER_EINVAL);
    DEMAND(evener_submit(NULL, &one, 1) == EVENER_EINVAL && evener_submit(queue, NULL, 0) == 0);
    DEMAND(evener_crypt(queue, &none, 1) == EVENER_EINVAL && evener_crypt(queue, NULL, 0) == 0);
    DEMAND(evener_reap(queue, NULL, 1, 0, 0) == EVENER_EINVAL && evener_reap(queue, NULL, 0, 5, -1) == 0);
    DEMAND(evener_crypt(queue, &one, 1) == 1 && job.status == EVENER_EINVAL); /* it has no session */
    job = (struct evener_job){.session = session, .src = text, .src_len = 15, .dst = job.tag, .dst_space = 16};
    DEMAND(evener_crypt(queue, &one, 1) == 1 && job.status == EVENER_EINVAL && job.tag[0] == 0); /* it would write over itself */
    job = (struct evener_job){.session = session, .src = &job.user_data, .src_len = 8, .dst = text, .dst_space = 16};
    DEMAND(evener_submit(queue, &one, 1) == 1 && evener_reap(queue, &one, 1, 1, -1) == 1);
    DEMAND(job.status == EVENER_OK && job.written == 16); /* its own struct may be read */
    DEMAND(evener_queue_fd(queue) >= 0 && evener_queue_fd(queue) == evener_queue_fd(queue));

    DEMAND(evener_statistics(runtime, &statistics) == EVENER_OK && statistics.bytes == 77 && statistics.size == 16);
    struct { struct evener_statistics known; uint64_t added[3]; } more = {{.size = sizeof more}, {7, 7, 7}};
    DEMAND(evener_statistics(runtime, &more.known) == EVENER_OK && more.known.size == sizeof more.known);
    DEMAND(more.known.jobs == 1 && more.known.failed == 2 && !more.added[0] && !more.added[2]);
    statistics.size = 4097;
    DEMAND(evener_statistics(runtime, &statistics) == EVENER_EINVAL && statistics.bytes == 77);
    statistics.size = 0;
    DEMAND(evener_statistics(runtime, &statistics) == EVENER_EINVAL && evener_statistics(runtime, NULL) == EVENER_EINVAL);
    DEMAND(evener_explain(runtime, "AES-128-CBC", 0, 4096, 1, text, &length) == EVENER_OK && length == strlen(text));
    DEMAND(strstr(text, "AES-128-CBC encrypt, up to 4096 B, in place"));
    length = 5;
    DEMAND(evener_explain(runtime, "AES-128-CBC", 0, 4096, 1, text, &length) == EVENER_OK && length > 5 && strlen(text) == 4);
    DEMAND(evener_explain(runtime, "SHA-256", EVENER_DECRYPT, 4096, 1, text, &length) == EVENER_EUNSUPPORTED);
    DEMAND(evener_explain(runtime, "SHA-257", 0, 4096, 1, text, &length) == EVENER_EALGORITHM);
    DEMAND(evener_explain(runtime, "SHA-256", 0, 4096, 1, text, NULL) == EVENER_EINVAL);

    unsigned names = 0;
    while (evener_algorithm(names))
        names++;
    DEMAND(names == 21 && strcmp(evener_algorithm(4), "AES-192-CBC") == 0 && !evener_algorithm(~0u));
    for (int error = -14; error <= 1; error++)
        DEMAND(*evener_strerror(error) && strcmp(evener_strerror(error), evener_strerror(-1000)));

    DEMAND(evener_runtime_close(runtime) == EVENER_OK); /* with a queue and a session left */
    DEMAND(evener_crypt(queue, &one, 1) == EVENER_ECLOSED);
    DEMAND(evener_queue_close(queue) == EVENER_OK && evener_session_close(session) == EVENER_OK);
    DEMAND(evener_queue_close(NULL) == EVENER_OK && evener_session_close(NULL) == EVENER_OK && evener_runtime_close(NULL) == EVENER_OK);
    puts("each is answered");
    return 0;
}
