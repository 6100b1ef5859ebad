/** A throwaway Lambda function that tries calls with the role that it was given, and returns what AWS answered. */
import { DynamoDBClient, GetItemCommand, PutItemCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { KMSClient, SignCommand } from '@aws-sdk/client-kms';

/** `input`: that of the SDK's command; `Message` of `Sign` in base64. */
export type ProbeCall =
  | { readonly call: 'Sign'; readonly input: Readonly<Record<string, string>> }
  | { readonly call: 'GetItem' | 'PutItem' | 'TransactWriteItems'; readonly input: object };

const kms = new KMSClient({ maxAttempts: 2 });
const dynamodb = new DynamoDBClient({ maxAttempts: 2 });

/** For each call `permitted`, or the name of AWS's error. */
export async function handler({ calls }: { readonly calls: readonly ProbeCall[] }): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const each of calls)
    try {
      await send(each);
      answers.push('permitted');
    } catch (error) {
      answers.push(error instanceof Error ? error.name : String(error));
    }
  return answers;
}

function send({ call, input }: ProbeCall): Promise<unknown> {
  if (call === 'Sign') {
    const { Message = '', ...others } = input;
    return kms.send(new SignCommand({ ...others, Message: Buffer.from(Message, 'base64') } as never));
  }
  if (call === 'GetItem') return dynamodb.send(new GetItemCommand(input as never));
  if (call === 'PutItem') return dynamodb.send(new PutItemCommand(input as never));
  return dynamodb.send(new TransactWriteItemsCommand(input as never));
}
