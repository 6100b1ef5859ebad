#!/bin/sh
# With these two bindings kube-controller-manager approves the request of each bootstrap token for any node name. kubeadm init
# and kubeadm upgrade create them. An API server that has just started may not answer yet.
set -eu
for try in 1 2 3 4 5 6 7 8 9 10; do
  if kubectl --kubeconfig=/etc/kubernetes/admin.conf delete clusterrolebinding kubeadm:node-autoapprove-bootstrap kubeadm:node-autoapprove-certificate-rotation --ignore-not-found; then exit 0; fi
  sleep 6
done
exit 1
