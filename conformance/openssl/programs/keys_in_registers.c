/* usage: keys_in_registers: messages by several ciphers in several sizes, and after each call a look at the vector registers: does one hold a round key?
 * Prints the calls that left one; the status is 1 then. On other processors than x86-64 nothing is looked at. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__

#include <cpuid.h>

typedef unsigned char block[16];

static unsigned char in[1 << 20], out[(1 << 20) + 64], key[64];
/* What XSAVE has: SSE, AVX, AVX-512. */
static unsigned char saved[16384] __attribute__((aligned(64)));
static int has_avx, has_wide;
static block round_keys[30];
static int round_key_count;

static inline __attribute__((always_inline)) void save(void) {
    __asm__ volatile("xor %%edx, %%edx\n mov $0xe6, %%eax\n xsave64 (%0)" ::"r"(saved) : "eax", "edx", "memory");
}

#define CLEAR(number) "vpxord %%zmm" #number ", %%zmm" #number ", %%zmm" #number "\n"

static inline __attribute__((always_inline)) void clear(void) {
    if (has_avx) __asm__ volatile("vzeroall" ::: "memory");
    if (has_wide)
        __asm__ volatile(CLEAR(16) CLEAR(17) CLEAR(18) CLEAR(19) CLEAR(20) CLEAR(21) CLEAR(22) CLEAR(23) CLEAR(24) CLEAR(25) CLEAR(26)
                             CLEAR(27) CLEAR(28) CLEAR(29) CLEAR(30) CLEAR(31)::: "memory");
}

/* Round keys as ECB shows them: that of round 0 is the key. The schedule of FIPS 197, 5.2, byte by byte. */
static unsigned char substituted(unsigned char byte) {
    static unsigned char table[256];
    if (!table[0]) {
        unsigned char p = 1, q = 1;
        do {
            p ^= (p << 1) ^ (p & 0x80 ? 0x1b : 0);
            q ^= q << 1, q ^= q << 2, q ^= q << 4;
            if (q & 0x80) q ^= 0x09;
            table[p] = 0x63 ^ q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4);
        } while (p != 1);
        table[0] = 0x63;
    }
    return table[byte];
}

static void expand(const unsigned char *from, int words) {
    unsigned char *to = round_keys[round_key_count], constant = 1;
    int all = 4 * (words + 7);
    memcpy(to, from, 4 * words);
    for (int i = words; i < all; i++) {
        unsigned char last[4];
        for (int j = 0; j < 4; j++) {
            last[j] = to[4 * (i - 1) + (i % words ? j : (j + 1) % 4)];
            if (i % words == 0 || (words > 6 && i % words == 4)) last[j] = substituted(last[j]);
        }
        if (i % words == 0) last[0] ^= constant, constant = constant << 1 ^ (constant & 0x80 ? 0x1b : 0);
        for (int j = 0; j < 4; j++) to[4 * i + j] = to[4 * (i - words) + j] ^ last[j];
    }
    round_key_count += all / 4;
}

static int look(const char *name, int bytes, const char *call) {
    int found = 0;
    for (size_t at = 0; at + 16 <= sizeof saved; at += 16)
        for (int i = 0; i < round_key_count; i++) found += !memcmp(saved + at, round_keys[i], 16);
    if (found) printf("%s, %d bytes: %d round keys after %s\n", name, bytes, found, call);
    return found;
}

#define CALLED(call) (clear(), (void)(call), save(), bad += look(name, bytes, #call))

static int message(const char *name, int bytes, int encrypts) {
    unsigned char iv[16] = {1}, tag[16] = {3};
    int key_bytes = strstr(name, "128") ? 16 : 32, is_xts = !!strstr(name, "XTS"), bad = 0, n;
    round_key_count = 0;
    expand(key, key_bytes / 4);
    if (is_xts) expand(key + key_bytes, key_bytes / 4);
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new(), *y = EVP_CIPHER_CTX_new();
    CALLED(EVP_CipherInit_ex2(x, cipher, key, iv, encrypts, NULL));
    CALLED(EVP_CipherUpdate(x, out, &n, in, bytes));
    CALLED(EVP_CipherUpdate(x, out, &n, in, bytes));
    /* OpenSSL's own copies leave keys there, too. */
    CALLED(EVP_CIPHER_CTX_copy(y, x));
    CALLED(EVP_CIPHER_CTX_free(y));
    if (!encrypts) EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_TAG, 16, tag);
    CALLED(EVP_CipherFinal_ex(x, out, &n));
    CALLED(EVP_CipherInit_ex2(x, NULL, NULL, iv, encrypts, NULL));
    CALLED(EVP_Cipher(x, out, in, bytes));
    CALLED(EVP_CIPHER_CTX_free(x));
    EVP_CIPHER_free(cipher);
    return bad;
}

int main(void) {
    static const char *const names[] = {"AES-128-GCM", "AES-256-GCM", "AES-128-CTR", "AES-256-CTR", "AES-256-XTS", "AES-256-CBC", "AES-128-ECB"};
    static const int sizes[] = {5, 16, 64, 1000, 4096, 65536, 1000000};
    unsigned a, b, c, d;
    int bad = 0;
    __builtin_cpu_init();
    /* XSAVE is on where the system says so. */
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    has_avx = __builtin_cpu_supports("avx");
    has_wide = __builtin_cpu_supports("avx512f");
    for (int i = 0; i < 64; i++) key[i] = i * 37 + 11;
    memset(in, 1, sizeof in);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            int bytes = sizes[j];
            if (strstr(names[i], "XTS") && bytes < 16) continue;
            if ((strstr(names[i], "CBC") || strstr(names[i], "ECB")) && bytes % 16) bytes += 16 - bytes % 16;
            bad += message(names[i], bytes, 1) + message(names[i], bytes, 0);
        }
    return bad > 0;
}

#else
int main(void) { return 0; }
#endif
