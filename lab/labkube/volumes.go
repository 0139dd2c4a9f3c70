package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	provisioning "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// volumeDriver is the provisioner's name, as the lab's StorageClass spells it.
const volumeDriver = "lab.streamapp.dev/local"

// localVolumes makes one folder per claim and offers it as a `local` volume of every node: all nodes of the
// lab are on one machine and see its files. A class with the parameter `sized` gets a loop device instead, which
// has a size and can be full; the kubelet makes its file system.
//
// The controller-manager's own host-path provisioner is not used: Kubernetes does not apply a
// pod's fsGroup to hostPath volumes, so a container without rights could not write to them.
type localVolumes struct {
	folder string
	nodes  []string
}

func (v *localVolumes) Provision(
	_ context.Context, options provisioning.ProvisionOptions,
) (*corev1.PersistentVolume, provisioning.ProvisioningState, error) {
	source := &corev1.LocalVolumeSource{Path: filepath.Join(v.folder, options.PVName)}
	storage := options.PVC.Spec.Resources.Requests[corev1.ResourceStorage]
	if options.StorageClass.Parameters[sizedParameter] == "true" {
		device, err := attach(v.image(options.PVName), storage.Value())
		if err != nil {
			return nil, provisioning.ProvisioningFinished, fmt.Errorf("volume %s: %w", options.PVName, err)
		}
		fileSystem := "xfs" // ext4 grows only with CAP_SYS_RESOURCE, which not every machine gives
		source = &corev1.LocalVolumeSource{Path: device, FSType: &fileSystem}
	} else if err := os.MkdirAll(source.Path, 0o770); err != nil {
		return nil, provisioning.ProvisioningFinished, fmt.Errorf("make folder of volume %s: %w", options.PVName, err)
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: storage},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: source},
			NodeAffinity:                  onAnyOf(v.nodes),
		},
	}
	return volume, provisioning.ProvisioningFinished, nil
}

func (v *localVolumes) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if volume.Spec.Local != nil && isSized(volume) {
		return detach(v.image(volume.Name))
	}
	if volume.Spec.Local == nil || filepath.Dir(volume.Spec.Local.Path) != v.folder {
		return fmt.Errorf("volume %s lies outside %s and is left alone", volume.Name, v.folder)
	}
	return os.RemoveAll(volume.Spec.Local.Path)
}

// onAnyOf names nodes that may not be there yet: the affinity of a volume never changes.
func onAnyOf(nodes []string) *corev1.VolumeNodeAffinity {
	hostname := corev1.NodeSelectorRequirement{
		Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes,
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{hostname}}},
	}}
}

func runVolumes() int {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	folder := flag.String("folder", "", "where the volumes' folders are made")
	nodes := flag.String("nodes", "", "names of all nodes there may be, separated by commas")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintf(os.Stderr, "local-volumes: kubeconfig %s: %v\n", *kubeconfig, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	client := kubernetes.NewForConfigOrDie(config)
	volumes := &localVolumes{folder: filepath.Clean(*folder), nodes: strings.Split(*nodes, ",")}
	go volumes.expand(ctx, client)
	provisioning.NewProvisionController(ctx, client, volumeDriver, volumes, provisioning.LeaderElection(false)).Run(ctx)
	return 0
}
