package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain is the program itself where a test starts this binary for that.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

var jar = bytes.Repeat([]byte("jar"), 100_000)

func sum(content []byte) string {
	found := sha256.Sum256(content)
	return hex.EncodeToString(found[:])
}

// place gives a jar, and a folder to bring it to, which anybody may enter.
func place(t *testing.T) (string, string) {
	t.Helper()
	root := t.TempDir()
	from, folder := filepath.Join(root, "from.jar"), filepath.Join(root, "agent")
	put(t, from, jar, 0o644)
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	// `go test` makes its folders for their owner alone, depending on the umask.
	for _, path := range []string{filepath.Dir(root), root, folder} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return from, folder
}

func put(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	found, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(found)
}

func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return strings.Join(found, " ")
}

func TestTheJarIsThereWholeReadableForAllAndAlone(t *testing.T) {
	from, folder := place(t)
	to, report := filepath.Join(folder, "agent.jar"), filepath.Join(t.TempDir(), "log")
	var output bytes.Buffer
	if err := run(order{from, to, report}, &output); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("brought %s, 300000 bytes, SHA-256 %s", to, sum(jar))
	if output.String() != want+"\n" || content(t, report) != want {
		t.Errorf("output:\n got %s and %s\nwant %s", output.String(), content(t, report), want)
	}
	if content(t, to) != string(jar) || names(t, folder) != "agent.jar" {
		t.Errorf("%s is another file, or not alone: %s", to, names(t, folder))
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAnOlderJarAndADraftThatACrashLeftAreReplaced(t *testing.T) {
	from, folder := place(t)
	to := filepath.Join(folder, "agent.jar")
	put(t, to, []byte("older"), 0o600)
	put(t, to+".new", bytes.Repeat([]byte("x"), 400_000), 0o600)
	if err := run(order{from: from, to: to}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if content(t, to) != string(jar) || names(t, folder) != "agent.jar" {
		t.Errorf("%s is another file, or not alone: %s", to, names(t, folder))
	}
}

func TestAnImageWithoutAJarIsNamedAndLeavesNothing(t *testing.T) {
	from, folder := place(t)
	to := filepath.Join(folder, "agent.jar")
	put(t, from, nil, 0o644)
	err := run(order{from: from, to: to}, io.Discard)
	if err == nil || err.Error() != from+" is empty: this image was built without the agent" {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(from); err != nil {
		t.Fatal(err)
	}
	err = run(order{from: from, to: to}, io.Discard)
	if err == nil || err.Error() != "cannot read "+from+": no such file or directory" {
		t.Errorf("error %v", err)
	}
	if names(t, folder) != "" {
		t.Errorf("left: %s", names(t, folder))
	}
}

func TestAJarThatCannotBePutThereLeavesTheOldOneAndNoDraft(t *testing.T) {
	from, folder := place(t)
	to := filepath.Join(folder, "agent.jar")
	if err := os.MkdirAll(filepath.Join(to, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run(order{from: from, to: to}, io.Discard); err == nil {
		t.Error("a folder was replaced")
	}
	if names(t, folder) != "agent.jar" {
		t.Errorf("left: %s", names(t, folder))
	}
}

func TestWhatCannotBeFollowedIsNamed(t *testing.T) {
	for argument, want := range map[string]string{
		"--to=agent.jar": `--to is "agent.jar" and must be an absolute path`,
		"--from=":        `--to is "" and must be an absolute path`,
		"--force":        "flag provided but not defined: -force",
		"now":            `"now" is no flag`,
	} {
		if _, err := parse([]string{argument}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", argument, err, want)
		}
	}
}

// asAnother runs the program as a user without rights over the folder, which root needs another user for.
func asAnother(t *testing.T, arguments ...string) (string, int) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The original lies in a folder that only its owner may enter.
	from, folder := place(t)
	program := filepath.Join(folder, "bring")
	put(t, program, []byte(content(t, binary)), 0o755)
	command := exec.Command(program, append([]string{"--from=" + from}, arguments...)...)
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

func TestAVolumeThatCannotBeWrittenIsNamedWithItsOwnerInTheReportToo(t *testing.T) {
	_, folder := place(t)
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(filepath.Dir(folder), "log")
	put(t, report, nil, 0o666)
	told, code := asAnother(t, "--to="+filepath.Join(folder, "agent.jar"), "--report="+report)
	want := fmt.Sprintf("agent: cannot write %s/agent.jar.new: permission denied; %s belongs to %d:%d with mode dr-xr-xr-x, "+
		"and this runs as ", folder, folder, os.Getuid(), os.Getgid())
	if code != 1 || !strings.HasPrefix(told, want) || !strings.Contains(told, "Set fsGroup in the pod's securityContext") {
		t.Errorf("exit code %d, output:\n got %s\nwant %s…", code, told, want)
	}
	if content(t, report)+"\n" != told {
		t.Errorf("report:\n got %s\nwant %s", content(t, report), told)
	}
}

func TestAnotherUserOfTheVolumeMayBringItAndEverybodyReadIt(t *testing.T) {
	_, folder := place(t)
	to := filepath.Join(folder, "agent.jar")
	if told, code := asAnother(t, "--to="+to); code != 0 {
		t.Fatal(told)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
