// A device plugin on the upstream interface, as little as it takes: what ours is measured beside.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices int
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	list := &api.ListAndWatchResponse{}
	for i := range p.devices {
		list.Devices = append(list.Devices, &api.Device{ID: fmt.Sprintf("device-%d", i), Health: api.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer := &api.ContainerAllocateResponse{Envs: map[string]string{}}
		for _, id := range container.DevicesIds {
			answer.Envs["DEVICE"] = id
			answer.Devices = append(answer.Devices, &api.DeviceSpec{ContainerPath: "/dev/null", HostPath: "/dev/null", Permissions: "rw"})
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func main() {
	socket := flag.String("socket", "", "path")
	devices := flag.Int("devices", 8, "how many are listed")
	flag.Parse()
	listener, err := net.Listen("unix", *socket)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{devices: *devices})
	log.Fatal(server.Serve(listener))
}
