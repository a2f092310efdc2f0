/* VPP's AES-CBC encryption of many messages (src/vppinfra/crypto/aes_cbc.h of FDio/vpp) beside libcrypto's, one core, in turns: what
 * `lanes_speed` of evener-kernels measures of Evener's lanes. As VPP's engine does it, 256 messages at a time, each with an expanded key.
 *
 *   git clone https://github.com/FDio/vpp && cd vpp/src/vppinfra
 *   sed -e s/@LOG2_CACHE_LINE_BYTES@/6/ -e s/@N_PREFETCHES@/16/ -e s/@VECTOR_GROW_BY_ONE@/0/ config.h.in > config.h
 *   gcc -O3 -march=native -DCLIB_DEBUG=0 -I.. .../bench/rivals/vpp_cbc.c -lcrypto -o vpp_cbc && ./vpp_cbc [KEY_BITS] [MESSAGES]
 *
 * Without AVX-512: -mno-avx512f; without VAES: -mno-vaes. Medians of 41 rounds; in place, then apart; each result is compared with libcrypto's.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vppinfra/clib.h>
#include <vppinfra/vector.h>
#include <vppinfra/crypto/aes_cbc.h>

enum { ROUNDS = 41, AT_ONCE = 256, BYTES = 64 << 20 };

static u8 key[32], iv[16];
static aes_key_size_t key_size;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void by_vpp(aes_cbc_key_data_t *data, u8 *from, u8 *to, size_t size, size_t count)
{
    aes_cbc_key_data_t *keys[AT_ONCE];
    uword indices[AT_ONCE], lengths[AT_ONCE];
    u8 *plain[AT_ONCE], *cipher[AT_ONCE], *ivs[AT_ONCE];
    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t n = count - done < AT_ONCE ? count - done : AT_ONCE;
        for (size_t i = 0; i < n; i++) {
            keys[i] = data, indices[i] = i, lengths[i] = size, ivs[i] = iv;
            plain[i] = from + (done + i) * size, cipher[i] = to + (done + i) * size;
        }
        clib_aes_cbc_encrypt_multi(keys, indices, plain, lengths, ivs, key_size, cipher, n);
    }
}

static void by_libcrypto(EVP_CIPHER_CTX *ctx, u8 *from, u8 *to, size_t size, size_t count)
{
    int n;
    for (size_t i = 0; i < count; i++) {
        EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, iv);
        EVP_EncryptUpdate(ctx, to + i * size, &n, from + i * size, size);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(double *)a, y = *(double *)b;
    return (x > y) - (x < y);
}

static void measure(size_t size, size_t count, int apart)
{
    u8 *from = aligned_alloc(4096, size * count + 4096), *to = apart ? aligned_alloc(4096, size * count + 4096) : from;
    u8 *right = malloc(size * count);
    static aes_cbc_key_data_t data __attribute__((aligned(64)));
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    const EVP_CIPHER *ciphers[] = {EVP_aes_128_cbc(), EVP_aes_192_cbc(), EVP_aes_256_cbc()};
    double took[2][ROUNDS];
    EVP_EncryptInit_ex(ctx, ciphers[key_size], NULL, key, iv);
    EVP_CIPHER_CTX_set_padding(ctx, 0);
    clib_aes_cbc_key_expand(&data, key, key_size);
    memset(from, 3, size * count);
    by_libcrypto(ctx, from, right, size, count);
    by_vpp(&data, from, to, size, count);
    if (memcmp(to, right, size * count) != 0) {
        puts("wrong");
        exit(1);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        by_libcrypto(ctx, from, to, size, count);
        double middle = now();
        by_vpp(&data, from, to, size, count);
        took[0][round] = middle - start;
        took[1][round] = now() - middle;
    }
    qsort(took[0], ROUNDS, sizeof(double), by_size);
    qsort(took[1], ROUNDS, sizeof(double), by_size);
    double bytes = (double)size * count / 1e9, plain = took[0][ROUNDS / 2], vpp = took[1][ROUNDS / 2];
    printf("%8zu %14.2f %14.2f (%5.2f)\n", size, bytes / plain, bytes / vpp, plain / vpp);
    if (apart) free(to);
    free(from), free(right), EVP_CIPHER_CTX_free(ctx);
}

int main(int argc, char **argv)
{
    int bits = argc > 1 ? atoi(argv[1]) : 128;
    size_t count = argc > 2 ? atoi(argv[2]) : 0, sizes[] = {64, 256, 1024, 4096, 16384};
    key_size = bits == 256 ? AES_KEY_256 : bits == 192 ? AES_KEY_192 : AES_KEY_128;
    memset(key, 7, sizeof key), memset(iv, 9, sizeof iv);
    for (int apart = 0; apart < 2; apart++) {
        printf("CBC encryption, %d bits, %s\n   bytes libcrypto GB/s       VPP\n", bits, apart ? "apart" : "in place");
        for (int i = 0; i < 5; i++) measure(sizes[i], count ? count : BYTES / sizes[i], apart);
    }
    return 0;
}
