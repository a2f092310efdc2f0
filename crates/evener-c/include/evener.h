/*
 * libevener: bursts of symmetric cryptography on cores, in multi-buffer lanes and on crypto modules.
 *
 * A program opens a runtime, sessions (algorithm, direction and key) and one queue per thread. It hands over arrays of jobs and gets back
 * those that are finished, each with a status of its own. evener.h(3) has every rule; this file has the short form.
 *
 *   evener_crypt(queue, jobs, n)           runs a burst on the calling thread and returns when it is done
 *   evener_submit(queue, jobs, n)          hands over as many as fit and returns at once, how many
 *   evener_reap(queue, jobs, n, min, ns)   gives back what is finished, in any order
 *
 * A job and its buffers are lent from evener_submit until evener_reap gives the job back: until then the program neither writes nor frees
 * them, and does not read dst. What one job has as dst is meanwhile no other job's src, dst or aad, nor any job's struct; and no struct is
 * submitted again before it came back. The library cannot see either, and two threads would write there at once.
 *
 * Runtime and session may be used by any thread at any time; a queue by one thread at a time. Calls answer 0 or a count, or a negative
 * enum evener_error; evener_error_text() says more about the calling thread's last one. pthread_cancel waits until the call that a thread
 * is in has returned.
 */
#ifndef EVENER_H
#define EVENER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface that this file describes. evener_version() is that of the library. */
#define EVENER_ABI 1

struct evener_runtime;
struct evener_session;
struct evener_queue;

enum evener_error {
    EVENER_OK = 0,
    EVENER_PENDING = 1,          /* status only: the job is under way */
    EVENER_EINVAL = -1,          /* an argument or a job that cannot be; of a job, nothing was written */
    EVENER_EALGORITHM = -2,      /* no algorithm of that name */
    EVENER_EKEY = -3,            /* the key does not fit the algorithm, or the direction or padding does not */
    EVENER_EMODULE = -4,         /* a module cannot be had, or failed and no core may do its work */
    EVENER_ESYSTEM = -5,         /* the system has no thread, descriptor or memory */
    EVENER_EFULL = -6,           /* as many queues as a runtime has */
    EVENER_ECANCELED = -7,       /* status: given up before it was begun; memory is as it was */
    EVENER_EBADMSG = -8,         /* status: not authentic; the output was cleared */
    EVENER_EBADPADDING = -9,     /* status: the padding is wrong; the output was cleared */
    EVENER_EUNSUPPORTED = -10,   /* no driver does this */
    EVENER_ELIBRARY = -11,       /* a cryptographic library refused a call */
    EVENER_EFORK = -12,          /* made before a fork and used in the child */
    EVENER_EPANIC = -13,         /* a bug of the library: the queue takes no more work */
    EVENER_ECLOSED = -14         /* the runtime was closed */
};

enum evener_direction {
    EVENER_ENCRYPT = 0,          /* hashes and MACs: compute */
    EVENER_DECRYPT = 1
};

/* Of evener_session_open. */
#define EVENER_PADDING (1u << 0)         /* PKCS#7, for ECB and CBC */

/* Of evener_options.flags. */
#define EVENER_NO_COST_CACHE (1u << 0)   /* neither read nor write what jobs cost on this machine */

/* evener_options.threads: as many as the process may use cores. */
#define EVENER_THREADS_ALL (-1)

struct evener_options {
    size_t size;                         /* sizeof(struct evener_options), up to 4096; what a later header adds is zero or refused */
    int32_t threads;                     /* worker threads; 0: evener_submit does the work itself */
    uint32_t flags;
    const char *const *modules;          /* names as `evener --module` takes them, NULL at the end; or NULL */
    const char *policy;                  /* as `evener --policy` takes it; NULL: the default */
};

#define EVENER_OPTIONS_INIT { sizeof(struct evener_options), EVENER_THREADS_ALL, 0, NULL, NULL }

struct evener_job {
    struct evener_session *session;
    const void *src;                     /* plaintext, ciphertext or message; jobs may share it, as they may aad */
    size_t src_len;
    void *dst;                           /* src itself: in place; else no byte of it may be src's or aad's. NULL for hashes */
    size_t dst_space;                    /* bytes that may be written there: evener_output_length() at least */
    const void *aad;                     /* associated data, AEAD only */
    size_t aad_len;
    uint8_t iv[16];                      /* IV, nonce, counter or tweak: the first evener_iv_length() bytes count */
    uint8_t tag[64];                     /* in where an AEAD decrypts; else out: tag, digest or MAC */
    uint64_t user_data;                  /* the program's; never read */
    size_t written;                      /* out: bytes at dst */
    int32_t status;                      /* out: EVENER_OK or why not */
    uint32_t reserved0;                  /* 0, as the next */
    uint64_t reserved[4];
};

struct evener_statistics {
    size_t size;                         /* in: sizeof(struct evener_statistics), up to 4096; out: as much of it as the library knows */
    uint64_t jobs;                       /* finished well, by whatever did them */
    uint64_t bytes;                      /* input of those */
    uint64_t failed;                     /* finished badly */
    uint64_t lane_jobs;                  /* of jobs: in multi-buffer lanes */
    uint64_t lane_bytes;
    uint64_t module_jobs;                /* of jobs: on modules */
    uint64_t module_bytes;
    uint64_t redone;                     /* failed on a module and done again on a core */
    uint64_t checked;                    /* results of modules compared with a core's */
    uint64_t lost_modules;               /* modules out of service */
};

/* options may be NULL. Threads are started with the first queue. */
int evener_runtime_open(struct evener_runtime **runtime, const struct evener_options *options);
/* Finishes what was submitted and ends the threads. Queues and sessions that are left answer EVENER_ECLOSED and are still to be closed: keys
 * go with their sessions and queues, as below. */
int evener_runtime_close(struct evener_runtime *runtime);

int evener_session_open(struct evener_runtime *runtime, struct evener_session **session, const char *algorithm, int direction,
                        unsigned flags, const void *key, size_t key_len);
/* Also while jobs with it are under way: the key is wiped after the last, and what a queue's own thread made of it with that queue's next
 * evener_submit, evener_reap or evener_crypt, whatever they answer but EVENER_EFORK and EVENER_EPANIC, or its close. */
int evener_session_close(struct evener_session *session);
/* Bytes of the IV that count, of the tag or digest, and that a job of src_len may write at most (SIZE_MAX where that is more than memory). */
size_t evener_iv_length(const struct evener_session *session);
size_t evener_tag_length(const struct evener_session *session);
size_t evener_output_length(const struct evener_session *session, size_t src_len);

/* depth: jobs that may be under way, 1 to 65536. */
int evener_queue_open(struct evener_runtime *runtime, struct evener_queue **queue, unsigned depth);
/* Waits for what is under way, whose statuses are written though nobody reaps it. */
int evener_queue_close(struct evener_queue *queue);

/* Hands over jobs from the front, as many as fit; answers how many. Where the runtime has threads it does not wait: a job for which there is
 * no space stays, with all behind it. */
int evener_submit(struct evener_queue *queue, struct evener_job *const *jobs, unsigned n);
/* Gives back up to n finished jobs; answers how many. Waits until min are there, or all that are under way where those are fewer, or
 * timeout_ns is over; a negative timeout is none. */
int evener_reap(struct evener_queue *queue, struct evener_job **jobs, unsigned n, unsigned min, int64_t timeout_ns);
/* Runs n jobs and returns when each has its status; answers n. Jobs under way in the queue are left alone. */
int evener_crypt(struct evener_queue *queue, struct evener_job *const *jobs, unsigned n);
/* A descriptor that is readable while finished jobs wait, for poll and its like; now and then it is readable though none do. It is the
 * queue's: not to be read, written or closed. */
int evener_queue_fd(struct evener_queue *queue);
/* Jobs under way that no thread has begun come back as EVENER_ECANCELED. */
int evener_cancel(struct evener_queue *queue);
/* Jobs handed over and not reaped. */
int evener_in_flight(struct evener_queue *queue);

/* What the runtime did so far; what is counted never falls, but for lost_modules. statistics->size says how much of the struct there is; what
 * the library does not know of it is zero afterwards. */
int evener_statistics(struct evener_runtime *runtime, struct evener_statistics *statistics);
/* What is known of the costs of such jobs, and what does them, as text. *length: space in, length of the text without its NUL out; as
 * much as fits is written. text may be NULL where *length is 0. */
int evener_explain(struct evener_runtime *runtime, const char *algorithm, int direction, size_t bytes, int in_place, char *text,
                   size_t *length);

/* Names of algorithms, from 0 on; NULL behind the last. */
const char *evener_algorithm(unsigned index);
/* What an error or status means. */
const char *evener_strerror(int error);
/* What was wrong in the calling thread's last call that answered an error; valid until its next. */
const char *evener_error_text(void);
/* The library's version, as "0.2.0". */
const char *evener_version(void);

#ifdef __cplusplus
}
#endif

#endif
