{{/*
Which signers the relay has: as JSON {"names": […], "approve": […], "review": true|false}. From signerNames, or from
configuration, read as the relay reads it: a cluster's own keys before those of defaults. Not checked beyond what becomes
a right; the relay reads the same file strictly and does not start with a wrong one.
*/}}
{{- define "relay.signers" -}}
{{- $names := .Values.signerNames -}}
{{- $approve := list -}}
{{- $review := false -}}
{{- with .Values.configuration -}}
{{- $file := fromYaml . -}}
{{- if hasKey $file "Error" }}{{ fail (printf "configuration: is not YAML: %s" $file.Error) }}{{ end -}}
{{- $cluster := dig "clusters" $.Values.endpoint.cluster dict $file -}}
{{- if not $cluster }}{{ fail (printf "configuration: has no cluster %s, which endpoint.cluster names" $.Values.endpoint.cluster) }}{{ end -}}
{{- $defaults := dig "defaults" dict $file -}}
{{- $profiles := mergeOverwrite dict (dig "profiles" dict $defaults | deepCopy) (dig "profiles" dict $cluster | deepCopy) -}}
{{- $approval := mergeOverwrite dict (dig "approval" dict $defaults | deepCopy) (dig "approval" dict $cluster | deepCopy) -}}
{{- $names = keys $profiles | sortAlpha -}}
{{- range $name := $names -}}
{{- /* `domain/*` in a role is the right to sign for all signers of the domain. */ -}}
{{- if not (regexMatch "^[a-z0-9.-]+\\.[a-z0-9.-]+/[A-Za-z0-9._-]+$" $name) }}{{ fail (printf "configuration: %s is no signer name" $name) }}{{ end -}}
{{- if eq (dig $name "manual" $approval) "approve" -}}
{{- $approve = append $approve $name -}}
{{- /* Whose requests are reviewed: docs/watch-relay.md, Approving. */ -}}
{{- $attestation := dig $name "attestation" dict $profiles -}}
{{- $attested := or $attestation (hasPrefix "cluster.x-k8s.io/" $name) -}}
{{- $proof := and $attested (ne (dig "mode" "enforce" $attestation) "audit") (dig "required" true $attestation) (not (dig "subjectAccessReview" false $attestation)) -}}
{{- $ofNodes := or (hasPrefix "cluster.x-k8s.io/" $name) (has $name (list "kubernetes.io/kube-apiserver-client-kubelet" "kubernetes.io/kubelet-serving")) -}}
{{- if and $ofNodes (not $proof) }}{{ $review = true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- dict "names" $names "approve" $approve "review" $review | toJson -}}
{{- end -}}
