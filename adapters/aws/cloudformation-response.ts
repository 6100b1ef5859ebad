/**
 * How a function tells CloudFormation what became of a custom resource: it leaves an object at a URL made for it.
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

/** Throws unless it has arrived. The URL is a credential: no message of ours names it. */
export async function sendResourceResponse(url: string, response: ResourceResponse): Promise<void> {
  // As bytes, so that no content type is added: the URL is signed for none.
  const body = Buffer.from(JSON.stringify(response));
  const answer = await fetch(url, { method: 'PUT', body, signal: AbortSignal.timeout(5_000) });
  if (!answer.ok) throw new Error(`CloudFormation's bucket answered ${answer.status}`);
}
