/* usage: generations COUNT BYTES [cbc]: a process encrypts so many at once (CTR, or CBC) and hashes, forks the next, which does the same, and
 * ends. Prints of the generation at a third and of the last: descriptors, KiB that malloc has given out, and KiB of memory of its own (RssAnon). */
#include <dirent.h>
#include <malloc.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL 16384
#define LARGE (1 << 20)
#include "message.h"

static int is_cbc;

static int work(int bytes) {
    unsigned char digest[32];
    int ok = EVP_Digest(in, 1000, digest, NULL, EVP_sha256(), NULL);
    for (int i = 0; i < 3; i++) ok = ok && encrypt(EVP_aes_128_cbc(), SMALL);
    return ok && encrypt(is_cbc ? EVP_aes_128_cbc() : EVP_aes_128_ctr(), bytes);
}

static int descriptors(void) {
    int count = -1; /* The one by which they are listed. */
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;
    while ((entry = readdir(list))) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static long own_kib(void) {
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &kib);
    fclose(file);
    return kib;
}

static void say(int to) {
    char line[64];
    struct mallinfo2 heap = mallinfo2();
    long given_kib = (heap.uordblks + heap.hblkhd) >> 10;
    int len = snprintf(line, sizeof line, "%d %ld %ld\n", descriptors(), given_kib, own_kib());
    if (write(to, line, len) != len) _exit(1);
}

static void generation(int number, int count, int bytes, int to) {
    for (; number <= count; number++) {
        if (!work(bytes)) _exit(3);
        if (number == count / 3 || number == count) say(to);
        pid_t next = number < count ? fork() : 1;
        if (next < 0) _exit(4);
        if (next) _exit(0);
    }
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    is_cbc = argc == 4 && !strcmp(argv[3], "cbc");
    int ends[2], lines = 0, bytes = atoi(argv[2]);
    if (bytes > LARGE) return 2;
    if (pipe(ends)) return 2;
    pid_t first = fork();
    if (!first) {
        close(ends[0]);
        memset(in, 1, sizeof in);
        if (work(bytes)) generation(1, atoi(argv[1]), bytes, ends[1]);
        _exit(3);
    }
    close(ends[1]);
    /* Until the last generation has ended. */
    FILE *from = fdopen(ends[0], "r");
    char line[64];
    for (; fgets(line, sizeof line, from); lines++) fputs(line, stdout);
    return lines == 2 ? 0 : 5;
}
