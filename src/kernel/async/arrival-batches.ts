import { createKeyCounts, type KeyCounts } from './key-counts.ts'

export type WaitOption = { mayWait: boolean }
type ArrivalBatchOptions<Item, Result> = {
  /**
   * Returns one result per item, in order. A run that may not wait fails if another transaction holds a lock for
   * long.
   */
  run(items: readonly Item[], option: WaitOption): Promise<readonly Result[]>
  sizeMax: number
  /** Returns the key of an item: items with the same key go into different batches, in their order. */
  keyOf(item: Item): string
  /** Returns the owner of an item: while an item runs singly, the other items of its owner wait. */
  ownerOf(item: Item): string
  /** Whether a failed run is final for its items, so that none of them may run again one by one. */
  isFinal(error: unknown): boolean
  /** Whether the error says that a run which may not wait for locks found a lock taken. */
  isBlocked(error: unknown): boolean
}
type Waiting<Item, Result> = { item: Item; answer: PromiseWithResolvers<Result> }
type BatchState<Item, Result> = {
  options: ArrivalBatchOptions<Item, Result>
  waiting: Waiting<Item, Result>[]
  isRunning: boolean
  held: KeyCounts
  singles: Waiting<Item, Result>[]
  singleRuns: number
  /**
   * The waiting items of each owner who waits for locks; `blockedOwners` are the owners whose turn has not come.
   */
  blocked: Map<string, Waiting<Item, Result>[]>
  blockedOwners: string[]
  blockedRuns: number
}

/**
 * At most this many items run singly at once, and this many owners wait for locks: each needs a database
 * connection.
 */
const singleRunsMax = 4
const blockedRunsMax = 4

/**
 * The next items collect while one batch runs, without a timer, so that an item that arrives alone does not
 * wait. When a batch fails or is blocked, its items run singly beside the next batches, so that one item neither
 * fails nor delays others.
 */
export function batchByArrival<Item, Result>(
  options: ArrivalBatchOptions<Item, Result>,
): (item: Item) => Promise<Result> {
  const state: BatchState<Item, Result> = {
    options,
    waiting: [],
    isRunning: false,
    held: createKeyCounts(),
    singles: [],
    singleRuns: 0,
    blocked: new Map(),
    blockedOwners: [],
    blockedRuns: 0,
  }
  return (item) => {
    const answer = Promise.withResolvers<Result>()
    state.waiting.push({ item, answer })
    void runNext(state)
    return answer.promise
  }
}

async function runNext<Item, Result>(state: BatchState<Item, Result>): Promise<void> {
  if (state.isRunning) return
  state.isRunning = true
  for (let batch = takeBatch(state); batch.length > 0; batch = takeBatch(state))
    if (!(await isAnswered(state, batch, { mayWait: false }))) startSingly(state, batch)
  state.isRunning = false
}

function takeBatch<Item, Result>(state: BatchState<Item, Result>): Waiting<Item, Result>[] {
  const { sizeMax, keyOf, ownerOf } = state.options
  const keys = new Set<string>()
  const batch: Waiting<Item, Result>[] = []
  const rest: Waiting<Item, Result>[] = []
  for (const each of state.waiting) {
    const key = keyOf(each.item)
    const waits = batch.length === sizeMax || keys.has(key) || state.held.get(ownerOf(each.item)) > 0
    if (waits) rest.push(each)
    else batch.push(each)
    keys.add(key)
  }
  state.waiting = rest
  return batch
}

/**
 * Runs a batch and answers its items. Returns false if nothing was committed: its items then run singly, or wait.
 */
async function isAnswered<Item, Result>(
  { options: { run, isFinal, isBlocked } }: BatchState<Item, Result>,
  batch: readonly Waiting<Item, Result>[],
  { mayWait }: WaitOption,
): Promise<boolean> {
  try {
    const results = await run(
      batch.map(({ item }) => item),
      { mayWait },
    )
    for (const [at, { answer }] of batch.entries()) answer.resolve(results[at] as Result)
  } catch (error) {
    const isLast = isFinal(error) || (batch.length === 1 && (mayWait || !isBlocked(error)))
    if (!isLast) return false
    for (const { answer } of batch) answer.reject(error)
  }
  return true
}

function startSingly<Item, Result>(
  state: BatchState<Item, Result>,
  batch: readonly Waiting<Item, Result>[],
): void {
  const { ownerOf } = state.options
  for (const { item } of batch) state.held.add(ownerOf(item))
  const [first] = batch
  // A batch of one item has just run without waiting for locks, so its item now waits for them.
  if (first && batch.length === 1) return void block(state, first)
  for (const each of batch) {
    state.singles.push(each)
    void runSingles(state)
  }
}

async function runSingles<Item, Result>(state: BatchState<Item, Result>): Promise<void> {
  if (state.singleRuns === singleRunsMax) return
  state.singleRuns += 1
  for (let each = state.singles.shift(); each; each = state.singles.shift()) {
    const isOwnerBlocked = state.blocked.has(state.options.ownerOf(each.item))
    if (!isOwnerBlocked && (await isAnswered(state, [each], { mayWait: false }))) release(state, each)
    else block(state, each)
  }
  state.singleRuns -= 1
}

function block<Item, Result>(state: BatchState<Item, Result>, each: Waiting<Item, Result>): void {
  const owner = state.options.ownerOf(each.item)
  const queue = state.blocked.get(owner)
  if (queue) return void queue.push(each)
  state.blocked.set(owner, [each])
  state.blockedOwners.push(owner)
  void runBlocked(state)
}

/** Runs the items of an owner one after the other, because they wait for the same locks. */
async function runBlocked<Item, Result>(state: BatchState<Item, Result>): Promise<void> {
  if (state.blockedRuns === blockedRunsMax) return
  state.blockedRuns += 1
  for (let owner = state.blockedOwners.shift(); owner !== undefined; owner = state.blockedOwners.shift()) {
    const queue = state.blocked.get(owner) ?? []
    for (let each = queue.shift(); each; each = queue.shift()) {
      await isAnswered(state, [each], { mayWait: true })
      release(state, each)
    }
    state.blocked.delete(owner)
  }
  state.blockedRuns -= 1
}

function release<Item, Result>(state: BatchState<Item, Result>, { item }: Waiting<Item, Result>): void {
  state.held.remove(state.options.ownerOf(item))
  void runNext(state)
}
