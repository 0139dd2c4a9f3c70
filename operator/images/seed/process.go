package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// processFile is Kafka Streams' own name for the file with its process ID.
const processFile = "kafka-streams-process-metadata"

var uuids = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// seed gives a folder a process file with this ID unless it has one. It returns the ID that stands there then, empty
// where that is none, and whether it was written now. What stands there is never replaced, whatever it is.
func seed(folder, id string) (string, bool, error) {
	path := filepath.Join(folder, processFile)
	content, err := os.ReadFile(path)
	if err == nil {
		return idIn(content), false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, explain("read", path, err)
	}
	text, err := json.Marshal(map[string]string{"processId": id})
	if err == nil {
		err = writeWhole(path, text)
	}
	if err != nil {
		return "", false, explain("write", path, err)
	}
	return id, true, nil
}

// idIn reads the file as Kafka Streams does, which ignores other fields.
func idIn(content []byte) string {
	var metadata struct {
		ProcessID string `json:"processId"`
	}
	if json.Unmarshal(content, &metadata) != nil || !uuids.MatchString(metadata.ProcessID) {
		return ""
	}
	return metadata.ProcessID
}

// writeWhole writes a file that is there with all of its content or not at all, whenever the machine stops.
func writeWhole(path string, content []byte) error {
	draft := path + ".new"
	file, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o660)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
