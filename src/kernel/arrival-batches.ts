import { createKeyCounts, type KeyCounts } from './key-counts.ts'

export type Patience = { isPatient: boolean }
type ArrivalBatchOptions<Item, Result> = {
  /** One result per item, in their order. Without patience it fails where it waits long for the lock of another. */
  run(items: readonly Item[], patience: Patience): Promise<readonly Result[]>
  sizeMax: number
  /** Items of one key go into different batches, in their order. */
  keyOf(item: Item): string
  /** While an item runs singly, the others of its owner wait. */
  ownerOf(item: Item): string
  /** A failure after which an item must not run again by itself. */
  isFinal(error: unknown): boolean
  /** The failure of a run without patience. */
  isBlocked(error: unknown): boolean
}
type Waiting<Item, Result> = { item: Item; answer: PromiseWithResolvers<Result> }
type BatchState<Item, Result> = {
  options: ArrivalBatchOptions<Item, Result>
  waiting: Waiting<Item, Result>[]
  isRunning: boolean
  /** Owners of items that run singly. */
  held: KeyCounts
  blocked: Waiting<Item, Result>[]
  blockedRuns: number
}

/** Items that wait for locks at once: each takes a connection. */
const blockedRunsMax = 4

/**
 * Batches by arrival: while one batch runs the next items collect, without a timer, so that one alone waits for nothing.
 * Where a batch fails or is blocked, its items run singly beside the next batches, so that one item fails or delays no
 * other.
 */
export function batchByArrival<Item, Result>(
  options: ArrivalBatchOptions<Item, Result>,
): (item: Item) => Promise<Result> {
  const state: BatchState<Item, Result> = {
    options,
    waiting: [],
    isRunning: false,
    held: createKeyCounts(),
    blocked: [],
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
    if (!(await isAnswered(state, batch, { isPatient: false }))) void runSingly(state, batch)
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

/** False where the items have to run singly, or with patience: nothing was committed. */
async function isAnswered<Item, Result>(
  { options: { run, isFinal, isBlocked } }: BatchState<Item, Result>,
  batch: readonly Waiting<Item, Result>[],
  { isPatient }: Patience,
): Promise<boolean> {
  try {
    const results = await run(
      batch.map(({ item }) => item),
      { isPatient },
    )
    for (const [at, { answer }] of batch.entries()) answer.resolve(results[at] as Result)
  } catch (error) {
    const isLast = isFinal(error) || (batch.length === 1 && (isPatient || !isBlocked(error)))
    if (!isLast) return false
    for (const { answer } of batch) answer.reject(error)
  }
  return true
}

async function runSingly<Item, Result>(
  state: BatchState<Item, Result>,
  batch: readonly Waiting<Item, Result>[],
): Promise<void> {
  const { ownerOf } = state.options
  for (const { item } of batch) state.held.add(ownerOf(item))
  for (const each of batch) {
    if (batch.length > 1 && (await isAnswered(state, [each], { isPatient: false }))) release(state, each)
    else {
      state.blocked.push(each)
      void runBlocked(state)
    }
  }
}

async function runBlocked<Item, Result>(state: BatchState<Item, Result>): Promise<void> {
  if (state.blockedRuns === blockedRunsMax) return
  state.blockedRuns += 1
  for (let each = state.blocked.shift(); each; each = state.blocked.shift()) {
    await isAnswered(state, [each], { isPatient: true })
    release(state, each)
  }
  state.blockedRuns -= 1
}

function release<Item, Result>(state: BatchState<Item, Result>, { item }: Waiting<Item, Result>): void {
  state.held.remove(state.options.ownerOf(item))
  void runNext(state)
}
