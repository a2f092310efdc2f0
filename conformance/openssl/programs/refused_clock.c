/* Encrypts while a filter refuses the clocks of core time: calls of the system that a program may forbid at any time, by an error.
 *
 * refused_clock CIPHER BYTES again|new: as many messages as it says are done behind the filter, by one context or each by a new one. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static unsigned char text[1 << 20], out[(1 << 20) + 64], key[64] = {1}, iv[16];

static EVP_CIPHER_CTX *begun(const EVP_CIPHER *cipher)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL || !EVP_EncryptInit_ex(context, cipher, NULL, key, iv))
        exit(2);
    return context;
}

static void refuse_clocks(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        exit(3);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    int bytes = atoi(words[2]), is_new = strcmp(words[3], "new") == 0, length, done = 0;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, words[1], NULL);
    EVP_CIPHER_CTX *context = begun(cipher);
    for (int message = 0; message < 20; message++)
        if (!EVP_EncryptUpdate(context, out, &length, text, bytes))
            return 2;
    refuse_clocks();
    for (int message = 0; message < 300; message++) {
        EVP_CIPHER_CTX *used = is_new ? begun(cipher) : context;
        done += EVP_EncryptUpdate(used, out, &length, text, bytes);
        if (is_new)
            EVP_CIPHER_CTX_free(used);
    }
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
    printf("%d\n", done);
    return 0;
}
