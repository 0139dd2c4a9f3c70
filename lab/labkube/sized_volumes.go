package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// sizedParameter is the parameter of a StorageClass whose volumes have a size.
	sizedParameter = "sized"
	expandEvery    = time.Second
)

// image is the file behind the loop device of a volume.
func (v *localVolumes) image(volume string) string {
	return filepath.Join(v.folder, volume+".img")
}

// isSized tells volumes on loop devices from folders.
func isSized(volume *corev1.PersistentVolume) bool {
	return volume.Spec.Local.FSType != nil
}

// attach makes a sparse file of this size and a loop device on it. A provisioning that is tried again finds both.
func attach(image string, size int64) (string, error) {
	file, err := os.OpenFile(image, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return "", err
	}
	if device, err := deviceOf(image); err != nil || device != "" {
		return device, err
	}
	return losetup("--find", "--show", image)
}

// detach lets go of the device, at its last unmount if it is still mounted, and removes the file.
func detach(image string) error {
	device, err := deviceOf(image)
	if err == nil && device != "" {
		_, err = losetup("--detach", device)
	}
	if err != nil {
		return err
	}
	if err := os.Remove(image); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func deviceOf(image string) (string, error) {
	return losetup("--associated", image, "--noheadings", "--output", "NAME")
}

func losetup(arguments ...string) (string, error) {
	out, err := exec.Command("losetup", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("losetup %s: %s: %w", strings.Join(arguments, " "), strings.TrimSpace(string(out)), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// expand is the part of a storage driver's resizer: it enlarges the device of each claim that asks for more than its
// volume has, and leaves the file system to the kubelet. It looks at all claims each second: a lab has few.
func (v *localVolumes) expand(ctx context.Context, client kubernetes.Interface) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(expandEvery):
		}
		claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, claim := range claims.Items {
			if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
				continue
			}
			if err := v.expandOne(ctx, client, &claim); err != nil {
				fmt.Fprintf(os.Stderr, "local-volumes: claim %s/%s: %v\n", claim.Namespace, claim.Name, err)
			}
		}
	}
}

func (v *localVolumes) expandOne(
	ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim,
) error {
	asked := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has := claim.Status.Capacity[corev1.ResourceStorage]
	if asked.Cmp(has) <= 0 {
		return nil
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || volume.Spec.Local == nil || !isSized(volume) {
		return err
	}
	if there := volume.Spec.Capacity[corev1.ResourceStorage]; asked.Cmp(there) <= 0 {
		return nil // the kubelet's turn
	}
	if err := os.Truncate(v.image(volume.Name), asked.Value()); err != nil {
		return err
	}
	if _, err := losetup("--set-capacity", volume.Spec.Local.Path); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": map[string]string{"storage": asked.String()}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().PersistentVolumes().Patch(
		ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
