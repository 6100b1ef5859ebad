/**
 * The records of attestation in a DynamoDB table. Every write is one transaction with the conditions that
 * core/ports/attestation-store.ts defines; every read of several items that belong together is one transaction too.
 */
import { BatchGetItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { verdictFrom } from '../../core/attestation/records/stored-records.ts';
import type { AttestationStore, Claim, ClaimResult, IdentityRecord } from '../../core/ports/attestation-store.ts';
import {
  checkClaim,
  checkLookup,
  checkObservation,
  checkRetirement,
} from '../../core/attestation/records/claim-check.ts';
import { holderOf, lookUp } from '../../core/attestation/records/look-up.ts';
import { ThrottledError } from '../../core/ports/errors.ts';
import type { Instant } from '../../core/ports/instant.ts';
import { auditedChange } from './audited-change.ts';
import { cleanUpAt, belongsTo, isCurrent, isPresent, keys, timeToLive, writesOf } from './attestation-items.ts';
import type { Condition } from './attestation-items.ts';
import { entriesIn, entryFrom, itemsIn, keysOf, lockOn, recordFrom, unexpired } from './attestation-reads.ts';
import { attestationsTable, mapTableErrors } from './table.ts';
import { newToken, readItem, transactGet, transactWrite } from './transactions.ts';
import type { TransactionOptions } from './transactions.ts';
import { itemFrom, plainFrom } from './values.ts';
import type { Item } from './values.ts';

/** How often the items are read if the node name passes to another machine between two reads. */
const maxReads = 4;

export function dynamoDbAttestations(options: TransactionOptions): AttestationStore {
  const { client, tableName, randomBytes } = options;
  const writes = writesOf(tableName);

  const get = (key: Item) => readItem(options, key);

  /** Each item, in the order of the keys. The reads are not one snapshot. */
  async function getEach(wanted: readonly Item[]): Promise<readonly (Item | undefined)[]> {
    const RequestItems = { [tableName]: { Keys: [...wanted], ConsistentRead: true } };
    const answer = await mapTableErrors(() => client.send(new BatchGetItemCommand({ RequestItems })));
    if ((answer.UnprocessedKeys?.[tableName]?.Keys ?? []).length > 0) throw new ThrottledError('the table is busy');
    const found = new Map((answer.Responses?.[tableName] ?? []).map((item) => [keyEntry(item)[0], item]));
    return wanted.map((key) => found.get(keyEntry(key)[0]));
  }

  /** Reads these items and the record of the node name's holder in one snapshot. */
  async function readWithHolder(nodeName: string, wanted: readonly Item[]): Promise<(key: Item) => Item | undefined> {
    let holder: Item | undefined;
    for (let reads = 0; reads < maxReads; reads += 1) {
      const asked = new Map([...wanted, keys.node(nodeName), ...(holder === undefined ? [] : [holder])].map(keyEntry));
      const items = await transactGet(options, [...asked.values()]);
      const found = new Map([...asked.keys()].map((name, index) => [name, items[index]]));
      const read = (key: Item): Item | undefined => found.get(keyEntry(key)[0]);
      const identity = read(keys.node(nodeName))?.['identity']?.S;
      holder = identity === undefined ? undefined : keys.identity(identity);
      if (holder === undefined || asked.has(keyEntry(holder)[0])) return read;
    }
    throw new ThrottledError('a node name passes to other machines faster than it can be read');
  }

  return {
    async findVerdict(uid, now) {
      const item = await get(keys.verdict(uid));
      return item === undefined ? undefined : unexpired(item, now);
    },
    async findIdentity(identity) {
      const item = await get(keys.identity(identity));
      return item === undefined ? undefined : recordFrom(item, identity);
    },
    async findNode(nodeName) {
      return holderOf(nodeName, itemsIn(await readWithHolder(nodeName, [])));
    },
    async recall(uid, count, now) {
      const [verdict, refused] = await getEach([keys.verdict(uid), keys.refused(count)]);
      const earlier = verdict === undefined ? undefined : unexpired(verdict, now);
      return {
        ...(earlier === undefined ? {} : { verdict: earlier }),
        refusals: refused === undefined ? 0 : Number(refused['refusals']?.N ?? Number.NaN),
      };
    },
    async observe(record) {
      checkObservation(record);
      // record-current
      const unchanged = isCurrent({ ...record, rev: record.rev - 1 });
      const item = writes.put(keys.identity(record.identity), itemFrom(record), unchanged);
      const write = await transactWrite(options, newToken(randomBytes), [item]);
      return write.kind === 'written';
    },
    async retire(record, { nameFreeAt, audit }) {
      checkRetirement(record, { nameFreeAt, audit });
      return auditedChange(
        options,
        audit,
        // retired-current
        ...writes.retire(record, { retiredAt: audit.at, nameFreeAt }),
        // name-own
        writes.endName(record, nameFreeAt),
      );
    },
    async countRefusal(count) {
      const update = {
        TableName: tableName,
        Key: keys.refused(count),
        UpdateExpression: 'ADD #refusals :one SET #ttl = :ttl',
        ExpressionAttributeNames: { '#refusals': 'refusals', '#ttl': attestationsTable.timeToLive },
        ExpressionAttributeValues: { ':one': { N: '1' }, ':ttl': cleanUpAt(count.from) },
      };
      await mapTableErrors(() => client.send(new UpdateItemCommand(update)));
    },
    async findLock(subject) {
      const item = await get(keys.lock(subject));
      return item === undefined ? undefined : lockOn(item, subject);
    },
    async lookup(question) {
      checkLookup(question);
      const read = await readWithHolder(question.nodeName, keysOf(question));
      return lookUp(question, { ...itemsIn(read, question.now), entries: entriesIn(read, question) });
    },
    async findMachine(name) {
      // The item of all patterns has the key of the name `*`.
      const item = name.includes('*') ? undefined : await get(keys.machine(name));
      return item === undefined ? undefined : entryFrom(item, name);
    },
    async claim(claim, now) {
      checkClaim(claim);
      const token = newToken(randomBytes);
      const answer = await transactWrite(options, token, claimItems(claim, now, token));
      if (answer.kind === 'written') return answer;
      const [existing] = answer.failed;
      if (existing === undefined) return { kind: 'changed' };
      // An earlier try of this call has written the items, and its answer was lost.
      if (existing['writer']?.S === token) return { kind: 'written' };
      return { kind: 'verdict', found: verdictFrom(plainFrom(existing)) } satisfies ClaimResult;
    },
  };

  /** The verdict is the first item, and holds the token by which a call recognises its own write. */
  function claimItems(claim: Claim, now: Instant, token: string): readonly TransactWriteItem[] {
    const { verdict, once, identity: write, newAddresses, retire, entry, audit } = claim;
    const { uid, expiresAt } = verdict;
    const verdictItem = { ...itemFrom(verdict), ...timeToLive(expiresAt), writer: { S: token } };
    return [
      // no-verdict
      writes.put(keys.verdict(uid), verdictItem, isAbsentOrExpired(now)),
      // evidence-unspent
      ...once.map((proof) => {
        const item = { ...itemFrom(proof), ...timeToLive(proof.expiresAt) };
        return writes.put(keys.once(proof.kind, proof.id), item, isAbsentOrExpired(now, proof.requestSha256));
      }),
      // entry-listed
      ...(entry === undefined ? [] : [writes.check(keys.machine(entry), isPresent)]),
      // machine-new, name-free, address-free
      ...(write.kind === 'create' ? writes.firstUse(write.record, now, retire) : []),
      // record-current, name-own, address-free
      ...(write.kind === 'replace' ? replaceItems(write.record, newAddresses) : []),
      // retired-current. The addresses that the new holder of the name claims in this transaction pass to it.
      ...(retire?.state === 'active' ? writes.retire(retire, { retiredAt: now }, newAddresses) : []),
      ...audit.map((item) => writes.audit(item)),
    ];
  }

  function replaceItems(record: IdentityRecord, newAddresses: readonly string[]): readonly TransactWriteItem[] {
    const { identity, nodeName, rev } = record;
    return [
      writes.put(keys.identity(identity), itemFrom(record), isCurrent({ ...record, rev: rev - 1 })),
      writes.check(keys.node(nodeName), belongsTo(identity)),
      ...writes.addAddresses(newAddresses, identity),
    ];
  }
}

/** no-verdict; with `requestSha256` evidence-unspent, which also holds if the same bytes spent the evidence. */
function isAbsentOrExpired(now: Instant, requestSha256?: string): Condition {
  const none = `attribute_not_exists(${attestationsTable.partitionKey}) OR #expiresAt <= :now`;
  const [names, values] = [{ '#expiresAt': 'expiresAt' }, { ':now': { N: String(now) } }];
  if (requestSha256 === undefined) return { expression: none, names, values };
  return {
    expression: `${none} OR #requestSha256 = :requestSha256`,
    names: { ...names, '#requestSha256': 'requestSha256' },
    values: { ...values, ':requestSha256': { S: requestSha256 } },
  };
}

function keyEntry(key: Item): readonly [string, Item] {
  return [key[attestationsTable.partitionKey]?.S ?? '', key];
}
