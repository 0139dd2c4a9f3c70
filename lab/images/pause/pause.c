/* The first process of every pod: it holds the namespaces and reaps what the containers leave. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int signal) {
	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void leave(int signal) {
	(void)signal;
	_exit(0);
}

int main(void) {
	struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
	struct sigaction on_stop = {.sa_handler = leave};
	sigaction(SIGCHLD, &on_child, NULL);
	sigaction(SIGTERM, &on_stop, NULL);
	sigaction(SIGINT, &on_stop, NULL);
	for (;;)
		pause();
}
