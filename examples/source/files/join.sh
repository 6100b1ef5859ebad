#!/bin/sh
# Server, token and CA hash are those that Cluster API gave to kubeadm.
set -eu
from=/run/kubeadm/kubeadm-join-config.yaml
value() { sed -n "s/^ *$1: *//p" "$from" | tr -d "\"'" | head -n 1; }
hash=$(grep -o 'sha256:[0-9a-f]*' "$from" | head -n 1)
umask 077
mkdir -p /run/countersign
value token > /run/countersign/token
kubelet-authenticator join "$(value apiServerEndpoint)" --token-file /run/countersign/token --discovery-token-ca-cert-hash "$hash" --audience %{audience} --cluster-name %{cluster} --provider %{provider} --serving attested --node-name "$(hostname -f)"
rm -f /run/countersign/token
systemctl daemon-reload
systemctl enable --now kubelet-authenticator-serving
systemctl enable --now kubelet
