/* usage: first_thread_ends BYTES: the first thread encrypts messages of so many bytes and ends by pthread_exit; another one goes on, and the process ends with it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGE 1048576
#include "message.h"

static int bytes;

static int messages(int count) {
    int ok = 1;
    while (count-- && ok) ok = encrypt(EVP_aes_256_ctr(), bytes) && encrypt(EVP_aes_256_cbc(), bytes);
    return ok;
}

static void *other(void *ready) {
    int byte, ok = read(*(int *)ready, &byte, 1) == 1 && messages(40);
    puts(ok ? "done" : "failed");
    return NULL;
}

int main(int argc, char **argv) {
    static int ends[2];
    pthread_t thread;
    if (argc != 2 || pipe(ends) || pthread_create(&thread, NULL, other, ends)) return 2;
    bytes = atoi(argv[1]);
    if (!messages(40) || write(ends[1], "", 1) != 1) return 3;
    pthread_exit(NULL);
}
