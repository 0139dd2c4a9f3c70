package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// bring copies a file so that it is there whole or not at all, reads it back, and gives its SHA-256 and size. A file
// that is there already is replaced: it may be of an older image.
func bring(from, to string) (string, int64, error) {
	wanted, size, err := sumOf(from)
	if err != nil {
		return "", 0, explain("read", from, err)
	}
	if size == 0 {
		return "", 0, fmt.Errorf("%s is empty: this image was built without the agent", from)
	}
	draft := to + ".new"
	if err := copyFile(from, draft); err != nil {
		// What is left of it would only take room.
		_ = os.Remove(draft)
		return "", 0, explain("write", to, err)
	}
	if err := os.Rename(draft, to); err != nil {
		_ = os.Remove(draft)
		return "", 0, explain("write", to, err)
	}
	found, _, err := sumOf(to)
	if err != nil {
		return "", 0, explain("read", to, err)
	}
	if found != wanted {
		return "", 0, fmt.Errorf("%s has SHA-256 %s and should have %s: the volume does not keep what is written", to, found, wanted)
	}
	return wanted, size, nil
}

func sumOf(path string) (string, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

// copyFile writes a file that everybody may read: which user the JVM runs as cannot be told from here.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	err = errors.Join(err, target.Chmod(0o644), target.Sync(), target.Close())
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
