// A DRA driver on the upstream helper, as little as it takes: what ours is measured beside.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type driver struct{ name, cdi string }

func (d *driver) file(uid types.UID) string {
	return filepath.Join(d.cdi, fmt.Sprintf("%s-claim_%s.json", d.name, uid))
}

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		results[claim.UID] = d.prepare(claim)
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) (result kubeletplugin.PrepareResult) {
	kind := d.name + "/claim"
	described := []any{}
	for _, got := range claim.Status.Allocation.Devices.Results {
		if got.Driver != d.name {
			continue
		}
		name := fmt.Sprintf("%s-%s", claim.UID, got.Device)
		described = append(described, map[string]any{
			"name":           name,
			"containerEdits": map[string]any{"env": []string{"DEVICE=" + got.Device}},
		})
		result.Devices = append(result.Devices, kubeletplugin.Device{
			Requests: []string{got.Request}, PoolName: got.Pool, DeviceName: got.Device,
			CDIDeviceIDs: []string{kind + "=" + name},
		})
	}
	spec, err := json.Marshal(map[string]any{"cdiVersion": "0.5.0", "kind": kind, "devices": described})
	if err == nil {
		err = write(d.file(claim.UID), spec)
	}
	result.Err = err
	return result
}

// Whole and on disk before anybody reads it, as ours.
func write(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".claim-*.tmp")
	if err != nil {
		return err
	}
	if _, err = file.Write(content); err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		err := os.Remove(d.file(claim.UID))
		if os.IsNotExist(err) {
			err = nil
		}
		results[claim.UID] = err
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, text string) {
	log.Printf("%s: %v", text, err)
}

func (d *driver) WatchHealthStatus(ctx context.Context, _ chan<- kubeletplugin.DeviceHealthReport) error {
	<-ctx.Done()
	return nil
}

func main() {
	name := flag.String("driver", "", "name of the driver")
	node := flag.String("node", "", "name of the node")
	config := flag.String("kubeconfig", "", "file")
	data := flag.String("data", "", "folder of the driver's socket")
	registry := flag.String("registry", "", "folder of registration sockets")
	cdi := flag.String("cdi", "", "folder of CDI files")
	devices := flag.Int("devices", 8, "how many are published")
	unlimited := flag.Bool("unlimited", false, "no limits of the client's own")
	text := flag.Bool("json", false, "write JSON: simulated API servers read nothing else")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	rest, err := clientcmd.BuildConfigFromFlags("", *config)
	if err != nil {
		log.Fatal(err)
	}
	if *unlimited {
		rest.QPS = -1
	}
	if *text {
		rest.ContentType = "application/json"
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		log.Fatal(err)
	}
	helper, err := kubeletplugin.Start(ctx, &driver{name: *name, cdi: *cdi},
		kubeletplugin.DriverName(*name), kubeletplugin.NodeName(*node), kubeletplugin.KubeClient(client),
		kubeletplugin.PluginDataDirectoryPath(*data), kubeletplugin.RegistrarDirectoryPath(*registry),
		kubeletplugin.Serialize(false))
	if err != nil {
		log.Fatal(err)
	}
	defer helper.Stop()
	slice := resourceslice.Slice{}
	for i := range *devices {
		slice.Devices = append(slice.Devices, resourceapi.Device{Name: fmt.Sprintf("device-%d", i)})
	}
	pools := map[string]resourceslice.Pool{*node: {Slices: []resourceslice.Slice{slice}}}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}); err != nil {
		log.Fatal(err)
	}
	<-ctx.Done()
}
