// Command seed prepares the volume of one ordinal before its Kafka Streams application starts.
//
// It is the init container of every StreamApp that keeps state. It removes state that lay unused for so long that the
// changelogs may have forgotten deletions which it missed, and it writes a process file where there is none, so that
// the ordinal is the same Kafka Streams process for as long as its volume lives.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// An order is what the operator asks for; streamapp/api/objects/volume_init.py gives it.
type order struct {
	stateDir      string
	applicationID string
	// processID is what an ordinal without one is given.
	processID   string
	maxIdleTime time.Duration
	// report is a file for what was found and done; empty for none.
	report string
}

// A report is what was found and done.
type report struct {
	// ProcessID as it stands in the process file; empty where what stands there is none.
	ProcessID string `json:"processId,omitempty"`
	// Seeded tells whether it was written now.
	Seeded bool `json:"seeded"`
	// Removed names the state directories that were too old.
	Removed []string `json:"removed,omitempty"`
	// IdleSeconds is how long the state that stays lay unused until now, rounded up; null where there is no state. The
	// operator derives from it when that state becomes too old for an application that does not start.
	IdleSeconds *int64 `json:"idleSeconds"`
}

func main() {
	// Where the application runs as another user, the two share files by their group.
	syscall.Umask(0)
	if err := run(os.Args[1:], time.Now(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "seed: %v\n", err)
		os.Exit(1)
	}
}

func run(arguments []string, now time.Time, output io.Writer) error {
	asked, err := parse(arguments)
	if err != nil {
		return err
	}
	found, err := prepare(asked, now)
	if err != nil {
		return err
	}
	fmt.Fprintln(output, found)
	if asked.report == "" {
		return nil
	}
	text, err := json.Marshal(found)
	if err == nil {
		err = os.WriteFile(asked.report, text, 0o644)
	}
	if err != nil {
		// The report is for whoever looks at the pod; the volume is ready all the same.
		fmt.Fprintf(output, "the report could not be written: %v\n", err)
	}
	return nil
}

// prepare does both, in an order in which a crash in between does no harm.
func prepare(asked order, now time.Time) (report, error) {
	folder := filepath.Join(asked.stateDir, asked.applicationID)
	if err := os.MkdirAll(folder, 0o770); err != nil {
		return report{}, explain("create", folder, err)
	}
	removed, newest, err := removeOldState(folder, now.Add(-asked.maxIdleTime))
	if err != nil {
		return report{}, err
	}
	id, seeded, err := seed(folder, asked.processID)
	return report{ProcessID: id, Seeded: seeded, Removed: removed, IdleSeconds: idleSeconds(newest, now)}, err
}

// idleSeconds rounds the age of the newest file up; a file from the future has no age.
func idleSeconds(newest, now time.Time) *int64 {
	if newest.IsZero() {
		return nil
	}
	seconds := int64(max(0, now.Sub(newest)+time.Second-1) / time.Second)
	return &seconds
}

// String tells a person what was found and done.
func (found report) String() string {
	var sentences []string
	if len(found.Removed) > 0 {
		sentences = append(sentences, "removed state that lay unused for too long: "+strings.Join(found.Removed, " "))
	}
	switch {
	case found.Seeded:
		sentences = append(sentences, "wrote process ID "+found.ProcessID)
	case found.ProcessID != "":
		sentences = append(sentences, "found process ID "+found.ProcessID)
	default:
		sentences = append(sentences, "found a process file without a process ID and left it as it is; "+
			"Kafka Streams writes a random one over it")
	}
	return strings.Join(sentences, "\n")
}

var (
	ordinals       = regexp.MustCompile(`^[0-9]{1,9}$`)
	suffixes       = regexp.MustCompile(`^0000-4000-8[0-9a-f]{3}-[0-9a-f]{12}$`)
	applicationIDs = regexp.MustCompile(`^[a-zA-Z0-9._-]*[a-zA-Z0-9_-][a-zA-Z0-9._-]*$`)
)

func parse(arguments []string) (order, error) {
	var asked order
	var ordinal, suffix string
	flags := flag.NewFlagSet("seed", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&asked.stateDir, "state-dir", "", "the application's state.dir")
	flags.StringVar(&asked.applicationID, "application-id", "", "the application's application.id")
	flags.StringVar(&ordinal, "ordinal", "", "the pod's index in its StatefulSet")
	flags.StringVar(&suffix, "id-suffix", "", "what follows the ordinal in a process ID")
	flags.DurationVar(&asked.maxIdleTime, "max-age", 0, "how long state may lie unused")
	flags.StringVar(&asked.report, "report", "", "a file for what was found and done, as JSON")
	if err := flags.Parse(arguments); err != nil {
		return order{}, err
	}
	switch {
	case flags.NArg() > 0:
		return order{}, fmt.Errorf("%q is no flag", flags.Arg(0))
	case !filepath.IsAbs(asked.stateDir):
		return order{}, fmt.Errorf("--state-dir is %q and must be an absolute path", asked.stateDir)
	case !applicationIDs.MatchString(asked.applicationID):
		return order{}, fmt.Errorf("--application-id is %q and must be the name of a folder", asked.applicationID)
	case !ordinals.MatchString(ordinal):
		return order{}, fmt.Errorf("--ordinal is %q and must be the pod's index, which Kubernetes gives "+
			"in the label apps.kubernetes.io/pod-index from 1.28 on", ordinal)
	case !suffixes.MatchString(suffix):
		return order{}, fmt.Errorf("--id-suffix is %q and must be like 0000-4000-8123-0123456789ab", suffix)
	case asked.maxIdleTime <= 0:
		return order{}, errors.New("--max-age must be positive")
	}
	number, err := strconv.Atoi(ordinal)
	asked.processID = fmt.Sprintf("%08x-%s", number, suffix)
	return asked, err
}
