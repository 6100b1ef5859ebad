{{- define "relay.shortName" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end -}}

{{- define "relay.name" -}}
{{- $short := include "relay.shortName" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $short .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $short | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "relay.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "relay.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "relay.name" .) -}}
{{- end -}}

{{/* Must stay the same for the life of a Deployment, and must select no other pods. */}}
{{- define "relay.selector" -}}
app.kubernetes.io/name: {{ include "relay.shortName" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* `countersign` finds relays by part-of and component, which no value changes. */}}
{{- define "relay.podLabels" -}}
{{ include "relay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: watch-relay
app.kubernetes.io/part-of: countersign
{{- end -}}

{{- define "relay.labels" -}}
{{ include "relay.podLabels" . }}
{{ include "chart.labels" . }}
{{- end -}}

{{/* Of every object. Pods lack them: a new version of the chart alone must not restart the relay. */}}
{{- define "chart.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "relay.image" -}}
{{- $repository := required "image.repository: no image is published; name yours (docs/deploy.md)" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* NetworkPolicy peers that may connect, by namespace and pod labels, never by address. */}}
{{- define "relay.peers" -}}
{{- range . }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- toYaml . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* NetworkPolicy destinations: the given blocks, or all addresses except link-local ones, which serve the instance's credentials. */}}
{{- define "relay.destinations" -}}
{{- if . }}
{{- range . }}
- ipBlock: { cidr: {{ . | quote }} }
{{- end }}
{{- else }}
- ipBlock: { cidr: 0.0.0.0/0, except: [169.254.0.0/16] }
- ipBlock: { cidr: '::/0', except: ['fe80::/10', 'fd00:ec2::/32'] }
{{- end }}
{{- end -}}

{{- define "relay.ports" -}}
{{- range . }}
- { protocol: TCP, port: {{ . }} }
{{- end }}
{{- end -}}

{{/* Of all pods of the chart. */}}
{{- define "relay.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "relay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* networkPolicy.endpoint.ports, and the port of the proxy if there is one, as JSON. */}}
{{- define "relay.endpointPorts" -}}
{{- $ports := .Values.networkPolicy.endpoint.ports -}}
{{- with .Values.https_proxy -}}
{{- $default := ternary 443 80 (hasPrefix "https:" .) -}}
{{- $ports = append $ports (regexFind ":[0-9]+/?$" . | trimPrefix ":" | trimSuffix "/" | default $default | int) -}}
{{- end -}}
{{- $numbers := list -}}
{{- range $ports }}{{ $numbers = append $numbers (int .) }}{{ end -}}
{{- $numbers | uniq | toJson -}}
{{- end -}}

{{/* Not the relay's labels: its NetworkPolicy and PodDisruptionBudget must not select the job's pods. */}}
{{- define "tokenReconcile.podLabels" -}}
app.kubernetes.io/name: countersign-token-reconcile
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: token-reconcile
app.kubernetes.io/part-of: countersign
{{- end -}}

{{- define "tokenReconcile.labels" -}}
{{ include "tokenReconcile.podLabels" . }}
{{ include "chart.labels" . }}
{{- end -}}

{{/* The longest name of a CronJob has 52 characters. */}}
{{- define "tokenReconcile.name" -}}
{{- printf "%s-token-reconcile" (include "relay.name" . | trunc 36 | trimSuffix "-") -}}
{{- end -}}

{{- define "tokenReconcile.serviceAccount" -}}
{{- .Values.tokenReconcile.serviceAccount.name | default (include "tokenReconcile.name" .) -}}
{{- end -}}

{{/* Not the relay's labels either: nothing that selects relays may select the pod of `helm test`. */}}
{{- define "test.selector" -}}
app.kubernetes.io/name: countersign-watch-relay-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "test.labels" -}}
{{ include "test.selector" . }}
app.kubernetes.io/component: test
app.kubernetes.io/part-of: countersign
{{ include "chart.labels" . }}
{{- end -}}

{{- define "test.hook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
