/** Stands in for a service's entry point where a test is about the infrastructure around it. */
declare const __COUNTERSIGN_CLUSTER__: string;
declare const __COUNTERSIGN_REGION_CERTIFICATES__: string | undefined;

export interface Constants {
  readonly cluster: string;
  readonly regionCertificates?: string;
}

export const handler = async (): Promise<Constants> => ({
  cluster: __COUNTERSIGN_CLUSTER__,
  ...(typeof __COUNTERSIGN_REGION_CERTIFICATES__ === 'undefined'
    ? {}
    : { regionCertificates: __COUNTERSIGN_REGION_CERTIFICATES__ }),
});
