package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// stateDirectories are those that Kafka Streams keeps stores in: a task's, a named topology's, the global stores'.
var stateDirectories = regexp.MustCompile(`^([0-9]+_[0-9]+|__.+__|global)$`)

// removeOldState removes all state below a folder if the newest of its files is older than `oldest`, and names the
// directories. All or nothing: a task that merely had no input is as old as its last record, and only the newest file
// of all tells when the volume was last in use. Files of anybody else neither count nor go. It also returns when the
// newest file of the state that stays was written; zero where no state stays.
func removeOldState(folder string, oldest time.Time) ([]string, time.Time, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, time.Time{}, explain("read", folder, err)
	}
	var directories []string
	var newest time.Time
	for _, entry := range entries {
		if !entry.IsDir() || !stateDirectories.MatchString(entry.Name()) {
			continue
		}
		directories = append(directories, entry.Name())
		written, err := newestFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, time.Time{}, err
		}
		if written.After(newest) {
			newest = written
		}
	}
	if newest.IsZero() || newest.After(oldest) {
		return nil, newest, nil
	}
	for _, directory := range directories {
		path := filepath.Join(folder, directory)
		if err := os.RemoveAll(path); err != nil {
			return nil, time.Time{}, explain("remove", path, err)
		}
	}
	return directories, time.Time{}, nil
}

// newestFile tells when a file below a directory was last written; zero where there is no file.
func newestFile(directory string) (time.Time, error) {
	var newest time.Time
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return explain("read", path, err)
		}
		if entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return explain("read", path, err)
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest, err
}
