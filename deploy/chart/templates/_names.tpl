{{- define "relay.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "relay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "relay.labels" -}}
{{ include "relay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: countersign
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

{{/* Not the relay's labels: its NetworkPolicy and PodDisruptionBudget must not select the job's pods. */}}
{{- define "tokenReconcile.labels" -}}
app.kubernetes.io/name: countersign-token-reconcile
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: countersign
{{- end -}}
