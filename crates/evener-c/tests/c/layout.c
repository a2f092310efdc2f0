/* What of the header a compiled program depends on: numbers, sizes and offsets. */
#include <evener.h>

#include <stdio.h>

#define NUMBER(name) printf("%s %lld\n", #name, (long long)(name))
#define SIZE(type) printf("sizeof %s %zu\n", #type, sizeof(struct type))
#define FIELD(type, field) printf("%s.%s %zu+%zu\n", #type, #field, offsetof(struct type, field), sizeof(((struct type *)0)->field))

int main(void)
{
    NUMBER(EVENER_ABI);
    NUMBER(EVENER_OK), NUMBER(EVENER_PENDING), NUMBER(EVENER_EINVAL), NUMBER(EVENER_EALGORITHM), NUMBER(EVENER_EKEY);
    NUMBER(EVENER_EMODULE), NUMBER(EVENER_ESYSTEM), NUMBER(EVENER_EFULL), NUMBER(EVENER_ECANCELED), NUMBER(EVENER_EBADMSG);
    NUMBER(EVENER_EBADPADDING), NUMBER(EVENER_EUNSUPPORTED), NUMBER(EVENER_ELIBRARY), NUMBER(EVENER_EFORK);
    NUMBER(EVENER_EPANIC), NUMBER(EVENER_ECLOSED), NUMBER(EVENER_ENCRYPT), NUMBER(EVENER_DECRYPT);
    NUMBER(EVENER_PADDING), NUMBER(EVENER_NO_COST_CACHE), NUMBER(EVENER_THREADS_ALL);
    SIZE(evener_job);
    FIELD(evener_job, session), FIELD(evener_job, src), FIELD(evener_job, src_len), FIELD(evener_job, dst);
    FIELD(evener_job, dst_space), FIELD(evener_job, aad), FIELD(evener_job, aad_len), FIELD(evener_job, iv);
    FIELD(evener_job, tag), FIELD(evener_job, user_data), FIELD(evener_job, written), FIELD(evener_job, status);
    FIELD(evener_job, reserved0), FIELD(evener_job, reserved);
    SIZE(evener_options);
    FIELD(evener_options, size), FIELD(evener_options, threads), FIELD(evener_options, flags);
    FIELD(evener_options, modules), FIELD(evener_options, policy);
    SIZE(evener_statistics);
    FIELD(evener_statistics, size), FIELD(evener_statistics, jobs), FIELD(evener_statistics, bytes);
    FIELD(evener_statistics, failed), FIELD(evener_statistics, lane_jobs), FIELD(evener_statistics, lane_bytes);
    FIELD(evener_statistics, module_jobs), FIELD(evener_statistics, module_bytes), FIELD(evener_statistics, redone);
    FIELD(evener_statistics, checked), FIELD(evener_statistics, lost_modules);
    return 0;
}
