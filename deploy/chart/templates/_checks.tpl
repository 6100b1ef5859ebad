{{/* Checks values against each other; the schema checks only single values. Renders nothing. */}}
{{- define "relay.checks" -}}
{{- $_ := required "endpoint.url: set it to output SignUrl (auth.method aws) or JwtSignUrl (token) of the cluster's stack" .Values.endpoint.url -}}
{{- $_ := required "endpoint.cluster: set it to the cluster's name in countersign.yaml" .Values.endpoint.cluster -}}
{{- $_ := required "auth.method: aws or token; the endpoint only answers authenticated callers" .Values.auth.method -}}
{{- $aws := .Values.auth.aws -}}
{{- if eq .Values.auth.method "aws" -}}
{{- $_ := required "auth.aws.callerRoleArn: set it to output CallerRoleArn of the cluster's stack" $aws.callerRoleArn -}}
{{- $_ := required "auth.aws.region: set it to the region of the cluster's stack" $aws.region -}}
{{- if and (eq $aws.credentials "webIdentity") (not $aws.roleArn) -}}
{{- fail "auth.aws.roleArn: webIdentity needs the role that access.iam.principals names" -}}
{{- end -}}
{{- if and (ne $aws.credentials "webIdentity") $aws.roleArn -}}
{{- fail (printf "auth.aws.roleArn: is for webIdentity only, not for %s" $aws.credentials) -}}
{{- end -}}
{{- if and (eq $aws.credentials "instanceRole") (not .Values.hostNetwork) -}}
{{- fail "auth.aws.credentials: instanceRole needs hostNetwork: true, because pods must not reach the instance's metadata" -}}
{{- end -}}
{{- if and (eq $aws.credentials "instanceRole") (not (omit (default dict .Values.nodeSelector) "kubernetes.io/os" "kubernetes.io/arch")) -}}
{{- fail "auth.aws.credentials: instanceRole needs a nodeSelector for the nodes that have the relay's role, such as node-role.kubernetes.io/control-plane: ''; ordinary nodes must have another role, or each of them could request certificates" -}}
{{- end -}}
{{- if and (eq $aws.credentials "injected") (not .Values.serviceAccount.annotations) -}}
{{- fail "auth.aws.credentials: injected needs the webhook's annotation in serviceAccount.annotations" -}}
{{- end -}}
{{- else -}}
{{- $_ := required "auth.token.audience: set it to access.jwt.audience of the cluster in countersign.yaml" .Values.auth.token.audience -}}
{{- if $aws.callerRoleArn -}}
{{- fail "auth.aws.callerRoleArn: is for auth.method: aws; with token it has no effect" -}}
{{- end -}}
{{- end -}}
{{- $proxy := .Values.webhookProxy -}}
{{- if $proxy.enabled -}}
{{- $_ := required "webhookProxy.tlsSecret: the proxy speaks TLS only; name a Secret of type kubernetes.io/tls" $proxy.tlsSecret -}}
{{- if not (or $proxy.tokenSecret $proxy.clientCa) -}}
{{- fail "webhookProxy: needs tokenSecret or clientCa; it only serves authenticated callers" -}}
{{- end -}}
{{- if ne (empty $proxy.clientCa) (empty $proxy.clientSubject) -}}
{{- fail "webhookProxy: clientCa and clientSubject need each other" -}}
{{- end -}}
{{- if eq (int $proxy.port) (int .Values.metrics.port) -}}
{{- fail "webhookProxy.port: is also metrics.port; choose another" -}}
{{- end -}}
{{- if and .Values.hostNetwork (or $proxy.from $proxy.fromCidrs) -}}
{{- fail "webhookProxy.from: with hostNetwork no NetworkPolicy applies, and the proxy is on the node's loopback address" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.hostNetwork) (not $proxy.from) (not $proxy.fromCidrs) -}}
{{- fail "webhookProxy: name the callers in from or fromCidrs; the NetworkPolicy admits only them" -}}
{{- end -}}
{{- else if or $proxy.tlsSecret $proxy.tokenSecret $proxy.clientCa $proxy.clientSubject $proxy.from $proxy.fromCidrs -}}
{{- fail "webhookProxy: is not enabled, so its other values have no effect; set enabled: true or remove them" -}}
{{- end -}}
{{- if .Values.metrics.podMonitor.enabled -}}
{{- if .Values.hostNetwork -}}
{{- fail "metrics.podMonitor: with hostNetwork metrics are on the node's loopback address, where Prometheus cannot scrape them" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.metrics.from) -}}
{{- fail "metrics.podMonitor: name the pods of Prometheus in metrics.from; the NetworkPolicy admits only them" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.no_proxy (not .Values.https_proxy) -}}
{{- fail "no_proxy: has no effect without https_proxy" -}}
{{- end -}}
{{- with .Values.serviceAccount -}}
{{- if and (not .create) (not .name) -}}
{{- fail "serviceAccount.name: name the account that you made; with create: false the chart makes none" -}}
{{- end -}}
{{- end -}}
{{- $wantsMachines := include "relay.clusterApi" . | fromJson -}}
{{- with .Values.clusterApi -}}
{{- if and $wantsMachines.wanted (not .enabled) -}}
{{- fail "clusterApi.enabled: the configuration has attestation.machines: clusterApi, for which the relay needs rights on Machines and Nodes; set it to true" -}}
{{- end -}}
{{- if and .enabled (not $wantsMachines.wanted) -}}
{{- fail "clusterApi.enabled: the configuration has no attestation.machines: clusterApi, so these rights would have no use" -}}
{{- end -}}
{{- if and (not .enabled) (or .kubeconfigSecret .infraCluster.resource) -}}
{{- fail "clusterApi: is not enabled, so its other values have no effect; set enabled: true or remove them" -}}
{{- end -}}
{{- if and .infraCluster.name (not .infraCluster.resource) -}}
{{- fail "clusterApi.infraCluster.name: has no effect without resource" -}}
{{- end -}}
{{- end -}}
{{- with .Values.tokenReconcile -}}
{{- if .enabled -}}
{{- if and (not .serviceAccount.create) (not .serviceAccount.name) -}}
{{- fail "tokenReconcile.serviceAccount.name: name the account that you made; with create: false the chart makes none" -}}
{{- end -}}
{{- if eq (include "tokenReconcile.serviceAccount" $) (include "relay.serviceAccount" $) -}}
{{- fail "tokenReconcile.serviceAccount.name: is also the relay's account; the relay must not be able to read Secrets" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.hostNetwork .Values.metrics.from -}}
{{- fail "metrics.from: with hostNetwork no NetworkPolicy applies, and metrics are on the node's loopback address" -}}
{{- end -}}
{{- end -}}
