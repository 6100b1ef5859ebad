/**
 * Fair queueing of requests, in the manner of the API server's API Priority and Fairness. Each requester is a flow with
 * its own FIFO queues, and flows are served round robin, so a thousand requests from one bootstrap token delay only
 * that token. There are two priority classes: requests of nodes that are in the cluster already (their certificates
 * expire) come before all others, but every eighth slot goes to another requester.
 *
 * Within a flow approved requests come before pending ones, so the first of a thousand nodes gets its certificate
 * without waiting for the last approval. Every eighth slot goes to a pending request, because an approved one may keep
 * failing. A step whose limiter admits nothing does not hold up requests at other steps.
 */

/** What a worker asks for: a certificate, a verdict about the requester's machine, or an approval by the rules alone. */
export type EndpointStep = 'sign' | 'attest' | 'approve';
export const endpointSteps: readonly EndpointStep[] = ['sign', 'attest', 'approve'];
/** What a worker does next with a request. `refuse`: it is oversized; the relay refuses it without asking the endpoint. */
export type Step = EndpointStep | 'refuse';
export const steps: readonly Step[] = [...endpointSteps, 'refuse'];

export function byStep<T>(make: () => T): Record<Step, T> {
  return { sign: make(), attest: make(), approve: make(), refuse: make() };
}

/** `renewal`: requested by a node of the cluster. */
export type PriorityClass = 'renewal' | 'other';
export const priorityClasses: readonly PriorityClass[] = ['renewal', 'other'];

/** After this many slots in a row for renewals, one goes to a request of the other class that waits. */
export const renewalsInARow = 7;
/** After this many slots in a row for approved requests of a flow, one goes to a pending request of the flow. */
export const approvedInARow = 7;

/** A flow is one requester, as authenticated by the API server, in one priority class. */
export interface FlowKey {
  readonly requester: string;
  readonly priority: PriorityClass;
}

export interface QueuedRequest extends FlowKey {
  readonly step: Step;
  /** How many of the flow's `maxInFlight` places the request takes while it is in flight. */
  readonly weight: number;
}

/** The fields of a request must not change while it waits, nor its flow and weight while it is in flight. */
export interface FairQueue<T extends QueuedRequest> {
  push(request: T): void;
  /** Does nothing if the request does not wait. */
  remove(request: T): void;
  /** The next request at one of these steps. It is in flight until `finished`. */
  next(admitted: readonly Step[]): T | undefined;
  finished(request: T): void;
  hasReady(step: Step): boolean;
  /** Waiting requests of one flow. */
  backlog(flow: FlowKey): number;
  /** The largest backlog of any flow. */
  longest(): number;
}

/** A FIFO queue from whose middle requests can be removed. */
class FifoSet<T> extends Set<T> {
  // A new iterator would step over all entries that were removed from the front.
  readonly #order = this.values();
  /** The first request, which the caller removes. */
  first(): T | undefined {
    return this.#order.next().value;
  }
}

/** Fifty thousand requesters may wait with one request each, so a queue of one request is stored as that request. */
type Fifo<T> = T | FifoSet<T> | undefined;

interface Flow<T> extends Record<Step, Fifo<T>> {
  inFlight: number;
  approvedInARow: number;
  lastPending: PendingStep;
}

/** `maxInFlight` bounds each flow. A request with a larger weight starts while at least one place is free. */
export function createFairQueue<T extends QueuedRequest>(maxInFlight: number): FairQueue<T> {
  const flows: Readonly<Record<PriorityClass, Map<string, Flow<T>>>> = { renewal: new Map(), other: new Map() };
  /** Flows that may be served at a step, in round-robin order. The flow with the lowest number is served first. */
  const eligible: Readonly<Record<PriorityClass, Readonly<Record<Step, Map<Flow<T>, number>>>>> = {
    renewal: byStep(() => new Map()),
    other: byStep(() => new Map()),
  };
  let renewals = 0;
  let turns = 0;

  const flowOf = ({ requester, priority }: FlowKey): Flow<T> | undefined => flows[priority].get(requester);

  function update(flow: Flow<T>, { requester, priority }: FlowKey): void {
    for (const step of steps) {
      const order = eligible[priority][step];
      if (flow.inFlight >= maxInFlight || flow[step] === undefined) order.delete(flow);
      else if (!order.has(flow)) order.set(flow, (turns += 1));
    }
    if (flow.inFlight === 0 && backlogOf(flow) === 0) flows[priority].delete(requester);
  }

  /** The flow of this class that has waited longest for a slot at one of these steps. */
  function firstFlow(priority: PriorityClass, admitted: readonly Step[]): Flow<T> | undefined {
    let first: readonly [Flow<T>, number] | undefined;
    for (const step of admitted) {
      const [head] = eligible[priority][step];
      if (head !== undefined && (first === undefined || head[1] < first[1])) first = head;
    }
    return first?.[0];
  }

  return {
    push(request) {
      const { requester, priority, step } = request;
      const flow = flowOf(request) ?? {
        ...byStep(() => undefined),
        inFlight: 0,
        approvedInARow: 0,
        lastPending: 'refuse',
      };
      flows[priority].set(requester, flow);
      flow[step] = appended(flow[step], request);
      update(flow, request);
    },

    remove(request) {
      const flow = flowOf(request);
      if (flow === undefined) return;
      flow[request.step] = without(flow[request.step], request);
      update(flow, request);
    },

    next(admitted) {
      const [renewal, other] = [firstFlow('renewal', admitted), firstFlow('other', admitted)];
      const flow = renewal !== undefined && (renewals < renewalsInARow || other === undefined) ? renewal : other;
      const step = flow === undefined ? undefined : nextStep(flow, admitted);
      const request = flow === undefined || step === undefined ? undefined : firstOf(flow[step]);
      if (flow === undefined || step === undefined || request === undefined) return undefined;
      renewals = flow === renewal ? renewals + 1 : 0;
      flow.approvedInARow = step === 'sign' ? flow.approvedInARow + 1 : 0;
      if (step !== 'sign') flow.lastPending = step;
      flow[step] = without(flow[step], request);
      flow.inFlight += request.weight;
      // The flow goes behind the others at each step.
      for (const each of steps) eligible[request.priority][each].delete(flow);
      update(flow, request);
      return request;
    },

    finished(request) {
      const flow = flowOf(request);
      if (flow === undefined) return;
      flow.inFlight -= request.weight;
      update(flow, request);
    },

    hasReady: (step) => priorityClasses.some((priority) => eligible[priority][step].size > 0),

    backlog(key) {
      const flow = flowOf(key);
      return flow === undefined ? 0 : backlogOf(flow);
    },

    longest() {
      let longest = 0;
      for (const priority of priorityClasses)
        for (const flow of flows[priority].values()) longest = Math.max(longest, backlogOf(flow));
      return longest;
    },
  };
}

type PendingStep = Exclude<Step, 'sign'>;
/** By the step of the last pending request: the order in which the steps are tried for the next one. */
const pendingAfter: Readonly<Record<PendingStep, readonly PendingStep[]>> = {
  attest: ['approve', 'refuse', 'attest'],
  approve: ['refuse', 'attest', 'approve'],
  refuse: ['attest', 'approve', 'refuse'],
};

/** Approved requests first, but every eighth slot for a pending one. */
function nextStep<T>(flow: Flow<T>, admitted: readonly Step[]): Step | undefined {
  const ready = (step: Step): boolean => admitted.includes(step) && flow[step] !== undefined;
  const pending = pendingAfter[flow.lastPending].find(ready);
  return ready('sign') && (flow.approvedInARow < approvedInARow || pending === undefined) ? 'sign' : pending;
}

function appended<T extends object>(queue: Fifo<T>, item: T): Fifo<T> {
  if (queue === undefined) return item;
  return queue instanceof FifoSet ? queue.add(item) : new FifoSet([queue, item]);
}

function without<T extends object>(queue: Fifo<T>, item: T): Fifo<T> {
  if (!(queue instanceof FifoSet)) return queue === item ? undefined : queue;
  queue.delete(item);
  return queue.size === 0 ? undefined : queue;
}

function firstOf<T extends object>(queue: Fifo<T>): T | undefined {
  return queue instanceof FifoSet ? queue.first() : queue;
}

function backlogOf<T extends object>(flow: Flow<T>): number {
  const length = (queue: Fifo<T>): number => (queue instanceof FifoSet ? queue.size : queue === undefined ? 0 : 1);
  return steps.reduce((sum, step) => sum + length(flow[step]), 0);
}
