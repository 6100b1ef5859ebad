import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectImds } from '../../../../adapters/aws/imds.ts';
import { startFakeImds, type FakeImds } from '../../../harness/fake-aws/machine/imds.ts';
import { plain } from '../../../harness/fake-aws/service.ts';
import { createFakeAws } from '../../../harness/fake-aws/world.ts';

const aws = createFakeAws();
const { instanceId } = aws.launch();
let imds: FakeImds;
let fromPod: FakeImds;
beforeAll(async () => {
  imds = await startFakeImds({ aws, instanceId });
  fromPod = await startFakeImds({ aws, instanceId, hops: 2 });
});
afterAll(async () => {
  await imds.close();
  await fromPod.close();
});

/** `timeoutMilliseconds`: short where nothing is to come of it, and longer than any pause of a busy machine elsewhere. */
const connect = ({ url }: FakeImds, timeoutMilliseconds = 10_000) =>
  connectImds({ endpoint: url, timeoutMilliseconds });

test('one token for all questions; what is not there is nothing', async () => {
  const before = imds.received.length;
  const service = connect(imds);
  const [id, none] = await Promise.all([service.read('meta-data/instance-id'), service.read('meta-data/no-such')]);
  expect([id, none]).toEqual([instanceId, undefined]);
  expect(
    imds.received
      .slice(before)
      .map(({ method }) => method)
      .toSorted(),
  ).toEqual(['GET', 'GET', 'PUT']);
});

test('a service that is slow for a moment is asked again, one that stays so is not for ever', async () => {
  imds.inject({ when: 'before', times: 2, answer: plain(503, 'slow down') });
  expect(await connect(imds).read('meta-data/instance-id')).toBe(instanceId);
  imds.inject({ when: 'before', answer: plain(500, 'no') });
  await expect(connect(imds).read('meta-data/instance-id')).rejects.toThrow('answers with status 500');
  imds.inject({ delayMs: 2_000 });
  await expect(connect(imds, 300).read('meta-data/instance-id')).rejects.toThrow('cannot be reached');
  imds.mend();
});

test('a pod beyond the hop limit gets no answer, and the error says why', async () => {
  await expect(connect(fromPod, 300).read('meta-data/instance-id')).rejects.toThrow(
    'the metadata service cannot be reached',
  );
});

test('an answer larger than anything of its own is not read to its end', async () => {
  imds.inject({ when: 'before', answer: plain(200, 'x'.repeat(70_000)) });
  await expect(connect(imds).read('meta-data/instance-id')).rejects.toThrow('cannot be reached');
  imds.mend();
});

test('one that is switched off says so', async () => {
  const { metadataOptions } = aws.instances.get(instanceId)!;
  aws.change(instanceId, { metadataOptions: { ...metadataOptions, httpEndpoint: 'disabled' } });
  await expect(connect(imds).read('meta-data/instance-id')).rejects.toThrow('switched off');
});
