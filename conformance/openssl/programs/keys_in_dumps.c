/* usage: keys_in_dumps: counts copies of a key in the parts of this process's memory that a core dump would have (no `dd` in VmFlags of
 * /proc/self/smaps): while contexts with it live, and after they were freed. Prints "LIVING living, FREED freed". The key is drawn by the program
 * and kept inverted, so that its own copy is none. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char inverted[32], in[1 << 20], out[(1 << 20) + 32];

static int copies_in(int memory, unsigned long from, unsigned long to) {
    static unsigned char page[4096 + 31];
    int found = 0;
    for (unsigned long at = from; at < to; at += 4096) {
        ssize_t n = pread(memory, page, sizeof page, at);
        for (ssize_t i = 0; i + 32 <= n && i < 4096; i++) {
            int same = 0;
            while (same < 32 && (page[i + same] ^ 0xff) == inverted[same]) same++;
            /* Not what was read into this very buffer. */
            if (same == 32 && !(at + i >= (unsigned long)page && at + i < (unsigned long)page + sizeof page)) found++;
        }
        memset(page, 0, sizeof page);
    }
    return found;
}

static int copies(void) {
    char line[512];
    unsigned long from = 0, to = 0, a, b;
    int found = 0, memory = open("/proc/self/mem", O_RDONLY), is_writable = 0;
    char rights[8];
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &a, &b, rights) == 3) from = a, to = b, is_writable = rights[1] == 'w';
        else if (!strncmp(line, "VmFlags:", 8) && is_writable && !strstr(line, " dd")) found += copies_in(memory, from, to);
    }
    fclose(maps);
    close(memory);
    return found;
}

static __attribute__((noinline)) void begin(EVP_CIPHER_CTX **all) {
    static const char *const names[] = {"AES-256-CBC", "AES-256-CTR", "AES-256-ECB", "AES-256-GCM"};
    unsigned char key[32], iv[16] = {1};
    int n;
    for (int i = 0; i < 32; i++) key[i] = inverted[i] ^ 0xff;
    for (int i = 0; i < 4; i++) {
        EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, names[i], NULL);
        all[i] = EVP_CIPHER_CTX_new();
        if (!EVP_EncryptInit_ex2(all[i], cipher, key, iv, NULL) || !EVP_EncryptUpdate(all[i], out, &n, in, sizeof in)) exit(3);
        EVP_CIPHER_free(cipher);
    }
    OPENSSL_cleanse(key, sizeof key);
}

/* What lies below is dead, and cleared: how it is left is another program's question. */
static __attribute__((noinline)) void clear(void) {
    volatile char below[1 << 16];
    for (size_t i = 0; i < sizeof below; i++) below[i] = 0;
}

int main(void) {
    EVP_CIPHER_CTX *all[4];
    int drawn = open("/dev/urandom", O_RDONLY);
    if (read(drawn, inverted, sizeof inverted) != sizeof inverted) return 2;
    close(drawn);
    begin(all);
    clear();
    int living = copies();
    for (int i = 0; i < 4; i++) EVP_CIPHER_CTX_free(all[i]);
    clear();
    printf("%d living, %d freed\n", living, copies());
    return 0;
}
