/* usage: small_stack BYTES: a thread with the smallest stack that there is does the first hash and the first messages of its process, in CBC and GCM,
 * and those of a child that it forks. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE 1048576
#include "message.h"

static int messages(int bytes) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    int ok = EVP_Digest("abc", 3, digest, NULL, EVP_sha256(), NULL);
    for (int i = 0; i < 20; i++) ok = ok && encrypt(EVP_aes_256_cbc(), bytes) && encrypt(EVP_aes_256_gcm(), bytes);
    return ok;
}

static void *body(void *bytes) {
    int status = 1, ok = messages(*(int *)bytes);
    pid_t child = fork();
    if (!child) _exit(!messages(*(int *)bytes));
    return ok && child > 0 && waitpid(child, &status, 0) == child && !status ? bytes : NULL;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int bytes = atoi(argv[1]);
    void *result;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN)) return 3;
    if (pthread_create(&thread, &attributes, body, &bytes) || pthread_join(thread, &result)) return 4;
    puts(result ? "done" : "failed");
    return !result;
}
