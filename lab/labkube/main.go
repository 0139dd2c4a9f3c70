// Labkube is every Go part of a one-node Kubernetes in one program: etcd, API
// server, controller-manager, scheduler, kubelet, kube-proxy, kubectl, CoreDNS,
// metrics-server and a provisioner of local volumes.
//
// The base name of argv[0] chooses the part, as busybox does it. One link step
// and one file on disk serve the whole lab: the parts share most of their code,
// and linking them apart would take nine times the time and the space.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcli "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app"

	"context"

	"k8s.io/apiserver/pkg/server"
)

// parts maps the name a part is started under to its own main function.
var parts = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
	"kubectl":                 runKubectl,
	"local-volumes":           runVolumes,
	"coredns":                 runCoreDNS,
	"metrics-server":          func() int { return cli.Run(metricsserver.NewMetricsServerCommand(server.SetupSignalHandler())) },
}

func main() {
	name := filepath.Base(os.Args[0])
	run, known := parts[name]
	if !known {
		fmt.Fprintf(os.Stderr, "labkube: %q is no part of it; link one of these names to this file: %s\n",
			name, strings.Join(partNames(), " "))
		os.Exit(2)
	}
	os.Exit(run())
}

func partNames() []string {
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// runEtcd returns only when the server has stopped; etcdmain exits by itself on errors.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKubectl prints errors in kubectl's own manner and exits with its own code.
func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectlcli.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}
