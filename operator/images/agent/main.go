// Command bring puts the agent's jar where the application's JVM will look for it.
//
// It is an init container of every StreamApp with an agent. A JVM that is told of a jar which is missing, cut short or
// not readable does not start at all: so the jar appears whole or not at all, it is read back and compared, and where
// that cannot be, the pod's status says which path, whose it is, and what helps.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// An order is what the operator asks for; streamapp/api/objects/agent_injection.py gives it.
type order struct {
	// from is the jar in this image.
	from string
	// to is where the JVM is told to find it.
	to string
	// report is a file for what was done or why it could not be; empty for none.
	report string
}

func main() {
	// Where the application runs as another user, the two share files by their group.
	syscall.Umask(0)
	asked, err := parse(os.Args[1:])
	if err == nil {
		err = run(asked, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		if asked.report != "" {
			// Standard error is shown in its place where this fails.
			_ = os.WriteFile(asked.report, []byte("agent: "+err.Error()), 0o644)
		}
		os.Exit(1)
	}
}

func run(asked order, output io.Writer) error {
	sum, size, err := bring(asked.from, asked.to)
	if err != nil {
		return err
	}
	told := fmt.Sprintf("brought %s, %d bytes, SHA-256 %s", asked.to, size, sum)
	fmt.Fprintln(output, told)
	if asked.report == "" {
		return nil
	}
	if err := os.WriteFile(asked.report, []byte(told), 0o644); err != nil {
		// The report is for whoever looks at the pod; the jar is there all the same.
		fmt.Fprintf(output, "the report could not be written: %v\n", err)
	}
	return nil
}

func parse(arguments []string) (order, error) {
	var asked order
	flags := flag.NewFlagSet("bring", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&asked.from, "from", "/streamapp-agent.jar", "the jar in this image")
	flags.StringVar(&asked.to, "to", "", "where the jar is to be")
	flags.StringVar(&asked.report, "report", "", "a file for what was done, or why it could not be")
	if err := flags.Parse(arguments); err != nil {
		return order{}, err
	}
	switch {
	case flags.NArg() > 0:
		return order{}, fmt.Errorf("%q is no flag", flags.Arg(0))
	case !filepath.IsAbs(asked.to):
		return order{}, fmt.Errorf("--to is %q and must be an absolute path", asked.to)
	case asked.from == "":
		return order{}, errors.New("--from must name a jar")
	}
	return asked, nil
}
