package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// explain says what could not be done where, whose it is, who asks, and what helps.
func explain(verb, path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		path, err = cause.Path, cause.Err
	}
	told := fmt.Errorf("cannot %s %s: %w", verb, path, err)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return told
	}
	return fmt.Errorf("%w; %s, and this runs as %d:%d%s. Set fsGroup in the pod's securityContext, so that the volume is "+
		"writable for its containers, or runAsUser to the owner", told, owner(path), os.Getuid(), os.Getgid(), groups())
}

// owner describes the nearest part of a path that can be looked at.
func owner(path string) string {
	for {
		info, err := os.Lstat(path)
		if err == nil {
			return describe(path, info)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "its owner cannot be told"
		}
		path = parent
	}
}

func describe(path string, info fs.FileInfo) string {
	if system, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%s belongs to %d:%d with mode %v", path, system.Uid, system.Gid, info.Mode())
	}
	return fmt.Sprintf("%s has mode %v", path, info.Mode())
}

func groups() string {
	numbers, err := os.Getgroups()
	if err != nil || len(numbers) == 0 {
		return ""
	}
	return fmt.Sprintf(" with groups %v", numbers)
}
