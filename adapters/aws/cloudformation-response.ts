/**
 * The response of a custom resource's function to CloudFormation: an object uploaded to a presigned URL.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
 */

export interface ResourceResponse {
  readonly Status: 'SUCCESS' | 'FAILED';
  readonly Reason?: string;
  readonly PhysicalResourceId: string;
  readonly StackId: string;
  readonly RequestId: string;
  readonly LogicalResourceId: string;
  readonly Data?: Readonly<Record<string, string>>;
}

/** Throws unless the upload succeeded. The URL is a credential, so no message contains it. */
export async function sendResourceResponse(url: string, response: ResourceResponse): Promise<void> {
  // Bytes, because fetch adds a Content-Type to a string, and the URL is signed for a request without that header.
  const body = Buffer.from(JSON.stringify(response));
  const answer = await fetch(url, { method: 'PUT', body, signal: AbortSignal.timeout(5_000) });
  if (!answer.ok) throw new Error(`CloudFormation's bucket answered ${answer.status}`);
}
