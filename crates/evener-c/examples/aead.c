/*
 * Authenticated encryption with associated data: a page of a file with its header, and what a changed one is answered with.
 *
 *   cc aead.c $(pkg-config --cflags --libs evener) && ./a.out
 */
#include <evener.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Test case 4 of the specification of GCM (McGrew and Viega). */
static const unsigned char key[16] = {0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08};
static const unsigned char nonce[12] = {0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce, 0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88};
static const unsigned char text[60] = {
    0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26, 0x9a, 0x86, 0xa7, 0xa9, 0x53,
    0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31, 0x8a, 0x72, 0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53,
    0x2f, 0xcf, 0x0e, 0x24, 0x49, 0xa6, 0xb5, 0x25, 0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39};
static const unsigned char header[20] = {0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed,
                                         0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xab, 0xad, 0xda, 0xd2};
static const unsigned char tag[16] = {0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb, 0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47};

static void check(int answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "%s: %s (%s)\n", what, evener_error_text(), evener_strerror(answer));
        exit(1);
    }
}

static void demand(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

int main(void)
{
    unsigned char sealed[sizeof text], opened[sizeof text];
    struct evener_runtime *runtime;
    struct evener_session *seal, *open;
    struct evener_queue *queue;
    struct evener_options options = EVENER_OPTIONS_INIT;
    struct evener_job job = {0}, *burst[1] = {&job};

    options.threads = 0;
    check(evener_runtime_open(&runtime, &options), "evener_runtime_open");
    check(evener_session_open(runtime, &seal, "AES-128-GCM", EVENER_ENCRYPT, 0, key, sizeof key), "evener_session_open");
    check(evener_session_open(runtime, &open, "AES-128-GCM", EVENER_DECRYPT, 0, key, sizeof key), "evener_session_open");
    check(evener_queue_open(runtime, &queue, 1), "evener_queue_open");

    job.session = seal;
    job.src = text, job.src_len = sizeof text;
    job.dst = sealed, job.dst_space = sizeof sealed;
    job.aad = header, job.aad_len = sizeof header;
    memcpy(job.iv, nonce, sizeof nonce); /* never the same twice under one key */
    check(evener_crypt(queue, burst, 1), "evener_crypt");
    check(job.status, "sealing");
    demand(memcmp(job.tag, tag, evener_tag_length(seal)) == 0, "the tag is not what the specification says");

    job.session = open; /* job.tag stands where it is to be checked */
    job.src = sealed, job.dst = opened;
    check(evener_crypt(queue, burst, 1), "evener_crypt");
    check(job.status, "opening");
    demand(memcmp(opened, text, sizeof text) == 0, "it did not come back as it was");

    sealed[7] ^= 1;
    check(evener_crypt(queue, burst, 1), "evener_crypt");
    demand(job.status == EVENER_EBADMSG && job.written == 0, "what was changed was taken for authentic");
    demand(opened[0] == 0 && opened[sizeof opened - 1] == 0, "what is not authentic was left in the output");
    printf("sealed, opened, and refused after a change: %s\n", evener_strerror(job.status));

    check(evener_queue_close(queue), "evener_queue_close");
    check(evener_session_close(seal), "evener_session_close");
    check(evener_session_close(open), "evener_session_close");
    check(evener_runtime_close(runtime), "evener_runtime_close");
    return 0;
}
