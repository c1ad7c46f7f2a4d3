/* The maker's library of the vendor in acme.py. Without headers, so that a compiler is enough. */

unsigned sleep(unsigned seconds);
void abort(void);
void exit(int code);
void *malloc(unsigned long size);
void *memset(void *place, int byte, unsigned long size);
long write(int file, const void *text, unsigned long size);
int close(int file);
int chdir(const char *folder);
int raise(int signal);
int setuid(unsigned user);
int fork(void);
int pthread_create(unsigned long *thread, void *how, void *(*run)(void *), void *with);
int pthread_sigmask(int how, const void *set, void *old);

enum { FILES = 64, MIB = 1 << 20, SIG_BLOCK = 0, A_SIGNAL_FOR_REAL_TIME = 40 };

int acme_count(void) { return 2; }

int acme_hang(void)
{
    for (;;)
        sleep(1000);
}

int acme_crash(void)
{
    *(volatile int *)0 = 1;
    return 0;
}

int acme_abort(void) { abort(); }

int acme_exit(void) { exit(0); }

int acme_signal(void) { return raise(A_SIGNAL_FOR_REAL_TIME); }

int acme_overflow(void)
{
    volatile char frame[MIB];
    frame[0] = 1;
    return acme_overflow() + frame[0];
}

int acme_eat(void)
{
    for (;;) {
        void *piece = malloc(MIB);
        if (!piece)
            abort();
        memset(piece, 1, MIB);
    }
}

/* To everything that is open, the connection among it. */
int acme_scribble(void)
{
    for (int file = 0; file < FILES; file++)
        write(file, "this is nobody's answer", 23);
    return acme_hang();
}

int acme_close(void)
{
    for (int file = 0; file < FILES; file++)
        close(file);
    return 0;
}

/* A child that has all that its parent had open, and stays. */
int acme_fork(void)
{
    return fork() ? 0 : acme_hang();
}

static void *run(void *with)
{
    acme_hang();
    return with;
}

int acme_threads(void)
{
    unsigned long thread;
    for (int number = 0; number < 8; number++)
        pthread_create(&thread, 0, run, 0);
    return 0;
}

int acme_mask(void)
{
    unsigned long every[16];
    memset(every, 0xff, sizeof every);
    return pthread_sigmask(SIG_BLOCK, every, 0);
}

int acme_leave(void) { return chdir("/proc"); }

int acme_drop(void)
{
    setuid(65534);
    return acme_hang();
}
