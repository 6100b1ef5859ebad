/** Stands in for a service's entry point where a test is about the infrastructure around it. */
declare const __COUNTERSIGN_CLUSTER__: string;

export const handler = async (): Promise<string> => __COUNTERSIGN_CLUSTER__;
