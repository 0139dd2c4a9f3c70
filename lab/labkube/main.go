// Labkube is every Go part of a small Kubernetes in one program: etcd, API
// server, controller-manager, scheduler, kubelet, kube-proxy, kubectl, CoreDNS,
// metrics-server and a provisioner of local volumes.
//
// The base name of argv[0] chooses the part, as busybox does it; under its own
// name the program lists its parts. One link step and one file on disk serve the
// whole lab: the parts share most of their code, and linking them apart would
// take nine times the time and the space.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/server/v3/etcdmain"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the client library
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app"
)

// parts maps the name a part is started under to its main function, which
// gives the exit code.
var parts = map[string]func() int{
	"coredns":                 runCoreDNS,
	"etcd":                    runEtcd,
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              runProxy,
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubectl":                 runKubectl,
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"local-volumes":           runVolumes,
	"metrics-server":          runMetricsServer,
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "labkube" {
		listParts()
		return
	}
	run, known := parts[name]
	if !known {
		fmt.Fprintf(os.Stderr, "labkube: %q is none of its parts; call it as labkube for a list of them\n", name)
		os.Exit(2)
	}
	os.Exit(run())
}

// listParts prints one name a line: whoever builds the program links each of
// them to it, so that the list stands in this file alone.
func listParts() {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		fmt.Println(name)
	}
}

// runEtcd returns only when the server was asked to stop; on errors etcdmain
// exits by itself.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

// runKubectl leaves the wording of errors and the exit code to kubectl.
func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
	return 0
}

// runProxy hides CoreDNS's -version from kube-proxy, which takes over all flags
// of the program: `kube-proxy --version` would start a proxy otherwise.
func runProxy() int {
	kept := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flag.VisitAll(func(f *flag.Flag) {
		if f.Name != "version" {
			kept.Var(f.Value, f.Name, f.Usage)
		}
	})
	flag.CommandLine = kept
	return cli.Run(proxy.NewProxyCommand())
}

func runMetricsServer() int {
	return cli.Run(metricsserver.NewMetricsServerCommand(genericapiserver.SetupSignalHandler()))
}
