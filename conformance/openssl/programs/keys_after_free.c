/* usage: keys_after_free CIPHER BYTES e|d [copy]: one message, or of one that is copied; all is freed, and the program's writable memory looked through
 * for the key. Prints where it is, and how many there are. Once in a process: the dynamic linker looks each function up once. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20, KEY = 64, FOUND = 16 };

static unsigned char in[PIECE], out[PIECE + 64], piece[PIECE];
/* The key, but for what is added to each byte: this is no copy. */
static unsigned char masked[KEY];
static const unsigned char mask = 0x5a;

static __attribute__((noinline)) void use(const char *name, int bytes, int encrypts, int copies) {
    unsigned char iv[16] = {1}, *key = malloc(KEY);
    int written;
    for (int i = 0; i < KEY; i++) ((volatile unsigned char *)key)[i] = masked[i] ^ mask;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
    EVP_CipherInit_ex2(x, cipher, key, iv, encrypts, NULL);
    EVP_CipherUpdate(x, out, &written, in, bytes);
    if (copies) {
        EVP_CIPHER_CTX *y = EVP_CIPHER_CTX_new();
        EVP_CIPHER_CTX_copy(y, x);
        EVP_CIPHER_CTX_free(y);
    }
    EVP_CIPHER_CTX_free(x);
    EVP_CIPHER_free(cipher);
    OPENSSL_cleanse(key, KEY);
    free(key);
}

static int is_key(const unsigned char *at) {
    int same = 0;
    while (same < FOUND && at[same] == (masked[same] ^ mask)) same++;
    return same == FOUND;
}

/* Pieces overlap by less than what is looked for. */
static int copies_in(int memory, unsigned long at, unsigned long end) {
    int found = 0;
    for (; at < end; at += PIECE - (FOUND - 1)) {
        ssize_t got = pread(memory, piece, end - at < PIECE ? end - at : PIECE, at);
        for (ssize_t i = 0; i + FOUND <= got; i++) {
            if (at + i - (unsigned long)piece < PIECE || !is_key(piece + i)) continue;
            printf("at %lx\n", at + i);
            found++;
        }
        if (got < PIECE) break;
    }
    return found;
}

int main(int count, char **words) {
    if (count < 4) return 2;
    for (int i = 0; i < KEY; i++) masked[i] = i * 37 + 11;
    use(words[1], atoi(words[2]), words[3][0] == 'e', count > 4);
    char line[512], rights[8];
    unsigned long first, end;
    int memory = open("/proc/self/mem", O_RDONLY), found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &first, &end, rights) == 3 && !strncmp(rights, "rw", 2)) found += copies_in(memory, first, end);
    printf("%d copies\n", found);
    return 0;
}
