/* usage: sandboxed WARM COUNT [child]: so many requests of each size, then a filter that ends the process at the first call by which anything
 * is opened, made or begun, then more requests. With `child`, a forked child does all that, after one request of its parent's. With WARM 0 only
 * small messages precede the filter, and only such follow. Prints "alive". */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE (4 << 20)
#include "message.h"

static int requests(int bytes, int count) {
    unsigned char digest[32];
    int ok = 1;
    for (int i = 0; i < count; i++)
        ok = ok && encrypt(EVP_aes_128_cbc(), bytes) && encrypt(EVP_aes_256_ctr(), bytes) && encrypt(EVP_aes_256_gcm(), bytes) &&
             EVP_Digest(in, bytes < 4096 ? bytes : 4096, digest, NULL, EVP_sha256(), NULL);
    return ok;
}

static int all_requests(int count, int is_large) {
    if (!requests(100, 300)) return 0;
    return !is_large || (requests(16384, count) && requests(65536, count) && requests(LARGE, count / 3 + 1));
}

#define ENDS(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int filter(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ENDS(clone), ENDS(clone3), ENDS(fork), ENDS(vfork), ENDS(execve),
        ENDS(socket), ENDS(connect),
        ENDS(shmget), ENDS(shmat), ENDS(memfd_create), ENDS(eventfd2), ENDS(epoll_create1), ENDS(epoll_ctl), ENDS(pipe2),
        ENDS(open), ENDS(openat), ENDS(openat2), ENDS(mkdir), ENDS(mkdirat), ENDS(unlinkat), ENDS(fallocate), ENDS(ftruncate),
        ENDS(getdents64), ENDS(kill), ENDS(ioctl), ENDS(setsockopt), ENDS(statx), ENDS(newfstatat),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof lines / sizeof *lines, lines};
    /* For threads that are there already, too. */
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static int work(int warm, int count) {
    memset(in, 1, sizeof in);
    if (!all_requests(warm, warm > 0)) return 3;
    if (!filter()) return 4;
    return all_requests(count, warm > 0) ? 0 : 5;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int warm = atoi(argv[1]), count = atoi(argv[2]), status = 0;
    if (argc > 3) {
        if (!requests(16384, 1)) return 3;
        pid_t child = fork();
        if (child < 0) return 2;
        if (!child) _exit(work(warm, count));
        if (waitpid(child, &status, 0) != child) return 2;
        if (WIFSIGNALED(status)) fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    } else
        status = work(warm, count);
    if (status) return 1;
    return write(1, "alive\n", 6) != 6;
}
