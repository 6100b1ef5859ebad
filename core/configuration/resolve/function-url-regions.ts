/**
 * Regions of which AWS's page said in November 2026 that Lambda has no Function URLs there. No API of AWS tells it, and AWS may have
 * added some since, so this is worth a warning and no error.
 */
const regionsWithoutFunctionUrls: ReadonlySet<string> = new Set([
  'ap-east-2',
  'ap-south-2',
  'ap-southeast-4',
  'ap-southeast-5',
  'ap-southeast-6',
  'ap-southeast-7',
  'ca-west-1',
  'eu-central-2',
  'eu-south-2',
  'il-central-1',
  'me-central-1',
]);

const page = 'https://docs.aws.amazon.com/lambda/latest/dg/urls-configuration.html';

/** What to warn of before a Function URL is deployed into this region. */
export function functionUrlDoubt(region: string | undefined): string | undefined {
  if (region === undefined || !regionsWithoutFunctionUrls.has(region)) return undefined;
  return `AWS listed ${region} as a region without Function URLs: ${page}`;
}
