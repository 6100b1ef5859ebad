{{/*
The relay's signers as JSON {"names": […], "approve": […], "review": true|false}, from signerNames or from
configuration. As in the relay, a cluster's own keys override those of defaults. Only values that become a permission are
checked here; the relay reads the same file strictly and does not start with an invalid one.
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
{{- /* In a role, `domain/*` permits to sign for all signers of the domain. */ -}}
{{- if not (regexMatch "^[a-z0-9.-]+\\.[a-z0-9.-]+/[A-Za-z0-9._-]+$" $name) }}{{ fail (printf "configuration: %s is not a signer name" $name) }}{{ end -}}
{{- if eq (dig $name "manual" $approval) "approve" -}}
{{- $approve = append $approve $name -}}
{{- /* Which requesters need an access review: docs/watch-relay.md, Approving. */ -}}
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
{{/*
attestation.machines and the Cluster object of configuration, as JSON {"wanted": true|false, "cluster": …, "namespace": …}. Only values
that become a permission are checked here.
*/}}
{{- define "relay.clusterApi" -}}
{{- $file := .Values.configuration | default "{}" | fromYaml -}}
{{- $ofDefaults := dig "defaults" "attestation" dict $file | deepCopy -}}
{{- $ofCluster := dig "clusters" .Values.endpoint.cluster "attestation" dict $file | deepCopy -}}
{{- $attestation := mergeOverwrite dict $ofDefaults $ofCluster -}}
{{- $object := dig "clusterApi" dict $attestation -}}
{{- $cluster := dig "cluster" .Values.endpoint.cluster $object -}}
{{- $namespace := dig "namespace" "default" $object -}}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$" $cluster) }}{{ fail (printf "configuration: %s is not the name of a Cluster object" $cluster) }}{{ end -}}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" $namespace) }}{{ fail (printf "configuration: %s is not a namespace" $namespace) }}{{ end -}}
{{- dict "wanted" (eq (dig "machines" "" $attestation) "clusterApi") "cluster" $cluster "namespace" $namespace | toJson -}}
{{- end -}}
