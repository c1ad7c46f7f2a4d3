/* The maker's library of the vendor in acme.py. Without headers, so that a compiler is enough. */

unsigned sleep(unsigned seconds);

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
