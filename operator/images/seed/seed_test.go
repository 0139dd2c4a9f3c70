package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	suffix = "0000-4000-8123-0123456789ab"
	id3    = "00000003-" + suffix
	other  = "c0ffee00-1234-4abc-9def-0123456789ab"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestMain is the program itself where a test starts this binary for that.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func arguments(stateDir string, more ...string) []string {
	given := []string{"--state-dir=" + stateDir, "--application-id=wordcount", "--ordinal=3", "--id-suffix=" + suffix,
		"--max-age=20h"}
	return append(given, more...)
}

func mustRun(t *testing.T, stateDir string) string {
	t.Helper()
	var output bytes.Buffer
	if err := run(arguments(stateDir), now, &output); err != nil {
		t.Fatal(err)
	}
	return output.String()
}

// put writes a file of some age, with its folders.
func put(t *testing.T, age time.Duration, content string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	written := now.Add(-age)
	if err := os.Chtimes(path, written, written); err != nil {
		t.Fatal(err)
	}
}

// files gives every file below a folder with its content.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestAnEmptyVolumeGetsAProcessFileAndNothingElse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "below", "the", "mount")
	told := mustRun(t, folder)
	equal(t, "output", told, "wrote process ID "+id3+"\n")
	equal(t, "files", files(t, folder), map[string]string{
		"wordcount/kafka-streams-process-metadata": `{"processId":"` + id3 + `"}`,
	})
}

func TestTheSecondStartFindsWhatTheFirstWrote(t *testing.T) {
	folder := t.TempDir()
	mustRun(t, folder)
	before := files(t, folder)
	equal(t, "output", mustRun(t, folder), "found process ID "+id3+"\n")
	equal(t, "files", files(t, folder), before)
}

func TestAProcessFileIsNeverReplacedWhateverItSays(t *testing.T) {
	none := "found a process file without a process ID and left it as it is; Kafka Streams writes a random one over it\n"
	for name, test := range map[string]struct{ content, told string }{
		"another id":           {`{"processId":"` + other + `"}`, "found process ID " + other + "\n"},
		"fields of the future": {`{"processId":"` + other + `","since":5}`, "found process ID " + other + "\n"},
		"no json":              {"c0ffee", none},
		"half a json":          {`{"processId":"` + other, none},
		"empty":                {"", none},
		"null":                 {`{"processId":null}`, none},
		"no uuid":              {`{"processId":"wordcount-3"}`, none},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			put(t, 100*time.Hour, test.content, folder, "wordcount", processFile)
			equal(t, "output", mustRun(t, folder), test.told)
			equal(t, "files", files(t, folder), map[string]string{"wordcount/" + processFile: test.content})
		})
	}
}

func TestADraftThatACrashLeftIsNoProcessFile(t *testing.T) {
	folder := t.TempDir()
	put(t, time.Hour, `{"proc`, folder, "wordcount", processFile+".new")
	equal(t, "output", mustRun(t, folder), "wrote process ID "+id3+"\n")
	equal(t, "files", files(t, folder), map[string]string{"wordcount/" + processFile: `{"processId":"` + id3 + `"}`})
}

func TestStateThatIsTooOldIsRemovedAllOfItButTheProcessFile(t *testing.T) {
	folder := t.TempDir()
	process := `{"processId":"` + other + `"}`
	put(t, 100*time.Hour, process, folder, "wordcount", processFile)
	put(t, 21*time.Hour, "sst", folder, "wordcount", "0_1", "rocksdb", "counts", "000012.sst")
	put(t, 30*time.Hour, "0\n0\n", folder, "wordcount", "0_2", ".checkpoint")
	put(t, 30*time.Hour, "x", folder, "wordcount", "global", "rocksdb", "names", "CURRENT")
	put(t, 30*time.Hour, "x", folder, "wordcount", "__billing__", "0_0", ".checkpoint")
	told := mustRun(t, folder)
	equal(t, "output", told,
		"removed state that lay unused for too long: 0_1 0_2 __billing__ global\nfound process ID "+other+"\n")
	equal(t, "files", files(t, folder), map[string]string{"wordcount/" + processFile: process})
}

func TestOneYoungFileKeepsAllState(t *testing.T) {
	folder := t.TempDir()
	put(t, 19*time.Hour, "sst", folder, "wordcount", "0_1", "rocksdb", "counts", "000012.sst")
	put(t, 300*time.Hour, "0\n0\n", folder, "wordcount", "0_2", ".checkpoint")
	before := files(t, folder)
	equal(t, "output", mustRun(t, folder), "wrote process ID "+id3+"\n")
	before["wordcount/"+processFile] = `{"processId":"` + id3 + `"}`
	equal(t, "files", files(t, folder), before)
}

func TestAFileFromTheFutureIsYoung(t *testing.T) {
	folder := t.TempDir()
	put(t, -time.Hour, "sst", folder, "wordcount", "0_1", "000012.sst")
	equal(t, "output", mustRun(t, folder), "wrote process ID "+id3+"\n")
}

func TestFilesOfOthersNeitherHideTheAgeNorGo(t *testing.T) {
	folder := t.TempDir()
	put(t, time.Minute, "another application's", folder, "payments", "0_1", "CURRENT")
	put(t, time.Minute, "a log", folder, "gc.log")
	put(t, time.Minute, "", folder, "wordcount", ".lock")
	put(t, time.Minute, "a dump", folder, "wordcount", "dumps", "heap")
	put(t, 21*time.Hour, "sst", folder, "wordcount", "0_1", "000012.sst")
	equal(t, "output", mustRun(t, folder),
		"removed state that lay unused for too long: 0_1\nwrote process ID "+id3+"\n")
	equal(t, "files", files(t, folder), map[string]string{
		"payments/0_1/CURRENT":     "another application's",
		"gc.log":                   "a log",
		"wordcount/.lock":          "",
		"wordcount/dumps/heap":     "a dump",
		"wordcount/" + processFile: `{"processId":"` + id3 + `"}`,
	})
}

func TestStateWithoutAnyFileStays(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "wordcount", "0_1", "rocksdb"), 0o755); err != nil {
		t.Fatal(err)
	}
	equal(t, "output", mustRun(t, folder), "wrote process ID "+id3+"\n")
}

func TestTheReportSaysTheSameForMachines(t *testing.T) {
	folder := t.TempDir()
	place := filepath.Join(t.TempDir(), "termination-log")
	put(t, 21*time.Hour, "sst", folder, "wordcount", "0_1", "000012.sst")
	if err := run(arguments(folder, "--report="+place), now, io.Discard); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	var found report
	if err := json.Unmarshal(content, &found); err != nil {
		t.Fatal(err)
	}
	equal(t, "report", found, report{ProcessID: id3, Seeded: true, Removed: []string{"0_1"}})
}

func TestTheReportSaysHowLongTheStateThatStaysLayUnused(t *testing.T) {
	for name, test := range map[string]struct {
		age  time.Duration
		want string
	}{
		"rounded up":         {5*time.Hour + time.Millisecond, `"idleSeconds":18001`},
		"from the future":    {-time.Hour, `"idleSeconds":0`},
		"removed as too old": {21 * time.Hour, `"idleSeconds":null`},
	} {
		t.Run(name, func(t *testing.T) {
			folder, place := t.TempDir(), filepath.Join(t.TempDir(), "termination-log")
			put(t, test.age, "sst", folder, "wordcount", "0_1", "000012.sst")
			put(t, test.age+time.Hour, "0\n0\n", folder, "wordcount", "0_2", ".checkpoint")
			if err := run(arguments(folder, "--report="+place), now, io.Discard); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(place)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), test.want) {
				t.Errorf("report %s lacks %s", content, test.want)
			}
		})
	}
}

func TestAReportThatCannotBeWrittenDoesNotStopTheApplication(t *testing.T) {
	var output bytes.Buffer
	place := filepath.Join(t.TempDir(), "missing", "termination-log")
	if err := run(arguments(t.TempDir(), "--report="+place), now, &output); err != nil {
		t.Fatal(err)
	}
	equal(t, "output", output.String(), fmt.Sprintf(
		"wrote process ID %s\nthe report could not be written: open %s: no such file or directory\n", id3, place))
}

func TestWhatCannotBeFollowedIsNamed(t *testing.T) {
	whole := arguments("/state")
	for name, test := range map[string]struct {
		position int
		argument string
		told     string
	}{
		"relative state dir": {0, "--state-dir=state", `--state-dir is "state" and must be an absolute path`},
		"a way out":          {1, "--application-id=..", `--application-id is ".." and must be the name of a folder`},
		"a path":             {1, "--application-id=a/b", `--application-id is "a/b" and must be the name of a folder`},
		"no ordinal": {2, "--ordinal=", `--ordinal is "" and must be the pod's index, which Kubernetes gives ` +
			"in the label apps.kubernetes.io/pod-index from 1.28 on"},
		"a negative ordinal": {2, "--ordinal=-1", `--ordinal is "-1" and must be the pod's index, which Kubernetes gives ` +
			"in the label apps.kubernetes.io/pod-index from 1.28 on"},
		"no suffix":    {3, "--id-suffix=1", `--id-suffix is "1" and must be like 0000-4000-8123-0123456789ab`},
		"no age":       {4, "--max-age=0s", "--max-age must be positive"},
		"unknown flag": {4, "--force", "flag provided but not defined: -force"},
	} {
		t.Run(name, func(t *testing.T) {
			given := append([]string{}, whole...)
			given[test.position] = test.argument
			err := run(given, now, io.Discard)
			if err == nil {
				t.Fatal("it was followed")
			}
			equal(t, "error", err.Error(), test.told)
		})
	}
}

// asAnother runs the program as a user without rights over the folder, which root needs another user for.
func asAnother(t *testing.T, stateDir string) (string, int) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	// The original lies in a folder that only its owner may enter.
	place := t.TempDir()
	program := filepath.Join(place, "seed")
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	// `go test` makes its folders for their owner alone, depending on the umask.
	for folder := range map[string]bool{place: true, filepath.Dir(place): true, filepath.Dir(stateDir): true} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(program, arguments(stateDir)...)
	command.Env = []string{"RUN_AS_PROGRAM=1"}
	if os.Getuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 10001, Gid: 10001, Groups: []uint32{}}}
	}
	output, err := command.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return string(output), command.ProcessState.ExitCode()
}

func TestAVolumeThatCannotBeWrittenIsNamedWithItsOwner(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	told, code := asAnother(t, folder)
	equal(t, "exit code", code, 1)
	want := fmt.Sprintf("seed: cannot create %s/wordcount: permission denied; %s belongs to %d:%d with mode dr-xr-xr-x, "+
		"and this runs as ", folder, folder, os.Getuid(), os.Getgid())
	if !strings.HasPrefix(told, want) || !strings.Contains(told, "Set fsGroup in the pod's securityContext") {
		t.Errorf("output:\n got %s\nwant %s…", told, want)
	}
}

func TestAProcessFileThatCannotBeReadIsNamedWithItsOwner(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	put(t, time.Hour, `{"processId":"`+other+`"}`, folder, "wordcount", processFile)
	path := filepath.Join(folder, "wordcount", processFile)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	told, code := asAnother(t, folder)
	equal(t, "exit code", code, 1)
	want := fmt.Sprintf("seed: cannot read %s: permission denied; %s belongs to %d:%d with mode ----------, ",
		path, path, os.Getuid(), os.Getgid())
	if !strings.HasPrefix(told, want) {
		t.Errorf("output:\n got %s\nwant %s…", told, want)
	}
}

func TestAnotherUserOfTheGroupMayWriteWhatWasMade(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if told, code := asAnother(t, folder); code != 0 {
		t.Fatal(told)
	}
	for path, want := range map[string]os.FileMode{
		"wordcount":                os.ModeDir | 0o770,
		"wordcount/" + processFile: 0o660,
	} {
		info, err := os.Stat(filepath.Join(folder, path))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, path, info.Mode(), want)
	}
}
