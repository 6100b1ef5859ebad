// Cluster API and its AWS provider, for the CustomResourceDefinitions in their modules. Nothing of them is compiled.
module countersign.dev/test/tools/cluster-api

go 1.26.0

require (
	sigs.k8s.io/cluster-api v1.14.2
	sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
)
