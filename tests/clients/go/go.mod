module hybrid/tests/clients

go 1.22

require github.com/startreedata/pinot-client-go v0.4.0

require (
	github.com/go-zookeeper/zk v1.0.3 // indirect
	github.com/sirupsen/logrus v1.9.3 // indirect
	golang.org/x/sys v0.0.0-20220715151400-c0bba94af5f8 // indirect
)
